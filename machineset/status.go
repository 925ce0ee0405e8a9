package machineset

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// writeStatus plans a write of the status if it differs from the stored one. The write waits for the status
// interval, unless an order was refused. While the status stays the same, nothing is allocated, unless machines
// failed.
func (d *state) writeStatus() (Plan, bool) {
	c, next := &d.summary, d.s.Status
	next.Replicas, next.FullyLabeled = int32(c.present), int32(c.fullyLabeled)
	next.Ready, next.Available, next.Preserved = int32(c.ready), int32(c.available), int32(c.preserving.preserved)
	next.PreservedFailed, next.AutoPreserved = int32(c.preserving.failed), int32(len(c.preserving.counted))
	next.ObservedGeneration = d.s.Generation
	next.Conditions = d.templateCondition(next.Conditions)
	next.CrashLoop = d.currentCrashLoop()
	next.Conditions = d.backoffCondition(d.slowedCondition(d.frozenCondition(next.Conditions)), &next.CrashLoop)
	next.Conditions = d.pausedCondition(next.Conditions)
	next.Failed, next.Failing = d.failedMachines(next.Failed), int32(c.failures)
	refused := d.recordRefusal(&next)
	if next.Equal(&d.s.Status) {
		return Plan{}, false
	}
	if refused == (decision.Why{}) {
		if at := d.statusAt(&next); d.now.Before(at) {
			d.lookAgain(at)
			if d.waiting == (decision.Why{}) {
				d.waiting = d.tally(reasonStatusLater)
				d.waiting.For = at.Sub(d.now)
			}
			return Plan{}, false
		}
	}
	plan := Plan{Write: &UpdateStatus{next.Clone()}, Why: d.tally(reasonStatus)}
	if refused != (decision.Why{}) {
		plan.Why, plan.Warn = refused, refused
	} else if bad := d.s.Spec.Template.InvalidEntry(); bad != nil {
		plan.Warn = decision.Why{Reason: reasonSpecInvalid, Name: bad.Field, Detail: bad.Problem}
	}
	return plan, true
}

// statusAt returns when this process may write the status next. Zero: at any time, also after the clock
// was set back.
func (d *state) statusAt(next *Status) time.Time {
	written := d.o.StatusWritten
	if written.IsZero() || written.After(d.now) {
		return time.Time{}
	}
	wait := max(d.p.StatusInterval, 0)
	if d.s.Owner != nil && d.onlyProgress(next) {
		wait = max(wait, d.p.ProgressInterval)
	}
	return written.Add(wait)
}

// onlyProgress reports whether a status differs only in the numbers of machines and in the observed generation,
// which a deployment changes with each write of the spec.
func (d *state) onlyProgress(next *Status) bool {
	have, counted := &d.s.Status, *next
	counted.ObservedGeneration = have.ObservedGeneration
	counted.Replicas, counted.FullyLabeled = have.Replicas, have.FullyLabeled
	counted.Ready, counted.Available, counted.Preserved = have.Ready, have.Available, have.Preserved
	counted.PreservedFailed, counted.AutoPreserved, counted.Failing = have.PreservedFailed, have.AutoPreserved, have.Failing
	return counted.Equal(have)
}

// templateCondition returns conditions with ConditionSpecValid if no API server accepts the node template.
func (d *state) templateCondition(conditions []object.Condition) []object.Condition {
	bad := d.s.Spec.Template.InvalidEntry()
	if bad == nil {
		return withoutCondition(conditions, ConditionSpecValid)
	}
	return withCondition(conditions, object.Condition{
		Type: ConditionSpecValid, Status: object.False, Reason: reasonSpecInvalid.String(),
		Message: bad.Error(), Since: d.stamp(),
	})
}

func (d *state) frozenCondition(conditions []object.Condition) []object.Condition {
	if !d.o.Frozen {
		return withoutCondition(conditions, ConditionFrozen)
	}
	return withCondition(conditions, object.Condition{
		Type: ConditionFrozen, Status: object.True, Reason: reasonFrozen.String(),
		Message: "no machine is created", Since: d.stamp(),
	})
}

// failedMachines returns the machines whose last operation failed. It returns have if that is the same.
func (d *state) failedMachines(have []FailedMachine) []FailedMachine {
	failing := d.summary.failing.sorted()
	if slices.EqualFunc(failing, have, func(r ranked, s FailedMachine) bool {
		want := FailedMachineOf(r.machine, d.s.Name)
		return s.Equal(&want)
	}) {
		return have
	}
	out := make([]FailedMachine, len(failing))
	for i, r := range failing {
		out[i] = FailedMachineOf(r.machine, d.s.Name)
	}
	return out
}

// waitForChange writes the status if it differs, and otherwise ends the pass.
func (d *state) waitForChange() Plan {
	if at := d.retryAt(); !at.IsZero() {
		d.lookAgain(at)
		d.waiting = decision.Why{Reason: reasonRetryAt, Detail: d.s.Status.LastOperation.Message, For: at.Sub(d.now)}
	}
	for _, at := range [...]time.Time{d.summary.nextAvailable, d.summary.expiries.next} {
		if !at.IsZero() {
			d.lookAgain(at)
		}
	}
	if plan, found := d.writeStatus(); found {
		return plan
	}
	why := d.waiting
	if why == (decision.Why{}) {
		why = d.tally(reasonSettled)
	}
	return Plan{At: d.at, Why: why}
}

func (d *state) pausedCondition(conditions []object.Condition) []object.Condition {
	if !d.paused() {
		return withoutCondition(conditions, ConditionPaused)
	}
	return withCondition(conditions, object.Condition{
		Type: ConditionPaused, Status: object.True, Reason: reasonPaused.String(),
		Message: "paused by annotation " + d.p.Keys.Paused + ": no machine is created or deleted", Since: d.stamp(),
	})
}

// slowedCondition returns conditions with ConditionCreationSlowed, if machines wait for a VM while the provider
// refuses their class.
func (d *state) slowedCondition(conditions []object.Condition) []object.Condition {
	h := d.o.ClassBackoff
	if h == nil || d.summary.withoutVM == 0 {
		return withoutCondition(conditions, ConditionCreationSlowed)
	}
	if h.Until.After(d.now) {
		d.lookAgain(h.Until)
	}
	return withCondition(conditions, object.Condition{
		Type: ConditionCreationSlowed, Status: object.True, Reason: h.Code.String(),
		Message: h.String() + "; the next is not tried before " + h.Until.UTC().Format(time.RFC3339),
		Since:   d.stamp(),
	})
}

// recordRefusal records in the status that an order was refused in this pass, or that orders succeed again. It
// returns the reason of a new refusal. Zero: there is none.
func (d *state) recordRefusal(s *Status) decision.Why {
	if !d.retryAfter(d.o.Failures).IsZero() {
		return decision.Why{} // stored already
	}
	if kind, why, ok := d.o.Refused.worst(); ok {
		s.LastOperation = machine.Operation{
			Kind: kind, State: machine.StateFailed, Code: why.Code, Message: why.String(),
			Time: d.stamp(), Against: machine.Inputs{Machine: d.s.Generation},
		}
		s.Conditions = withCondition(s.Conditions, object.Condition{
			Type: ConditionReplicaFailure, Status: object.True, Reason: why.Reason.String(),
			Message: s.LastOperation.Message, Since: d.stamp(),
		})
		return why
	}
	if d.short() != 0 {
		return decision.Why{} // orders wait for another reason, so it is not known whether they would succeed
	}
	if s.LastOperation.State == machine.StateFailed {
		s.LastOperation = machine.Operation{
			Kind: s.LastOperation.Kind, State: machine.StateSuccessful, Time: d.stamp(),
		}
	}
	s.Conditions = withoutCondition(s.Conditions, ConditionReplicaFailure)
	return decision.Why{}
}
