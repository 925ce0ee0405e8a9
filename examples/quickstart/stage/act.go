package stage

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/examples/quickstart/home"
)

// Act is one part of a play. It returns once what it promises has come true.
type Act[P any] struct {
	Headline string
	Creates  int // how many processes it needs, and so how many there must be
	Do       func(P, context.Context) error
}

// Run goes through the acts that are left. An error says which promise was not kept.
func Run[P any](ctx context.Context, s *Stage, p P, acts []Act[P]) error {
	if alive, err := s.Book.Alive(); err != nil || len(alive) > 0 || s.Done != (home.Progress{}) {
		s.Say("an earlier program has left %d %s running: the play goes on", len(alive), s.who)
	}
	for s.Done.Act < len(acts) {
		act := acts[s.Done.Act]
		s.Screen.Headline(fmt.Sprintf("%d. %s", s.Done.Act+1, act.Headline))
		err := act.Do(p, ctx)
		if err == nil {
			err = s.close(act.Creates)
		}
		if err != nil {
			return fmt.Errorf("act %d, %q: %w", s.Done.Act+1, act.Headline, err)
		}
	}
	return nil
}

// close ends an act, even one that an earlier program has begun.
func (s *Stage) close(creates int) error {
	account, err := s.Book.Account()
	if err != nil {
		return err
	}
	created := account.Created - s.Done.Created
	s.Say("%s created: %d; calls: %s", s.who, created, s.Calls.report())
	if created != creates {
		return fmt.Errorf("%d %s were created where %d were needed", created, s.who, creates)
	}
	return s.Note(func(done *home.Progress) {
		*done = home.Progress{Act: done.Act + 1, Created: account.Created, Tasks: done.Tasks}
	})
}
