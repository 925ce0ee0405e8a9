package manager

import (
	"sync"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// firstLook is how soon a pass is made that came before the first check of the
// API servers had ended; it is also the shortest wait for a thaw.
const firstLook = time.Second

// reach is what this process knows of its API servers, for all of its passes.
type reach struct {
	mu    sync.Mutex
	known safety.Reach
	next  time.Time // when it is looked at again
	begun bool      // a first pass has ended
}

func (r *reach) get() safety.Reach {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known
}

func (r *reach) set(known safety.Reach, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.next = known, next
}

func (r *reach) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = true
}

// unproven holds a pass back that came before the first check of the API
// servers: whether anything is frozen is not known yet.
func (s *shell) unproven() (Result, bool) {
	if s.SafetyPolicy == nil {
		return Result{}, false
	}
	s.reach.mu.Lock()
	defer s.reach.mu.Unlock()
	return Result{At: s.Now().Add(firstLook), Why: decision.Why{Reason: reasonUnproven}}, !s.reach.begun
}

// frozen tells whether everything is, because an API server does not answer.
func (s *shell) frozen() bool { return s.SafetyPolicy != nil && s.reach.get().Stage.Frozen() }

// held tells whether a deployment or set is frozen by its label.
func (s *shell) held(m *object.Meta) bool { return s.SafetyPolicy != nil && s.SafetyPolicy.Frozen(m) }

// lookFor is look for a pass that may have been frozen.
func (s *shell) lookFor(frozen bool, at time.Time, why decision.Why) Result {
	if frozen {
		at = s.thaw(at)
	}
	return s.look(at, why)
}

// thaw returns when to look again at what is frozen and would be looked at again at at; zero: only at a
// change. No change of an object announces a thaw.
func (s *shell) thaw(at time.Time) time.Time {
	s.reach.mu.Lock()
	thaw := s.reach.next
	s.reach.mu.Unlock()
	if soon := s.Now().Add(firstLook); thaw.Before(soon) {
		thaw = soon
	}
	if at.IsZero() || thaw.Before(at) {
		return thaw
	}
	return at
}
