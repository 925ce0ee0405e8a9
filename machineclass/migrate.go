package machineclass

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// migrate takes the next step of a migration. An idle plan with a reason: no step can be taken now.
// Without a reason: all steps are done.
func (d *decider) migrate() Plan {
	ref, one := d.foreign()
	why := decision.Why{Name: d.o.Key.Name, Cause: kind(ref.GroupKind())}
	old := d.o.Old
	switch {
	case !one:
		return d.leave(why, reasonSeveralKinds, codes.None)
	case old == nil:
		why.Reason = reasonReadOld
		return Plan{Effect: ReadOld{ref}, Why: why}
	case !old.Found && !d.madeFrom(ref):
		return d.leave(why, reasonOldMissing, codes.Medium)
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

// foreign returns the one older class that all references name. Two classes of different kinds
// can't both become the one of their name.
func (d *decider) foreign() (ref machine.ClassRef, one bool) {
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

// leave leaves the older class and the references to it as they are, and says so.
func (d *decider) leave(why decision.Why, reason decision.Reason, again codes.RetryClass) Plan {
	why.Reason = reason
	plan := Plan{Why: why, Warn: why}
	if again != codes.None {
		plan.At = d.now.Add(again.Period(0))
	}
	return plan
}

// fill makes the driver fill the class, and stores it. A plan without a reason: that is done.
func (d *decider) fill(ref machine.ClassRef, why decision.Why) Plan {
	filled := d.o.Filled
	switch {
	case filled == nil:
		if at, failed := d.retryAt(); failed {
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
		return d.leave(why, reasonFilledBadly, codes.Medium)
	}
	return d.store(ref, why)
}

// store stores the class as it was filled, unless it is already so.
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
		want.AddFinalizer(machine.Finalizer) // the references will be to it
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

// retryAt returns when the driver is asked again after a failure. Zero: not before the older class
// changes. failed: there is a failure that counts, and its time has not come. A failure from the
// future does not count.
func (d *decider) retryAt() (at time.Time, failed bool) {
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

// kind returns the kind of an older class, as a reason names it.
type kind string

func (k kind) String() string { return string(k) }
