package deployment

import (
	"errors"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
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
	d := decider{summary: summary{situation: situation{o: o, p: p, deployment: o.Deployment, now: now}}}
	d.scaler.summary = &d.summary
	d.resizing = resizing{summary: &d.summary, scaler: &d.scaler, gathering: o.Gathering}
	d.report = report{summary: &d.summary, scaler: &d.scaler, rollout: &d.resizing}
	d.count()
	d.current = d.findNewSet()
	d.revision = d.revisionOf(d.current)
	d.bounds = d.deployment.Spec.bounds()
	d.countFailures()
	if d.deployment.Deleted() {
		return removal{&d.summary, &d.report}.remove(), nil
	}
	plan := d.keep()
	plan.Gathering = d.resizing.gathering
	return plan, nil
}

// decider asks the parts in order. Those that remember something are here.
type decider struct {
	summary
	scaler   scaler
	resizing resizing
	report   report
}

// keep decides about a deployment that is not being deleted. Orders come before the status, so that
// a status never delays them. That the count of failures begins comes before the
// orders that it may stop.
func (d *decider) keep() Plan {
	bad := d.deployment.invalidField(d.p.Keys)
	if bad == nil {
		bad = machineset.AboveLimit(d.deployment.Spec.Replicas, d.p.MaxReplicas)
	}
	if bad == nil {
		bad = adoption{&d.summary}.abandons()
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
	d.setAside()
	d.holdIfRefused()
	if plan, found := decision.FirstOf(d,
		func(d *decider) (Plan, bool) { return adoption{&d.summary}.claim() },
		func(d *decider) (Plan, bool) { return rollback{&d.summary}.rollBack() },
		func(d *decider) (Plan, bool) { return hotUpdate{&d.summary}.exchangeClass() },
		func(d *decider) (Plan, bool) { return newSet{&d.summary}.obtainNewSet() },
		func(d *decider) (Plan, bool) { return newSet{&d.summary}.push() },
		func(d *decider) (Plan, bool) { return moves{&d.summary}.finishMoves() },
		func(d *decider) (Plan, bool) { return inPlace{summary: &d.summary}.gate() },
		func(d *decider) (Plan, bool) { return moves{&d.summary}.beginMoves() },
		func(d *decider) (Plan, bool) { return inPlace{summary: &d.summary}.withdraw() },
		func(d *decider) (Plan, bool) { return d.beginCount() },
		func(d *decider) (Plan, bool) { return d.resizing.scale() },
		func(d *decider) (Plan, bool) { return inPlace{&d.summary, d.resizing.selects}.markMachines() },
		func(d *decider) (Plan, bool) { return notes{&d.summary}.markSets() },
		func(d *decider) (Plan, bool) { return revision{&d.summary}.number() },
		func(d *decider) (Plan, bool) { return history{&d.summary, &d.resizing}.prune() },
	); found {
		return d.live(plan)
	}
	if plan, found := d.report.report(d.report.status()); found {
		return plan
	}
	if d.report.throttled > 0 {
		return d.wait()
	}
	if plan, found := (revision{&d.summary}).recordRevision(); found {
		return d.live(plan)
	}
	if plan, found := d.scaler.tidy(); found {
		return d.live(plan)
	}
	return d.wait()
}

// wait ends a pass.
func (d *decider) wait() Plan {
	why := decision.Why{Reason: reasonRollout, Cause: d.resizing.step, Detail: d.resizing.remark()}
	if d.deployment.Spec.Paused {
		why.Reason = reasonPaused
	}
	if d.o.Frozen {
		why.Reason = reasonFrozen
	}
	warn := d.deployment.Spec.Strategy.tolerated()
	if unusable := d.unusableClass(); unusable != "" {
		warn = decision.Why{Reason: reasonClassInvalid, Detail: unusable}
		d.lookAt(d.now.Add(classRetry))
	}
	if bad := d.deployment.Spec.Template.InvalidEntry(); bad != nil {
		warn = decision.Why{Reason: reasonSpecInvalid, Name: bad.Field, Detail: bad.Problem}
	}
	if d.stopped() {
		warn = d.whyStopped()
	}
	switch {
	case d.held():
		why = d.hold
		if d.o.Failed != nil {
			warn = why
		}
	case d.resizing.gathered > 0:
		why = decision.Why{Reason: reasonGathering, For: d.resizing.gathered}
	case d.report.throttled > 0 && d.resizing.step.Reason == rollout.ReasonDone:
		why = decision.Why{Reason: reasonThrottled, For: d.report.throttled, Cause: d.resizing.step}
	}
	plan := d.rest(why, warn)
	plan.HeldUp = d.stuck.why()
	return plan
}

// invalid records which field can't be acted upon, and waits for a change. It keeps the counts of
// machines up to date.
func (d *decider) invalid(bad *object.FieldError) Plan {
	why := decision.Why{Reason: reasonSpecInvalid, Name: bad.Field, Detail: bad.Problem}
	if d.deployment.Spec.Selector.Empty() && bad.Field == "spec.selector" {
		why = decision.Why{Reason: reasonSelectsAll, Name: bad.Field}
	}
	status := d.report.counted()
	status.Conditions = object.SetCondition(status.Conditions, d.report.specInvalid(bad, why.Reason))
	if plan, found := d.report.report(status); found {
		return plan
	}
	return d.rest(why, why)
}
