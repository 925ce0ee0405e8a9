package machineclass

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// migrate returns the next step of a migration. An idle plan with a reason: no step can be taken now.
// An idle plan without a reason: all steps are done.
func (d *decider) migrate() Plan {
	ref, one := d.referencedKind()
	why := decision.Why{Name: d.o.Key.Name, Cause: kind(ref.GroupKind())}
	old := d.o.Old
	switch {
	case !one:
		return d.leaveAlone(why, reasonSeveralKinds, codes.None)
	case old == nil:
		why.Reason = reasonReadOld
		return Plan{Effect: ReadOld{ref}, Why: why}
	case !old.Found && !d.madeFrom(ref):
		return d.leaveAlone(why, reasonOldMissing, codes.Medium)
	case old.Found && (!old.Migrated || d.o.Class == nil || d.o.Filled != nil):
		if plan := d.fill(ref, why); plan.Why != (decision.Why{}) {
			return plan
		}
	}
	if old.Found && !old.Migrated && !d.o.Marked {
		why.Reason = reasonMark
		return Plan{Effect: MarkOld{Class: ref, Version: old.Version}, Why: why}
	}
	if !d.o.Moved {
		why.Reason = reasonMove
		why.Count = int64(len(d.o.References))
		return Plan{Effect: &Move{d.o.References}, Why: why}
	}
	return Plan{}
}

// referencedKind returns the older class that the references name. one reports whether all name the
// same: two classes of different kinds can't both become our class of their name.
func (d *decider) referencedKind() (ref machine.ClassRef, one bool) {
	ref = d.o.References[0].Class
	for i := range d.o.References {
		if d.o.References[i].Class != ref {
			return ref, false
		}
	}
	return ref, true
}

// madeFrom reports whether our class records that it was made from that kind.
func (d *decider) madeFrom(ref machine.ClassRef) bool {
	return d.o.Class != nil && d.o.Class.Annotations[MigratedFrom] == ref.GroupKind()
}

// leaveAlone leaves the older class and the references to it as they are, with a warning. again says when
// to decide again; None: after a change.
func (d *decider) leaveAlone(why decision.Why, reason decision.Reason, again codes.RetryClass) Plan {
	why.Reason = reason
	plan := Plan{Why: why, Warn: why}
	if again != codes.None {
		plan.At = d.now.Add(again.Period(0))
	}
	return plan
}

// fill makes the driver fill the class, and stores it. A plan without a reason: both are done.
func (d *decider) fill(ref machine.ClassRef, why decision.Why) Plan {
	filled := d.o.Filled
	switch {
	case filled == nil:
		if at, wait := d.retryAt(); wait {
			return d.failed(why, d.o.Failed.Outcome, at)
		}
		why.Reason = reasonFill
		return Plan{Effect: Fill{ref}, Why: why}
	case filled.Code != codes.OK:
		at, _ := d.retryAt()
		return d.failed(why, filled.Outcome, at)
	case d.o.Stored:
		return Plan{}
	}
	if problem := d.unusable(filled.Class); problem != "" {
		why.Detail = problem
		return d.leaveAlone(why, reasonFilledBadly, codes.Medium)
	}
	return d.store(ref, why)
}

// store stores the class as the driver has filled it. A plan without a reason: it is stored already.
func (d *decider) store(ref machine.ClassRef, why decision.Why) Plan {
	want := d.o.Filled.Class.Clone()
	if have := d.o.Class; have != nil {
		if have.SpecEqual(want) && d.madeFrom(ref) {
			return Plan{}
		}
		want.Meta = have.CloneMeta()
	} else {
		want.Meta = machine.Class{}.Meta
		want.Key = d.o.Key
	}
	if want.Annotations == nil {
		want.Annotations = make(map[string]string, 1)
	}
	want.Annotations[MigratedFrom] = ref.GroupKind()
	if d.p.Keep && !want.Deleted() {
		want.AddFinalizer(machine.Finalizer) // because the references will move to it
	}
	if d.o.Class != nil {
		why.Reason = reasonComplete
		return Plan{Write: &Update{want}, Why: why}
	}
	why.Reason = reasonCreate
	return Plan{Write: &Create{want}, Why: why}
}

// unusable returns what is wrong with a class that a driver has filled.
func (d *decider) unusable(c *machine.Class) string {
	if c == nil || c.SpecEqual(&machine.Class{}) {
		return "the driver has left it empty"
	}
	if err := c.Validate(); err != nil {
		return err.Error()
	}
	return ""
}

// retryAt reports whether the next call of the driver has to wait because the last one failed, and returns
// when the wait ends. If it is to wait until zero, it waits for a change of the older class. A failure for
// another version of the older class, or with a time in the future, is ignored.
func (d *decider) retryAt() (at time.Time, wait bool) {
	f := d.o.Failed
	if f == nil || f.Version != d.o.Old.Version || f.At.After(d.now) {
		return time.Time{}, false
	}
	class := codes.RecoveryFor(codes.GenerateMachineClassForMigration, f.Code).Class
	if class == codes.None {
		return time.Time{}, true
	}
	at = f.At.Add(max(class, codes.Short).Backoff(f.Failures, 0))
	return at, d.now.Before(at)
}

// failed reports the driver's answer, and waits.
func (d *decider) failed(why decision.Why, answer machine.Outcome, at time.Time) Plan {
	why.Reason, why.Code, why.Detail = reasonFillFailed, answer.Code, answer.Message
	if answer.Code == codes.Unimplemented {
		why.Reason = reasonUnsupported
	}
	return Plan{At: at, Why: why, Warn: why}
}

// kind is the kind of an older class, as a reason names it.
type kind string

func (k kind) String() string { return string(k) }
