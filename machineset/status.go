package machineset

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// status plans a write of the status if it would say something else; not
// yet, if this process wrote it a moment ago and nothing was refused since.
// Nothing is allocated while it stays as it is, unless machines failed.
func (d *decider) status() (Plan, bool) {
	c, next := &d.summary, d.s.Status
	next.Replicas, next.FullyLabeled = int32(c.present), int32(c.fullyLabeled)
	next.Ready, next.Available, next.Preserved = int32(c.ready), int32(c.available), int32(c.preserved)
	next.PreservedFailed, next.AutoPreserved = int32(c.preservedFailed), int32(len(c.preserving.counted))
	next.ObservedGeneration = d.s.Generation
	next.Conditions = withoutCondition(next.Conditions, ConditionSpecValid)
	next.CrashLoop = d.crashLoop()
	next.Conditions = d.crashLoopCondition(d.holdCondition(d.frozenCondition(next.Conditions)), &next.CrashLoop)
	next.Conditions = d.pausedCondition(next.Conditions)
	next.Failed, next.Failing = d.failedMachines(next.Failed), int32(c.failures)
	refused := d.noteRefusal(&next)
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
	}
	return plan, true
}

// statusAt is when this process may write the status again, if it is this; zero:
// at any time, also after the clock went back.
func (d *decider) statusAt(next *Status) time.Time {
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

// onlyProgress reports whether a status differs in the numbers of machines alone,
// and in the generation, which a deployment changes with each order.
func (d *decider) onlyProgress(next *Status) bool {
	have, counted := &d.s.Status, *next
	counted.ObservedGeneration = have.ObservedGeneration
	counted.Replicas, counted.FullyLabeled = have.Replicas, have.FullyLabeled
	counted.Ready, counted.Available, counted.Preserved = have.Ready, have.Available, have.Preserved
	counted.PreservedFailed, counted.AutoPreserved, counted.Failing = have.PreservedFailed, have.AutoPreserved, have.Failing
	return counted.Equal(have)
}

func (d *decider) frozenCondition(conditions []object.Condition) []object.Condition {
	if !d.o.Frozen {
		return withoutCondition(conditions, ConditionFrozen)
	}
	return withCondition(conditions, object.Condition{
		Type: ConditionFrozen, Status: object.True, Reason: reasonFrozen.String(),
		Message: "no machine is created", Since: d.stamp(),
	})
}

// failedMachines are those whose last operation failed; have, if it
// says the same.
func (d *decider) failedMachines(have []FailedMachine) []FailedMachine {
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

// withCondition is conditions with c among them; the same slice if it says so
// already, a new one otherwise.
func withCondition(conditions []object.Condition, c object.Condition) []object.Condition {
	have := object.FindCondition(conditions, c.Type)
	if have != nil && have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message {
		return conditions
	}
	return object.SetCondition(conditions, c)
}

// withoutCondition is conditions without those of a type; the same slice if
// there is none.
func withoutCondition(conditions []object.Condition, typ string) []object.Condition {
	if object.FindCondition(conditions, typ) == nil {
		return conditions
	}
	return object.DropCondition(conditions, typ)
}
