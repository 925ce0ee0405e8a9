package fleet

import (
	"sync"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/reachability"
)

// firstLook is how soon a pass is made that came before the first check of the
// API servers had ended; it is also the shortest wait for a thaw.
const firstLook = time.Second

var reasonUnproven = decision.NewReason("NotAskedYet", "the API servers were not asked yet")

// Reach is what this process knows of its API servers, for all of its passes. Without a policy nothing is
// ever frozen.
type Reach struct {
	policy *safety.Policy
	now    func() time.Time

	mu    sync.Mutex
	known reachability.State
	next  time.Time // when it is looked at again
	begun bool      // a first pass has ended
}

// NewReach returns what is known before the first check: nothing.
func NewReach(p *safety.Policy, now func() time.Time) *Reach { return &Reach{policy: p, now: now} }

func (r *Reach) get() reachability.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known
}

func (r *Reach) set(known reachability.State, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.next = known, next
}

func (r *Reach) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = true
}

// Hold holds a pass back that came before the first check of the API servers: whether anything is frozen
// is not known yet.
func (r *Reach) Hold() (engine.Result, bool) {
	if r.policy == nil {
		return engine.Result{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return engine.Result{At: r.now().Add(firstLook), Why: decision.Why{Reason: reasonUnproven}}, !r.begun
}

// Frozen reports whether everything is, because an API server does not answer.
func (r *Reach) Frozen() bool { return r.policy != nil && r.get().Stage.Frozen() }

// ClockFrom returns the moment from which clocks count that ran while an API server did not answer: now
// while everything is frozen, then the end of the last outage. Zero: this process has seen none.
func (r *Reach) ClockFrom() time.Time {
	if r.Frozen() {
		return r.now()
	}
	return r.get().From
}

// Thaw returns when to look again at what is frozen and would be looked at again at at; zero: only at a
// change. No change of an object announces a thaw.
func (r *Reach) Thaw(at time.Time) time.Time {
	r.mu.Lock()
	thaw := r.next
	r.mu.Unlock()
	if soon := r.now().Add(firstLook); thaw.Before(soon) {
		thaw = soon
	}
	if at.IsZero() || thaw.Before(at) {
		return thaw
	}
	return at
}
