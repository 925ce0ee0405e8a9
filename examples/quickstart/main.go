// Quickstart runs a fleet whose machines are processes of this computer: it
// creates machines, rolls them to a new version, loses one, restarts its manager
// in the middle of a rollout, scales, and deletes everything. Tasks run on the
// machines, processes too, and are moved before a machine goes: as their
// disruption budget allows, and one of them with its volume.
//
//	go run ./examples/quickstart
//
// fleet.go is what a program of your own would begin with: a store, a driver, a
// cluster, a drainer, a manager, and a deployment. acts.go is what happens to
// them. Package workload stands for what an API server knows of pods. The rest shows it, and counts processes by other means than the library's.
//
// The last line says how it went, and so does the exit status: 0 only if every
// promise was kept. Nothing is left behind, also after Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/screen"
	"github.com/millwright-go/millwright/examples/quickstart/task"
)

// limit is how long the whole may take; lastLimit is for a program that is
// stuck even then.
const (
	limit     = 3 * time.Minute
	lastLimit = limit + 15*time.Second
)

// Exit statuses.
const (
	exitFailed      = 1
	exitInterrupted = 130
)

var (
	errTooLong     = fmt.Errorf("the quickstart takes no longer than %s", limit)
	errInterrupted = errors.New("interrupted")
)

func main() {
	if task.Ordered() {
		os.Exit(task.Main()) // this process is what runs on a machine
	}
	if agent.Ordered() {
		os.Exit(agent.Main()) // this process is a machine
	}
	os.Exit(run())
}

func run() int {
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, errTooLong)
	defer cancel()
	ctx, stop := interruptible(ctx)
	defer stop()
	time.AfterFunc(lastLimit, func() {
		// The agents notice that this program is gone, and end.
		fmt.Fprintf(os.Stderr, "%v and was not to be stopped\n", errTooLong)
		os.Exit(exitFailed)
	})

	err := perform(ctx, os.Stdout, screen.Detect(os.Stdout))
	switch {
	case err == nil:
		return 0
	case errors.Is(context.Cause(ctx), errInterrupted):
		fmt.Fprintf(os.Stderr, "quickstart: %v: %v\n", errInterrupted, err)
		return exitInterrupted
	}
	fmt.Fprintln(os.Stderr, "quickstart failed:", err)
	return exitFailed
}

// interruptible returns a context that ends with what usually ends a program.
// From then on signals are ignored: it cleans up.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case <-signals:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
