package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/procid"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
)

const (
	lifetime = 15 * time.Minute // the longest life of a task in any case
	patience = 2 * time.Second  // how long it waits for its volume
)

// These are the exit statuses of a task.
const (
	exitDone    = 0
	exitFailed  = 1
	exitMisused = 64
	exitTurned  = 75
)

// These are the reasons why a task ends.
var (
	errTold     = errors.New("told to end")
	errAlone    = errors.New("the agent that started it is gone")
	errLifetime = errors.New("its longest lifetime is over")
)

// Main is a task's life. It returns the exit status.
func Main() int {
	order, err := readOrder(os.Getenv(environment))
	if err != nil {
		fmt.Fprintln(os.Stderr, "task:", err)
		return exitMisused
	}
	t := &task{Order: order}
	switch err := t.live(); {
	case err == nil || errors.Is(err, errAlone):
		return exitDone
	case errors.Is(err, registry.ErrHeld):
		return exitTurned
	default:
		fmt.Fprintf(os.Stderr, "task %s: %v\n", order.Name, err)
		return exitFailed
	}
}

type task struct {
	Order
	account ledger.Hand
}

// live enters the ledger before anything else, then takes its volume, boots,
// and serves until it is to end.
func (t *task) live() error {
	self, err := procid.Self()
	if err != nil {
		return err
	}
	t.account = ledger.Hand{Path: t.Ledger, Machine: t.Name, Instance: t.UID, ID: self}
	if err := t.account.Enter(ledger.Born, ""); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP) // a terminal's, meant for the program
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	alone, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when no process holds the other end
		cancel(errAlone)
	}()
	alone, over := context.WithTimeoutCause(alone, lifetime, errLifetime)
	defer over()

	volume, err := t.mount(alone)
	if err != nil {
		return errors.Join(err, t.account.Enter(ledger.Turned, err.Error()))
	}
	if volume != nil {
		defer volume.Release()
	}
	if err := t.account.Seated(); err != nil {
		return err
	}
	return t.serve(alone, told)
}

// mount takes the volume for this process alone, or returns why it can't. It does not wait for
// long, because an earlier holder of a volume that is attached here should have ended before.
func (t *task) mount(ctx context.Context) (*registry.Lock, error) {
	if t.Volume == "" {
		return nil, nil //nolint:nilnil // it needs none
	}
	within, cancel := context.WithTimeoutCause(ctx, patience, registry.ErrHeld)
	defer cancel()
	lock, err := registry.Take(within, t.Volume)
	if within.Err() != nil && lock == nil {
		err = context.Cause(within)
	}
	return lock, err
}

// serve boots and serves. When told to end, it leaves the service at once, and takes its time.
func (t *task) serve(alone context.Context, told <-chan os.Signal) error {
	switch err := pause(alone, told, t.Boot); {
	case errors.Is(err, errTold):
		return t.leave(alone)
	case err != nil:
		return err
	}
	// The ledger comes first, so that the cluster never counts more than what serves.
	if err := t.account.Enter(ledger.Serving, ""); err != nil {
		return err
	}
	report := os.NewFile(reportFD, "report")
	_, _ = fmt.Fprintln(report, reportServing)
	_ = report.Close()
	select {
	case <-alone.Done():
		return context.Cause(alone)
	case <-told:
	}
	return t.leave(alone)
}

func (t *task) leave(alone context.Context) error {
	if err := t.account.Enter(ledger.Leaving, ""); err != nil {
		return err
	}
	return pause(alone, nil, t.Linger)
}

// pause waits, unless it is told to end or is alone.
func pause(alone context.Context, told <-chan os.Signal, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-alone.Done():
		return context.Cause(alone)
	case <-told:
		return errTold
	case <-timer.C:
		return nil
	}
}
