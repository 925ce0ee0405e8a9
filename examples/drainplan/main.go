// Drainplan shows what draining a node would do, from a dump of the cluster: which pods are evicted
// and when, which are left alone, which block the drain and why.
//
//	kubectl get nodes,pods,pdb,pv,pvc,volumeattachments -A -o yaml | go -C examples run ./drainplan -node worker-1 -
//
// It reads JSON or YAML files with lists or single objects, and several documents in a file. "-" is the
// standard input. It changes nothing and calls no cluster. The answer comes from drain.Decide, which
// also decides real drains. It is assumed that each pod ends when its grace ends.
//
// The exit status is 0; 1 if -check finds that evictions would be refused, pods would be left, or the
// drain would not end; 2 if the flags or the files are invalid.
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
	opts, err := parse(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return complain(complaints, fmt.Errorf("%w (-h lists the flags)", err))
	}
	dump := &cluster{}
	for _, file := range opts.files {
		if err := dump.read(file, in); err != nil {
			return complain(complaints, fmt.Errorf("%s: %w", file, err))
		}
	}
	o, err := dump.observation(opts.node)
	if err != nil {
		return complain(complaints, err)
	}
	o.Forced = opts.force
	forecast, err := drain.Predict(o, opts.policy, drain.Assumptions{Heal: opts.heal}, opts.at)
	if err != nil {
		return complain(complaints, err)
	}
	if _, err := io.WriteString(out, drain.Explain(forecast)); err != nil {
		return complain(complaints, err)
	}
	if opts.check && (!forecast.Done || len(forecast.Left) > 0 || len(forecast.Budgets()) > 0) {
		return exitBlocked
	}
	return 0
}

// complain prints an error in one line, and returns the exit status.
func complain(w io.Writer, err error) int {
	_, _ = fmt.Fprintln(w, "drainplan:", oneLine(err)) // there is no other place to report it
	return exitUsage
}
