package sim

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/sim/history"
)

// tape is a history while it is recorded. It notes what happens at an instant, and what begins and
// ends.
type tape struct {
	now  func() time.Time
	h    history.History
	open []*openMark
}

// openMark is a mark whose end is still to come.
type openMark struct{ mark history.Mark }

// after is the time since the beginning.
func (t *tape) after() time.Duration { return t.now().Sub(t.h.Start) }

// note implements marker.
func (t *tape) note(kind history.Kind, what string) {
	t.h.Note(history.Mark{After: t.after(), Kind: kind, What: what})
}

// span implements marker.
func (t *tape) span(kind history.Kind, what string) (end func()) {
	s := t.begin(kind, what)
	return func() { t.finish(s) }
}

func (t *tape) begin(kind history.Kind, what string) *openMark {
	s := &openMark{history.Mark{After: t.after(), Kind: kind, What: what}}
	t.open = append(t.open, s)
	return s
}

func (t *tape) finish(s *openMark) {
	i := slices.Index(t.open, s)
	if i < 0 {
		return
	}
	t.open = slices.Delete(t.open, i, i+1)
	s.mark.Until = t.after()
	t.h.Note(s.mark)
}
