package stage

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

// Patience is how long an act waits for anything. An eviction that a budget refuses, or that an
// earlier program has begun, is retried after 20 s, and the machine may be slow.
const Patience = 6 * time.Minute

// endPatience is how long killed processes may take to be gone.
const endPatience = 10 * time.Second

// Stage is where a play goes on. New makes it.
type Stage struct {
	*Place
	manager.Options // where each kind of object is kept, and the clock
	Nodes           store.Collection[*machine.Node]
	Done            Progress

	db    *bolt.DB
	mu    sync.Mutex // for out
	out   io.Writer
	start time.Time
}

// Act is one part of a play. It returns once what it promises has come true.
type Act struct {
	Headline string
	Creates  int // how many processes it needs, and so how many there must be
	Do       func(context.Context) error
}

// New opens a place for a play. now is the clock of its objects.
func New(ctx context.Context, out io.Writer, p *Place, now func() time.Time) (*Stage, error) {
	s := &Stage{Place: p, out: out, start: time.Now()}
	var err error
	if s.db, s.Done, err = p.open(ctx, now); err != nil {
		return nil, err
	}
	s.Options, s.Nodes = s.db.ManagerOptions(), s.db.Nodes()
	return s, nil
}

// Say reports what has come true, with the present time.
func (s *Stage) Say(format string, args ...any) {
	s.Text(fmt.Sprintf("%7.2fs  ", time.Since(s.start).Seconds()) + fmt.Sprintf(format, args...))
}

// Text prints a text as it is.
func (s *Stage) Text(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintln(s.out, text) // if the output fails, there is no other place to report that
}

// Go runs something in the background until stop is called, and reports if it ends earlier.
func (s *Stage) Go(what string, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := run(ctx); ctx.Err() == nil {
			s.Say("%s broke: %v", what, err)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// Await waits until nothing is missing. Its error names what was.
func (s *Stage) Await(ctx context.Context, missing func() string) error {
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

// Choose records one of these processes as the one that something will be done to. If an earlier
// program has chosen one in this act, it stays that one.
func (s *Stage) Choose(among []roster.Entry, err error) (roster.Entry, error) {
	if s.Done.Chosen != "" {
		return roster.Read(s.Done.Chosen)
	}
	if err != nil || len(among) == 0 {
		return roster.Entry{}, errors.Join(err, errors.New("there is no process to choose"))
	}
	s.Done.Chosen = among[0].Path
	return among[0], s.save(s.Done)
}

// Play goes through the acts that are left. After each act, created must report as many processes
// as the acts so far needed. An error says which promise was not kept.
func (s *Stage) Play(ctx context.Context, acts []Act, created func() (int, error)) error {
	if n, err := created(); err != nil || n > 0 || s.Done != (Progress{}) {
		s.Say("an earlier program has created %d processes: the play goes on", n)
	}
	needed := 0
	for i, act := range acts {
		needed += act.Creates
		if i < s.Done.Act {
			continue
		}
		s.Text(fmt.Sprintf("\n%d. %s", i+1, act.Headline))
		err := act.Do(ctx)
		if err == nil {
			var n int
			if n, err = created(); err == nil && n != needed {
				err = fmt.Errorf("%d processes were created so far, where %d were needed", n, needed)
			}
		}
		if err == nil {
			s.Done = Progress{Act: i + 1}
			err = s.save(s.Done)
		}
		if err != nil {
			return fmt.Errorf("act %d, %q: %w", i+1, act.Headline, err)
		}
	}
	return nil
}

// Close closes a play. If it was interrupted and can go on, Close leaves all as it is. Otherwise it
// ends the processes that are left, and removes what the play kept.
func (s *Stage) Close(ctx context.Context) error {
	if s.Interrupted(ctx) {
		s.Text(fmt.Sprintf("\nthe machines go on for %s, for the same command to go on with them", agent.Abandonment))
		return s.Release()
	}
	within, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	err := errors.Join(s.clear(within), s.Release())
	if err == nil && !s.lasts {
		err = os.Remove(s.path)
	}
	return err
}

// Release lets another program use the place.
func (s *Stage) Release() error { return errors.Join(s.lock.Close(), s.db.Close()) }

// Interrupted reports whether the play was interrupted, and another program can go on with it.
func (s *Stage) Interrupted(ctx context.Context) bool {
	return s.lasts && errors.Is(context.Cause(ctx), ErrInterrupted)
}
