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
	c := counted{situation: situation{o: o, p: p, s: o.Set, now: now, at: now.Add(p.Resync)}}
	return pause{&c}.warnInvalid(decider{&c}.decide()), nil
}

// decider asks the parts in order.
type decider struct{ *counted }

// decide decides about any set.
func (d decider) decide() Plan {
	switch {
	case d.paused():
		return pause(d).keepStatus()
	case d.s.Deleted():
		return deletion(d).remove()
	}
	return d.keep()
}

// keep decides about a set that is not being deleted. Its steps are tried in
// this order; the first that has something to do makes the plan, and what they
// have all left alone is waited for. Deletions come before pushes: a machine
// that is about to go is not changed first, and none waits for the others'
// changes. Pushes come before creations, which may take many plans.
func (d decider) keep() Plan {
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
	d.summary.count(&d.situation)
	if plan, busy := pause(d).resume(); busy {
		return plan
	}
	names := reservation(d)
	if !d.retryAt().IsZero() {
		if names.allCame() && !names.mayStayOpen() {
			return names.settled()
		}
		return report(d).rest()
	}
	plan, busy := adoption(d).claim() // not decision.FirstOf: through functions, c would be allocated
	if !busy {
		plan, busy = d.preservation().preserve()
	}
	if !busy {
		plan, busy = d.removeSome()
	}
	if !busy {
		plan, busy = alignment(d).push()
	}
	if !busy {
		plan, busy = names.scale()
	}
	if busy {
		return names.settleFirst(plan)
	}
	return report(d).rest()
}

// removeSome deletes machines: those that failed, then those to be replaced, then the surplus.
func (d decider) removeSome() (Plan, bool) {
	plan, busy := replacement(d).replaceFailed()
	if !busy {
		plan, busy = replacement(d).replaceRequested()
	}
	if !busy {
		plan, busy = surplus(d).remove()
	}
	return plan, busy
}

// invalid records once which field can't be acted upon, and waits for a change.
func (d decider) invalid(bad *object.FieldError) Plan {
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
