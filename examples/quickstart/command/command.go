// Package command is what programs share that play something on processes of this computer: a flag
// for the directory, a limit of time, and an end that cleans up.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// These are the exit statuses.
const (
	Failed      = 1
	Misused     = 2
	Interrupted = 130
)

// grace is how long a program may go on after its limit to clean up.
const grace = 15 * time.Second

// ErrInterrupted is the cause of a context that a signal has ended.
var ErrInterrupted = errors.New("interrupted")

// Command is a program that plays.
type Command struct {
	Name  string
	Usage string // what -h says before the flags
	State string // what it says of -state, with DIR for the directory
	// Limit is how long the whole may take.
	Limit time.Duration
	// Play plays in that directory. If it is empty, it plays in a temporary one.
	Play func(ctx context.Context, out io.Writer, state string) error
}

// Main runs the program, and returns its exit status.
func (c *Command) Main() int {
	state, status, ok := c.Options(os.Args[1:], os.Stderr)
	if !ok {
		return status
	}
	errTooLong := fmt.Errorf("%s takes no longer than %s", c.Name, c.Limit)
	ctx, cancel := context.WithTimeoutCause(context.Background(), c.Limit, errTooLong)
	defer cancel()
	ctx, stop := interruptible(ctx)
	defer stop()
	time.AfterFunc(c.Limit+grace, func() {
		// The processes notice that this program is gone, and end.
		fmt.Fprintf(os.Stderr, "%v and was not to be stopped\n", errTooLong)
		os.Exit(Failed)
	})
	err := c.Play(ctx, os.Stdout, state)
	switch {
	case err == nil:
		return 0
	case errors.Is(context.Cause(ctx), ErrInterrupted):
		fmt.Fprintf(os.Stderr, "%s: %v: %v\n", c.Name, ErrInterrupted, err)
		return Interrupted
	}
	fmt.Fprintf(os.Stderr, "%s failed: %v\n", c.Name, err)
	return Failed
}

// Options reads the command line. It returns false, with an exit status, if there is nothing else
// to do.
func (c *Command) Options(args []string, out io.Writer) (state string, status int, ok bool) {
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		_, _ = io.WriteString(out, c.Usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&state, "state", "", strings.Replace(c.State, "in DIR", "in `DIR`", 1))
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return "", 0, false
	case err != nil:
		return "", Misused, false
	case flags.NArg() > 0:
		_, _ = fmt.Fprintf(out, "%s: %q is one argument too many; see -h\n", c.Name, flags.Arg(0))
		return "", Misused, false
	}
	return state, 0, true
}

// interruptible returns a context that ends with the usual signals to end a program. From then on
// it ignores signals, because the program cleans up.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case <-signals:
			cancel(ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
