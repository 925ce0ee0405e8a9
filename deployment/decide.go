package deployment

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// Decide decides what to do next about one deployment. It changes none of its arguments, and
// returns the same plan for the same arguments.
//
// Only a caller's mistake is an error: decision.ErrNoObservation, or an *object.FieldError for a
// deployment without UID, which no store holds, or for a policy out of range. A deployment with
// invalid contents gets a plan that says so.
func Decide(o *Observation, p *Policy, now time.Time) (Plan, error) {
	if o == nil || o.Deployment == nil {
		return Plan{}, fmt.Errorf("deployment.Decide: %w", decision.ErrNoObservation)
	}
	p = p.WithDefaults()
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	if o.Deployment.UID == "" {
		return Plan{}, object.Invalid("metadata.uid", "must not be empty").Of("deployment", o.Deployment.Key)
	}
	d := count(o, p, now)
	if d.deployment.Deleted() {
		return d.remove(), nil
	}
	plan := d.reconcile()
	plan.Gathering = d.batchSince
	return plan, nil
}

// reconcile decides about a deployment that is not being deleted. It tries its steps in this order, and the
// first that has something to do makes the plan. Orders come before the status, so that a status never delays
// them. beginCount comes before the orders that too many failures would stop.
func (d *state) reconcile() Plan {
	bad := d.deployment.invalidField(d.p.Keys)
	if bad == nil {
		bad = machineset.AboveLimit(d.deployment.Spec.Replicas, d.p.MaxReplicas)
	}
	if bad == nil {
		bad = d.selectorChanged()
	}
	if bad != nil {
		return d.invalid(bad)
	}
	if !d.deployment.HasFinalizer(Finalizer) {
		changed := d.deployment.Clone()
		changed.AddFinalizer(Finalizer)
		if len(d.sets) == 0 && !changed.Spec.Paused {
			changed.Revision = d.revision // the revision of the set to be created next
		}
		return Plan{Write: &Update{Deployment: changed}, Why: decision.Why{Reason: reasonFinalizer}}
	}
	d.hide()
	d.countChoices()
	d.next = d.nextStep()
	d.holdIfRefused()
	if plan, found := decision.FirstOf(d,
		(*state).claim,
		(*state).rollBack,
		(*state).exchangeClass,
		(*state).ensureNewSet,
		(*state).syncTemplates,
		(*state).finishMoves,
		(*state).openOrClose,
		(*state).beginMoves,
		(*state).withdraw,
		(*state).beginCount,
		(*state).scale,
		(*state).markMachines,
		(*state).markSets,
		(*state).numberNewSet,
		(*state).prune,
	); found {
		return d.live(plan)
	}
	if plan, found := d.writeStatus(d.wantedStatus()); found {
		return plan
	}
	if d.throttled > 0 {
		return d.wait()
	}
	if plan, found := d.recordRevision(); found {
		return d.live(plan)
	}
	if plan, found := d.pruneChoices(); found {
		return d.live(plan)
	}
	return d.wait()
}

// wait ends a pass.
func (d *state) wait() Plan {
	why := decision.Why{Reason: reasonRollout, Cause: d.next.why, Detail: d.waitRemark()}
	if d.deployment.Spec.Paused {
		why.Reason = reasonPaused
	}
	if d.o.Frozen {
		why.Reason = reasonFrozen
	}
	warn := d.deployment.Spec.Strategy.warning()
	if unusable := d.unusableClass(); unusable != "" {
		warn = decision.Why{Reason: reasonClassInvalid, Detail: unusable}
		d.wakeBy(d.now.Add(classRetry))
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
	case d.batchWait > 0:
		why = decision.Why{Reason: reasonBatched, For: d.batchWait}
	case d.throttled > 0 && d.next.why.Reason == rollout.ReasonDone:
		why = decision.Why{Reason: reasonThrottled, For: d.throttled, Cause: d.next.why}
	}
	plan := d.waitUntilWake(why, warn)
	plan.HeldUp = d.heldUp.why()
	return plan
}

// invalid records which field is invalid, and waits for a change. It keeps the counts of machines in the status
// up to date.
func (d *state) invalid(bad *object.FieldError) Plan {
	why := decision.Why{Reason: reasonSpecInvalid, Name: bad.Field, Detail: bad.Problem}
	if d.deployment.Spec.Selector.Empty() && bad.Field == "spec.selector" {
		why = decision.Why{Reason: reasonSelectsAll, Name: bad.Field}
	}
	status := d.countedStatus()
	status.Conditions = object.SetCondition(status.Conditions, d.specInvalid(bad, why.Reason))
	if plan, found := d.writeStatus(status); found {
		return plan
	}
	return d.waitUntilWake(why, why)
}

func (d *state) available(m *machine.Machine) bool {
	return m.Ready() && !m.Preserved(d.now) && !m.AvailableAt(d.minReady()).After(d.now)
}

// minReady returns how long a machine must be ready to count as available.
func (d *state) minReady() time.Duration {
	if d.p.IgnoreMinReady {
		return 0
	}
	return d.deployment.Spec.MinReady
}

func (d *state) owner() *object.Owner {
	return &object.Owner{Kind: OwnerKind, Name: d.deployment.Name, UID: d.deployment.UID}
}

// live returns the plan if it was made from a live read, and otherwise one that asks for such a read.
// Orders that resize, delete or mark need a recent one (machineset.DeleteWithin): each is guarded by
// the version of the object it changes, but not by the versions of the others it was decided on.
func (d *state) live(plan Plan) Plan {
	bound := len(plan.Scale)+len(plan.Mark)+len(plan.Delete) > 0
	if d.o.Read.Live() && (!bound || d.o.Read.Within(machineset.DeleteWithin, d.now)) {
		if bound {
			plan.Until = d.o.Read.Until(machineset.DeleteWithin, d.now)
		}
		return plan
	}
	return Plan{ReadLive: true, Why: decision.Why{Reason: reasonReadLive, Name: plan.Why.Reason.String()}}
}

// holdIfRefused stops orders after a refusal, until the retry time. An event before that, such as the write of
// the deployment's own status, does not shorten the wait.
func (d *state) holdIfRefused() {
	switch {
	case d.o.Failed != nil:
		d.holdUntil(d.o.Failed, d.now.Add(d.p.Retry.Backoff(d.o.Failures, 0)))
	case d.o.Refused != nil && d.now.Before(d.o.Refused.Until):
		d.holdUntil(&d.o.Refused.Outcome, d.o.Refused.Until)
	}
}

func (d *state) holdUntil(refused *machine.Outcome, at time.Time) {
	d.hold = decision.Why{Reason: reasonOrderRefused, Code: refused.Code, Detail: refused.Message, For: at.Sub(d.now)}
	d.wakeBy(at)
}

// held reports whether no more orders are given.
func (d *state) held() bool { return d.hold.Reason != (decision.Reason{}) }

// wakeBy makes t the time of the next decision unless an earlier one is known.
func (d *state) wakeBy(t time.Time) {
	if d.wake.IsZero() || t.Before(d.wake) {
		d.wake = t
	}
}

// waitUntilWake plans the next decision for the next known event, or after Resync if there is none.
func (d *state) waitUntilWake(why, warn decision.Why) Plan {
	d.wakeBy(d.now.Add(d.p.Resync))
	return Plan{At: d.wake, Why: why, Warn: warn}
}

// stamp returns now in whole seconds, as stores keep times.
func (d *state) stamp() time.Time { return d.now.Truncate(time.Second) }

func (d *state) wanted(s *machineset.Set) bool {
	return d.p.Wants(d.deployment, s)
}

// statusAt returns when the status may be written again: interval after its last write. Zero: at any
// time. A last write in the future means that the clock was set back since.
func (d *state) statusAt(interval time.Duration) time.Time {
	last := d.o.StatusWritten
	if last.IsZero() || last.After(d.now) {
		return time.Time{}
	}
	return last.Add(interval)
}

// A paused set keeps its size and is not deleted: not by a rollout, not with the deployment, and
// not as an old revision. No machine joins or leaves it, except for moves already under way. Instructions for
// later, such as rollout marks, are still written on it. A paused machine is neither selected for an
// update nor replaced. If a paused object causes a wait, the reason of the wait names it.

// isPaused reports whether an object is paused.
func (d *state) isPaused(m *object.Meta) bool {
	paused, _ := machine.Paused(m, d.p.Keys.Paused)
	return paused
}

// copiedPause reports whether a set is paused only by a copy of its deployment's annotation. The
// annotation has no effect on a deployment, but other managers copy it to the sets, where it would
// pause them. So it is removed from a set if both have the same.
func (d *state) copiedPause(s *machineset.Set) bool {
	key := d.p.Keys.Paused
	text, ok := s.Annotations[key]
	return ok && key != "" && has(d.deployment.Annotations, key) && d.deployment.Annotations[key] == text
}

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}

// pausedSetRemark returns a remark that names the oldest paused set, which is not deleted because it is paused.
func (d *state) pausedSetRemark() string {
	for i := range d.sets {
		if f := &d.sets[i]; f.paused {
			return "; set " + f.set.Name + " is paused"
		}
	}
	return ""
}

// remove deletes the sets of a deployment that is being deleted. Once a live read finds none left, it
// removes the finalizer. It neither creates nor adopts sets. If the sets are to be orphaned, it leaves
// them alone and waits until they have no owner.
func (d *state) remove() Plan {
	if !d.deployment.HasFinalizer(Finalizer) {
		return Plan{Why: decision.Why{Reason: reasonNoFinalizer}}
	}
	if d.deployment.HasFinalizer(object.OrphanDependents) {
		return d.waitUntilWake(decision.Why{Reason: reasonOrphaning}, decision.Why{})
	}
	if len(d.sets) == 0 {
		changed := d.deployment.Clone()
		changed.RemoveFinalizer(Finalizer)
		return d.live(Plan{Write: &Update{Deployment: changed}, Why: decision.Why{Reason: reasonReleased}})
	}
	d.holdIfRefused()
	if plan, found := d.deleteSets(); found {
		return d.live(plan)
	}
	if plan, found := d.writeStatus(d.countedStatus()); found {
		return plan
	}
	if d.held() {
		return d.waitUntilWake(d.hold, d.hold)
	}
	return d.waitUntilWake(decision.Why{Reason: reasonWaitingForSets, Count: int64(len(d.sets)), Detail: d.pausedSetRemark()}, decision.Why{})
}

func (d *state) deleteSets() (Plan, bool) {
	if d.held() {
		return Plan{}, false
	}
	var plan Plan
	for i := range d.sets {
		if s := d.sets[i].set; !s.Deleted() && !d.sets[i].paused {
			plan.Delete = append(plan.Delete, Order{s, decision.Why{Reason: ReasonDelete, Name: s.Name}})
		}
	}
	if len(plan.Delete) == 0 {
		return Plan{}, false
	}
	plan.Why = plan.Delete[0].Why
	return plan, true
}

// openOrClose closes old sets while their machines are updated in place, so that they create no machines, and
// opens them afterwards. A set that was raised to keep machines is closed as well (see closeRestored), and
// opened once it has observed that. A closed set may have fewer machines than its size, because other sets
// have replaced the rest. So the write that opens it also lowers its size to the machines that it has. A
// paused set stays closed, because it keeps its size. If another manager has disabled the scale-up of
// the current set by a label, openOrClose removes the label.
func (d *state) openOrClose() (Plan, bool) {
	if d.held() {
		return Plan{}, false
	}
	var plan Plan
	for i := range d.sets {
		f := &d.sets[i]
		why := decision.Why{Reason: reasonOpen, Name: f.set.Name}
		closed, barred := d.mustBeClosed(f), f == d.current && d.scaleUpDisabled(f.set)
		switch {
		case closed && f == d.current:
			why.Reason = reasonCloseStopped
		case closed:
			why.Reason = reasonClose
		}
		if f.set.Deleted() || f.set.Instructions.Handover.Closed == closed && !barred || !d.mayOpenOrClose(f, closed) {
			continue
		}
		changed := f.set.Clone()
		if barred {
			changed.Labels = withoutEntry(changed.Labels, d.p.Keys.ScaleUpDisabled)
		}
		changed.Instructions.Handover.Closed = closed
		changed.Instructions.Marks = d.marks(f)
		changed.Instructions.SurgeAllowance = d.surgeAllowance(f)
		if !closed {
			changed.Spec.Replicas -= int32(f.freePlaces())
		}
		if f == d.current {
			changed.Revision = d.revision
		}
		plan.Push = append(plan.Push, Order{changed, why})
	}
	if len(plan.Push) == 0 {
		return Plan{}, false
	}
	plan.Why = plan.Push[0].Why
	return plan, true
}

// mustBeClosed reports whether a set must not create machines: an old one while its machines are updated
// in place, and the new one while a rolling update is stopped.
func (d *state) mustBeClosed(f *setState) bool {
	if f != d.current {
		return d.updatesInPlace()
	}
	return d.stopped() && d.deployment.Spec.Strategy.Kind != InPlaceUpdate
}

// mayOpenOrClose reports whether a set may be closed or opened. A set of size 0 need not be closed: it creates no
// machine anyway.
func (d *state) mayOpenOrClose(f *setState, closed bool) bool {
	if closed {
		return f.size() != 0
	}
	return d.mayOpen(f)
}

// scaleUpDisabled reports whether a label on the set keeps it from creating machines. Another manager
// puts it on old sets and never removes it.
func (d *state) scaleUpDisabled(s *machineset.Set) bool {
	_, labelled := s.Labels[d.p.Keys.ScaleUpDisabled]
	return labelled && d.p.Keys.ScaleUpDisabled != ""
}

// mayOpen reports whether a closed set may be opened. An old set that was raised must have observed
// that: until then it may be deleting machines that it would create again.
func (d *state) mayOpen(f *setState) bool {
	return !f.paused && (f == d.current || f.actingSize(d.p.Keys.RaisedFrom) >= f.size())
}
