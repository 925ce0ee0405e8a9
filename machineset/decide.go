package machineset

import (
	"errors"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// errNoSet is the error for a mistake of the caller.
var errNoSet = errors.New("machineset.Decide: the observation has no set")

// Decide says what to do next about one set. It changes none of its arguments.
// Calling it again with the same arguments gives the same plan.
//
// The error is for a caller's mistake only: no set, or an *object.FieldError
// for a policy out of range. A nil policy is the default one. A set that holds nonsense gets
// a plan that says so.
func Decide(o *Observation, p *Policy, now time.Time) (Plan, error) {
	if o == nil || o.Set == nil {
		return Plan{}, errNoSet
	}
	p = p.WithDefaults()
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	d := decider{o: o, p: p, s: o.Set, now: now, at: now.Add(p.Resync)}
	return d.oddPause(d.decide()), nil
}

// decider is one call of Decide.
type decider struct {
	o   *Observation
	p   *Policy
	s   *Set
	now time.Time

	summary summary
	chosen  map[string]time.Time // machines that a scaler chose, and when; nil: not needed
	prefix  string               // of the names of the open reservation, if there is one
	// at and waiting are what the plan says if there is nothing to do.
	at      time.Time
	waiting decision.Why
}

// decide decides about any set.
func (d *decider) decide() Plan {
	switch {
	case d.paused():
		return d.pause()
	case d.s.Deleted():
		return d.remove()
	}
	return d.keep()
}

// keep decides about a set that is not being deleted. Its steps are tried in
// this order; the first that has something to do makes the plan, and what they
// have all left alone is waited for. Deletions come before pushes: a machine
// that is about to go is not changed first, and none waits for the others'
// changes. Pushes come before creations, which may take many plans.
func (d *decider) keep() Plan {
	bad := d.s.invalidField()
	if bad == nil && d.s.Owner == nil {
		bad = AboveLimit(d.s.Spec.Replicas, d.p.MaxReplicas)
	}
	if bad != nil {
		return d.invalid(bad)
	}
	if !d.s.HasFinalizer(Finalizer) {
		changed := d.s.Clone()
		changed.AddFinalizer(Finalizer)
		return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonFinalizer}}
	}
	d.summarize()
	if plan, busy := d.resume(); busy {
		return plan
	}
	if !d.retryAt().IsZero() {
		if d.allCame() && !d.mayStayOpen() {
			return d.settled()
		}
		return d.rest()
	}
	plan, busy := d.claim() // not decision.FirstOf: through functions, d would be allocated
	if !busy {
		plan, busy = d.preserve()
	}
	if !busy {
		plan, busy = d.removeSome()
	}
	if !busy {
		plan, busy = d.push()
	}
	if !busy {
		plan, busy = d.scale()
	}
	if busy {
		return d.settleFirst(plan)
	}
	return d.rest()
}

// removeSome deletes machines: those that failed, then those to be replaced, then the surplus.
func (d *decider) removeSome() (Plan, bool) {
	plan, busy := d.replaceFailed()
	if !busy {
		plan, busy = d.replaceRequested()
	}
	if !busy {
		plan, busy = d.removeSurplus()
	}
	return plan, busy
}

// invalid records once which field can't be acted upon, and waits for a change.
func (d *decider) invalid(bad *object.FieldError) Plan {
	why := decision.Why{Reason: reasonSpecInvalid, Name: bad.Field, Detail: bad.Problem}
	next := d.s.Status
	next.ObservedGeneration = d.s.Generation
	next.Conditions = withCondition(next.Conditions, object.Condition{
		Type: ConditionSpecValid, Status: object.False, Reason: reasonSpecInvalid.String(),
		Message: bad.Error(), Since: d.stamp(),
	})
	if next.Equal(&d.s.Status) {
		return Plan{Why: why}
	}
	return Plan{Write: &UpdateStatus{next.Clone()}, Why: why, Warn: why}
}

// readLive plans a live read if what is known may be stale. busy: it has to be
// carried out before what is named.
func (d *decider) readLive(before string) (plan Plan, busy bool) {
	return d.readLiveSince(time.Time{}, before)
}

// readLiveSince is readLive where a read from before since is stale as well.
func (d *decider) readLiveSince(since time.Time, before string) (plan Plan, busy bool) {
	if d.o.Read.Covers(since) {
		return Plan{}, false
	}
	return Plan{ReadLive: true, Why: decision.Why{Reason: reasonReadLive, Detail: before}}, true
}

func (d *decider) live() bool { return d.o.Read.Live() }

// lookAgain makes the next look no later than t.
func (d *decider) lookAgain(t time.Time) {
	if t.Before(d.at) {
		d.at = t
	}
}

// rest writes the status if it would say something else, and waits.
func (d *decider) rest() Plan {
	if at := d.retryAt(); !at.IsZero() {
		d.lookAgain(at)
		d.waiting = decision.Why{Reason: reasonRetryAt, Detail: d.s.Status.LastOperation.Message, For: at.Sub(d.now)}
	}
	for _, at := range [...]time.Time{d.summary.nextAvailable, d.summary.expiries.next} {
		if !at.IsZero() {
			d.lookAgain(at)
		}
	}
	if plan, busy := d.status(); busy {
		return plan
	}
	why := d.waiting
	if why == (decision.Why{}) {
		why = d.tally(reasonSettled)
	}
	return Plan{At: d.at, Why: why}
}

// tally is a reason with the numbers of machines.
func (d *decider) tally(reason decision.Reason) decision.Why {
	c := &d.summary
	return decision.Why{
		Reason: reason, Have: int64(c.active), Want: int64(d.wanted()),
		Ready: int64(c.ready), Available: int64(c.available),
	}
}

// stamp is now as stores keep it.
func (d *decider) stamp() time.Time { return d.now.Truncate(time.Second) }
