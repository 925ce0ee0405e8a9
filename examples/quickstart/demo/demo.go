package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/store"
)

// Patience is how long a step waits for anything. A retry of an eviction takes 20 s: of one that a
// budget has refused, or that an interrupted run has begun. And the computer may be slow.
const Patience = 6 * time.Minute

// endPatience is how long killed processes may take to end.
const endPatience = 10 * time.Second

// Demo is a run of a demo. New makes it.
type Demo struct {
	*Dir
	manager.Options // where each kind of object is kept, and the clock
	Nodes           store.Collection[*machine.Node]
	Done            Progress // of the steps, also those of earlier runs in this directory

	db    *bolt.DB
	mu    sync.Mutex // for out
	out   io.Writer
	start time.Time
}

// Step is one step of a demo.
type Step struct {
	Headline     string
	NewProcesses int                         // how many processes are created in this step: no more, no fewer
	Do           func(context.Context) error // returns once what the step promises has come true
}

// New opens the directory of a demo. now is the clock of the objects in the store.
func New(ctx context.Context, out io.Writer, dir *Dir, now func() time.Time) (*Demo, error) {
	d := &Demo{Dir: dir, out: out, start: time.Now()}
	var err error
	if d.db, d.Done, err = dir.open(ctx, now); err != nil {
		return nil, err
	}
	d.Options, d.Nodes = d.db.ManagerOptions(), d.db.Nodes()
	return d, nil
}

// Say prints a line with the time since the start.
func (d *Demo) Say(format string, args ...any) {
	d.Text(fmt.Sprintf("%7.2fs  ", time.Since(d.start).Seconds()) + fmt.Sprintf(format, args...))
}

// Text prints a line without the time.
func (d *Demo) Text(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = fmt.Fprintln(d.out, text) // if the output fails, there is no other place to report that
}

// Go runs something in the background until stop is called, and prints an error that ends it earlier.
func (d *Demo) Go(what string, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := run(ctx); ctx.Err() == nil {
			d.Say("%s broke: %v", what, err)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// Await calls the function missing until it returns an empty string. If that takes too long, the error
// has the last string.
func (d *Demo) Await(ctx context.Context, missing func() string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, fmt.Errorf("not within %s", Patience))
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		lack := missing()
		if lack == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; still missing: %s", context.Cause(ctx), lack)
		case <-ticker.C:
		}
	}
}

// Choose picks one of these processes to do something to, and records the choice. If an interrupted
// run had made its choice in this step, Choose returns the same process. It passes on err.
func (d *Demo) Choose(among []roster.Entry, err error) (roster.Entry, error) {
	if d.Done.Chosen != "" {
		return roster.Read(d.Done.Chosen)
	}
	if err != nil || len(among) == 0 {
		return roster.Entry{}, errors.Join(err, errors.New("there is no process to choose"))
	}
	d.Done.Chosen = among[0].Path
	return among[0], d.save(d.Done)
}

// Run runs the steps that are left. After each step, created must return the sum of NewProcesses so
// far. An error says which promise was not kept.
func (d *Demo) Run(ctx context.Context, steps []Step, created func() (int, error)) error {
	if n, err := created(); err != nil || n > 0 || d.Done != (Progress{}) {
		d.Say("an earlier program has created %d processes: the play goes on", n)
	}
	needed := 0
	for i, step := range steps {
		needed += step.NewProcesses
		if i < d.Done.Step { // done by an earlier run
			continue
		}
		d.Text(fmt.Sprintf("\n%d. %s", i+1, step.Headline))
		err := step.Do(ctx)
		if err == nil {
			var n int
			if n, err = created(); err == nil && n != needed {
				err = fmt.Errorf("%d processes were created so far, where %d were needed", n, needed)
			}
		}
		if err == nil {
			d.Done = Progress{Step: i + 1}
			err = d.save(d.Done)
		}
		if err != nil {
			return fmt.Errorf("act %d, %q: %w", i+1, step.Headline, err)
		}
	}
	return nil
}

// Close closes the directory. If the demo was interrupted and can be continued, Close leaves
// everything else as it is. Otherwise it ends the processes that are left, and empties the directory.
func (d *Demo) Close(ctx context.Context) error {
	if d.Interrupted(ctx) {
		d.Text(fmt.Sprintf("\nthe machines go on for %s, for the same command to go on with them", agent.Abandonment))
		return d.Release()
	}
	within, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	err := errors.Join(d.clear(within), d.Release())
	if err == nil && !d.lasts {
		err = os.Remove(d.path)
	}
	return err
}

// Release lets another program use the directory.
func (d *Demo) Release() error { return errors.Join(d.lock.Close(), d.db.Close()) }

// Interrupted reports whether the demo was interrupted, and the next run can continue it.
func (d *Demo) Interrupted(ctx context.Context) bool {
	return d.lasts && errors.Is(context.Cause(ctx), ErrInterrupted)
}
