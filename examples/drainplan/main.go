// Drainplan shows what draining a node would do, from a dump of the cluster: which pods are evicted
// and when, which are left alone, which block the drain and why.
//
//	kubectl get nodes,pods,pdb,pv,pvc,volumeattachments -A -o yaml | go -C examples run ./drainplan -node worker-1 -
//
// It reads JSON or YAML, a list or single objects, several documents and several files; "-" is the
// standard input. It carries out nothing and calls no cluster: the answer comes from drain.Decide,
// which decides real drains, against a model in which pods are gone when their grace ends.
//
// The exit status is 0; 1 if -check finds that pods would be refused or left;
// 2 if the flags or the files make no sense.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/millwright-go/millwright/drain"
)

// These are the exit statuses.
const (
	exitBlocked = 1
	exitUsage   = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, in io.Reader, out, complaints io.Writer) int {
	asked, err := parse(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return complain(complaints, fmt.Errorf("%w (-h lists the flags)", err))
	}
	found := &cluster{}
	for _, file := range asked.files {
		if err := found.read(file, in); err != nil {
			return complain(complaints, fmt.Errorf("%s: %w", file, err))
		}
	}
	o, err := found.observation(asked.node)
	if err != nil {
		return complain(complaints, err)
	}
	o.Forced = asked.force
	forecast, err := drain.Predict(o, asked.policy, drain.Assumptions{Heal: asked.heal}, asked.at)
	if err != nil {
		return complain(complaints, err)
	}
	if _, err := io.WriteString(out, drain.Explain(forecast)); err != nil {
		return complain(complaints, err)
	}
	if asked.check && (!forecast.Done || len(forecast.Left) > 0 || len(forecast.Budgets()) > 0) {
		return exitBlocked
	}
	return 0
}

func complain(w io.Writer, err error) int {
	_, _ = fmt.Fprintln(w, "drainplan:", oneLine(err)) // there is no other place to report it
	return exitUsage
}
