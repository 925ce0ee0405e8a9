package deployment

import (
	"errors"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// ErrNoDeployment is the error for a mistake of the caller.
var ErrNoDeployment = errors.New("deployment.Decide: the observation has no deployment")

// Decide decides what to do next about one deployment. It changes none of its arguments, and
// returns the same plan for the same arguments.
//
// Only a caller's mistake is an error: ErrNoDeployment, or an *object.FieldError for a
// deployment without UID, which no store holds, or for a policy out of range. A deployment with
// invalid contents gets a plan that says so.
func Decide(o *Observation, p *Policy, now time.Time) (Plan, error) {
	if o == nil || o.Deployment == nil {
		return Plan{}, ErrNoDeployment
	}
	p = p.WithDefaults()
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	if o.Deployment.UID == "" {
		return Plan{}, object.Invalid("metadata.uid", "must not be empty").Of("deployment", o.Deployment.Key)
	}
	d := decider{o: o, p: p, deployment: o.Deployment, now: now, gathering: o.Gathering}
	d.count()
	d.current = d.findNewSet()
	d.revision = d.revisionOf(d.current)
	if d.deployment.Deleted() {
		return d.remove(), nil
	}
	plan := d.keep()
	plan.Gathering = d.gathering
	return plan, nil
}

// decider is one call of Decide.
type decider struct {
	o          *Observation
	p          *Policy
	deployment *Deployment
	now        time.Time

	sets     []family  // of this deployment, the oldest first
	current  *family   // the new set, one of sets; nil: there is none
	failed   []failing // the newest first, as many as are listed
	failures int32     // this many there are

	revision int64 // of the new set: what it has, or will get

	bounds    rollout.Bounds
	fleet     rollout.Fleet
	step      rollout.Why
	choices   []choice         // of a scaler
	selects   []rollout.Select // what the step wants updated in place
	hold      decision.Why     // why no more orders are given; zero: they are
	wake      time.Time        // the earliest of the known future events; zero: none
	throttled time.Duration    // how long the status has to wait; zero: it need not
	gathering time.Time        // since when orders wait for others; zero: they do not
	gathered  time.Duration    // for how long they still do; zero: they do not
}

// keep decides about a deployment that is not being deleted. Orders come before the status, so that
// a status never delays them.
func (d *decider) keep() Plan {
	bad := d.deployment.invalidField(d.p.Keys)
	if bad == nil {
		bad = machineset.AboveLimit(d.deployment.Spec.Replicas, d.p.MaxReplicas)
	}
	if bad != nil {
		return d.invalid(bad)
	}
	if !d.deployment.HasFinalizer(Finalizer) {
		changed := d.deployment.Clone()
		changed.AddFinalizer(Finalizer)
		if len(d.sets) == 0 && !changed.Spec.Paused {
			changed.Revision = d.revision // that of the set to be made next
		}
		return Plan{Write: &Update{Deployment: changed}, Why: decision.Why{Reason: reasonFinalizer}}
	}
	d.bounds = d.deployment.Spec.bounds()
	d.setAside()
	d.holdIfRefused()
	if plan, found := decision.FirstOf(d,
		(*decider).claim, (*decider).rollBack, (*decider).exchangeClass, (*decider).obtainNewSet, (*decider).push, (*decider).finishMoves,
		(*decider).gate, (*decider).beginMoves, (*decider).withdraw,
		(*decider).scale, (*decider).markMachines, (*decider).markSets, (*decider).number, (*decider).prune,
	); found {
		return d.live(plan)
	}
	if plan, found := d.report(d.status()); found {
		return plan
	}
	if plan, found := d.recordRevision(); found {
		return d.live(plan)
	}
	if plan, found := d.tidy(); found {
		return d.live(plan)
	}
	return d.wait()
}

// live passes on a plan that was made from a live read, and asks for one otherwise. It guards
// everything that can't be undone. Orders that spend availability, or delete, need a fresh read:
// each write is guarded by the version of one set or machine, and not by those of the others that
// it was decided on.
func (d *decider) live(plan Plan) Plan {
	bound := len(plan.Scale)+len(plan.Mark)+len(plan.Delete) > 0
	if d.o.Read.Live() && (!bound || d.o.Read.Within(machineset.DeleteWithin, d.now)) {
		if bound {
			plan.Until = d.o.Read.Until(machineset.DeleteWithin, d.now)
		}
		return plan
	}
	return Plan{ReadLive: true, Why: decision.Why{Reason: reasonReadLive, Name: plan.Why.Reason.String()}}
}

// holdIfRefused gives no more orders in a pass in which one was refused, nor in later passes before
// the time has come. An event that wakes the deployment earlier, such as its own status, does not
// shorten the wait.
func (d *decider) holdIfRefused() {
	switch {
	case d.o.Failed != nil:
		d.holdUntil(d.o.Failed, d.now.Add(d.p.Retry.Backoff(d.o.Failures, 0)))
	case d.o.Refused != nil && d.now.Before(d.o.Refused.Until):
		d.holdUntil(&d.o.Refused.Outcome, d.o.Refused.Until)
	}
}

func (d *decider) holdUntil(refused *machine.Outcome, at time.Time) {
	d.hold = decision.Why{Reason: reasonOrderRefused, Code: refused.Code, Detail: refused.Message, For: at.Sub(d.now)}
	d.lookAt(at)
}

// held reports whether no more orders are given.
func (d *decider) held() bool { return d.hold.Reason != (decision.Reason{}) }

// lookAt makes t the time of the next decision unless an earlier one is known.
func (d *decider) lookAt(t time.Time) {
	if d.wake.IsZero() || t.Before(d.wake) {
		d.wake = t
	}
}

// wait ends a pass.
func (d *decider) wait() Plan {
	why := decision.Why{Reason: reasonRollout, Cause: d.step, Detail: d.remark()}
	if d.deployment.Spec.Paused {
		why.Reason = reasonPaused
	}
	if d.o.Frozen {
		why.Reason = reasonFrozen
	}
	warn := d.deployment.Spec.Strategy.tolerated()
	switch {
	case d.held():
		why = d.hold
		if d.o.Failed != nil {
			warn = why
		}
	case d.gathered > 0:
		why = decision.Why{Reason: reasonGathering, For: d.gathered}
	case d.throttled > 0 && d.step.Reason == rollout.ReasonDone:
		why = decision.Why{Reason: reasonThrottled, For: d.throttled, Cause: d.step}
	}
	return d.rest(why, warn)
}

// rest plans the next decision for the next known event, or after Resync if there is none.
func (d *decider) rest(why, warn decision.Why) Plan {
	d.lookAt(d.now.Add(d.p.Resync))
	return Plan{At: d.wake, Why: why, Warn: warn}
}

// invalid records which field can't be acted upon, and waits for a change. It keeps the counts of
// machines up to date.
func (d *decider) invalid(bad *object.FieldError) Plan {
	why := decision.Why{Reason: reasonSpecInvalid, Name: bad.Field, Detail: bad.Problem}
	if d.deployment.Spec.Selector.Empty() && bad.Field == "spec.selector" {
		why = decision.Why{Reason: reasonSelectsAll, Name: bad.Field}
	}
	status := d.counted()
	status.Conditions = object.SetCondition(status.Conditions, object.Condition{
		Type: ConditionSpecValid, Status: object.False, Reason: why.Reason.String(),
		Message: bad.Error(), Since: d.stamp(),
	})
	if plan, found := d.report(status); found {
		return plan
	}
	return d.rest(why, why)
}

// stamp returns now as stores keep it.
func (d *decider) stamp() time.Time { return d.now.Truncate(time.Second) }
