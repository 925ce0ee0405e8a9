// Package stage is what plays of fleets share that are made of processes of this computer: a play
// goes on from act to act, and each act waits until what it promises has come true.
package stage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/home"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Patience is how long an act waits for anything. An eviction that a budget refuses, or that an
// earlier program has begun, is retried after 20 s, and the machine may be slow.
const Patience = 3 * time.Minute

// glance is the time between two looks at a condition without a change of an object, because
// processes change without one.
const glance = 50 * time.Millisecond

// Stage is where a play goes on. New makes it.
type Stage struct {
	Screen *Screen
	Book   *ledger.Book // of the processes that acts create
	Done   home.Progress
	Calls  Calls

	place      *home.Place
	who        string        // the processes in the book
	changed    chan struct{} // filled when an object has changed
	background sync.WaitGroup
	end        context.CancelFunc // of the background
	managing   sync.WaitGroup
	dismiss    context.CancelFunc // of the manager, or nil
}

// New returns a stage for a play that has come so far. who is what it calls the processes in the
// book.
func New(p *home.Place, done home.Progress, s *Screen, book *ledger.Book, who string) *Stage {
	return &Stage{place: p, Done: done, Screen: s, Book: book, who: who, changed: make(chan struct{}, 1)}
}

// Say reports what has come true.
func (s *Stage) Say(format string, args ...any) {
	s.Screen.Line(fmt.Sprintf(format, args...))
}

// Note changes the progress, and saves it if the place lasts.
func (s *Stage) Note(change func(*home.Progress)) error {
	change(&s.Done)
	return s.place.Save(s.Done)
}

// Choose records one of these processes as the one that something will be done to. If an earlier
// program has chosen one, it stays that one.
func (s *Stage) Choose(among func() ([]ledger.Life, error)) (*ledger.Life, error) {
	if s.Done.Chosen != nil {
		return s.Done.Chosen, nil
	}
	alive, err := among()
	if err != nil {
		return nil, err
	}
	if len(alive) == 0 {
		return nil, errors.New("there is no process to choose")
	}
	return &alive[0], s.Note(func(done *home.Progress) { done.Chosen = &alive[0] })
}

// Await waits until nothing is missing. Its error names what was.
func (s *Stage) Await(ctx context.Context, missing func() string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, fmt.Errorf("not within %s", Patience))
	defer cancel()
	ticker := time.NewTicker(glance)
	defer ticker.Stop()
	for {
		lack := missing()
		if lack == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; still missing: %s", context.Cause(ctx), lack)
		case <-s.changed:
		case <-ticker.C:
		}
	}
}

// Background returns the context of what goes on in the background. It does not depend on what ends
// the acts, because the cleanup needs it.
func (s *Stage) Background() context.Context {
	ctx, end := context.WithCancel(context.Background())
	s.end = end
	return ctx
}

// Go runs something in the background, and reports if it ends too early.
func (s *Stage) Go(ctx context.Context, what string, run func(context.Context) error) {
	s.background.Go(func() {
		if err := run(ctx); ctx.Err() == nil {
			s.Screen.Line(fmt.Sprintf("%s broke: %v", what, err))
		}
	})
}

// Count counts in the background.
func (s *Stage) Count(ctx context.Context, c *ledger.Counter) {
	s.background.Go(func() { c.Run(ctx) })
}

// Follow lets every change of an object end a wait, and reports it to told, which may be nil.
func Follow[T object.Object[T]](ctx context.Context, s *Stage, c store.Collection[T], told func()) {
	s.background.Go(func() {
		for range c.Watch(ctx) {
			if told != nil {
				told()
			}
			select {
			case s.changed <- struct{}{}:
			default: // a look is due already
			}
		}
	})
}

// EndBackground ends what goes on in the background.
func (s *Stage) EndBackground() {
	if s.end != nil {
		s.end()
		s.background.Wait()
	}
}

// StartManager runs a manager.
func (s *Stage) StartManager(m *manager.Manager) {
	ctx, dismiss := context.WithCancel(context.Background())
	s.dismiss = dismiss
	s.managing.Go(func() {
		if err := m.Run(ctx); err != nil {
			s.Screen.Line("the manager can't run: " + err.Error())
		}
	})
}

// StopManager ends the manager. Its calls under way are cancelled.
func (s *Stage) StopManager() {
	if s.dismiss != nil {
		s.dismiss()
		s.managing.Wait()
		s.dismiss = nil
	}
}
