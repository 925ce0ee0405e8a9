// Package demo is shared by the demos (quickstart, pool) whose machines are processes of this
// computer. A demo is a list of steps. Each step waits until what it promises has come true, and
// processes are counted all the while. A demo that is given a directory can be killed at any moment,
// and the next run of the program continues it.
package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// These are the exit statuses, besides zero.
const (
	Failed      = 1
	Misused     = 2
	Interrupted = 130
)

// limit is how long a demo may take. Each eviction that a budget refuses costs 20 s, and on a slow
// machine many are refused.
const limit = 10 * time.Minute

// ErrInterrupted is the cause of a context that ended because someone interrupted the program.
var ErrInterrupted = errors.New("interrupted")

const stateUsage = `keep the store, a bbolt file, and all else that is to last in ` + "`DIR`" + `, which is made
if needed and must be empty or of an earlier run. Then the machines outlive this
program: after Ctrl-C, a crash or kill -9 the same command goes on where it was, if
it comes within a minute; later the machines have ended by themselves, and it
begins again. Two programs can't use DIR at a time. DIR is empty after a run that
has come to its end. Removing it ends all processes.`

// Main is the main function of a demo's program. It returns the exit status. -h prints usage before
// the flags. run runs the demo; state is the directory given with -state, or empty.
func Main(usage string, run func(ctx context.Context, out io.Writer, state string) error) int {
	name := filepath.Base(os.Args[0])
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.Usage = func() {
		_, _ = io.WriteString(flags.Output(), usage)
		flags.PrintDefaults()
	}
	state := flags.String("state", "", stateUsage)
	switch err := flags.Parse(os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return Misused
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("it takes no longer than %s", limit))
	defer cancel()
	ctx, interrupt := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) // later ones don't disturb the cleanup
	go func() {
		<-signals
		interrupt(ErrInterrupted)
	}()
	err := run(ctx, os.Stdout, *state)
	switch {
	case err == nil:
		return 0
	case errors.Is(context.Cause(ctx), ErrInterrupted):
		fmt.Fprintf(os.Stderr, "%s: %v: %v\n", name, ErrInterrupted, err)
		return Interrupted
	}
	fmt.Fprintf(os.Stderr, "%s failed: %v\n", name, err)
	return Failed
}
