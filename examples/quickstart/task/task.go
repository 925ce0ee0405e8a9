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
	"github.com/millwright-go/millwright/examples/quickstart/life"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
)

// patience is how long a task waits for its volume.
const patience = 2 * time.Second

// errAlone says that no play needs the task any more.
var errAlone = errors.New("the agent that started it is gone")

// Main is a task's life. It returns the exit status.
func Main() int {
	order, err := readOrder(os.Getenv(environment))
	if err != nil {
		return life.Misuse("task", err)
	}
	t := &task{Order: order}
	err = t.live()
	if errors.Is(err, errAlone) {
		err = nil
	}
	return life.End("task "+order.Name, err)
}

type task struct {
	Order
	account ledger.Hand
}

// live enters the ledger before anything else, then takes its volume, boots,
// and serves until it is to end.
func (t *task) live() error {
	var err error
	if t.account, err = life.Begin(t.Ledger, t.Name, t.UID); err != nil {
		return err
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	alone, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when no process holds the other end
		cancel(errAlone)
	}()
	alone, over := context.WithTimeoutCause(alone, life.Longest, life.ErrLongest)
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
	case errors.Is(err, life.ErrTold):
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
		return life.ErrTold
	case <-timer.C:
		return nil
	}
}
