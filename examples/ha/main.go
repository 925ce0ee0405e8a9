// Ha runs a fleet that outlives its managers. Two programs are candidates for it, on one store. One of them leads; while
// the fleet rolls from version to version, the leader is killed, suspended, cut off from the store, and ended, by
// turns. The other one takes over each time. The machines are processes of this computer, and are counted without the
// library.
//
//	go -C examples/ha run .
//	go -C examples/ha run . -store etcd://10.0.0.7:2379
//	go -C examples/ha run . -store postgres://fleet@10.0.0.7/fleet
//
// The first command brings its store along: an etcd in this program. In a real fleet the store is somewhere else,
// and has several members.
//
// candidate.go is what a program of your own needs: open a store, wait to lead, run a manager for as long as
// that lasts. store.go opens the stores, stage.go starts and hits the candidates, and play.go is what happens.
//
// The last lines and the exit status say how it ended. The status is 0 only if nothing was doubled, lost or left. Nothing
// is left behind, even after Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/agent"
)

// limit is how long the play may take, on a slow computer.
const limit = 15 * time.Minute

func main() {
	agent.Main() // if this process is a machine
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it takes no longer than %s", limit))
	err := run(ctx, os.Args[1:], os.Stdout)
	cancel()
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintf(os.Stderr, "ha failed: %v\n", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	store  string // an address; empty: this program starts an etcd
	rounds int
	// These are of a candidate.
	candidate string // its ID; empty: this program is the stage
	dir       string
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("ha", flag.ContinueOnError)
	flags.StringVar(&o.store, "store", "", "where the fleet is stored, such as postgres://USER@HOST/DATABASE or etcd://HOST:PORT?PREFIX; empty: an etcd in this program")
	flags.IntVar(&o.rounds, "rounds", 1, "how often each thing happens to the leader")
	flags.StringVar(&o.candidate, "candidate", "", "be the candidate `ID` of a fleet in -dir; for this program's own use")
	flags.StringVar(&o.dir, "dir", "", "the `directory` of the machines; for this program's own use")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.candidate != "" {
		return candidate(ctx, &o, out)
	}
	return play(ctx, &o, out)
}
