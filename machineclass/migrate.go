package machineclass

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// migrate takes the next step of a migration. An idle plan: there is none to
// take now, for the reason given; without a reason, all are done.
func (d *decision) migrate() Plan {
	ref, one := d.foreign()
	why := Why{Name: d.o.Key.Name, Kind: ref.GroupKind()}
	old := d.o.Old
	switch {
	case !one:
		return d.leave(why, ReasonSeveralKinds, codes.None)
	case old == nil:
		why.Reason = ReasonReadOld
		return Plan{Effect: ReadOld{ref}, Why: why}
	case !old.Found && !d.madeFrom(ref):
		return d.leave(why, ReasonOldMissing, codes.Medium)
	case old.Found && (!old.Migrated || d.o.Class == nil || d.o.Filled != nil):
		if plan := d.fill(ref, why); plan.Why != (Why{}) {
			return plan
		}
	}
	if old.Found && !old.Migrated && !d.o.Marked {
		why.Reason = ReasonMark
		return Plan{Effect: MarkOld{Class: ref, Version: old.Version}, Why: why}
	}
	if !d.o.Moved {
		why.Reason = ReasonMove
		why.References = len(d.o.References)
		return Plan{Effect: &Move{d.o.References}, Why: why}
	}
	return Plan{}
}

// foreign is the one older class that all references name. Two classes of
// different kinds can't both become the one of their name.
func (d *decision) foreign() (ref machine.ClassRef, one bool) {
	ref = d.o.References[0].Class
	for i := range d.o.References {
		if d.o.References[i].Class != ref {
			return ref, false
		}
	}
	return ref, true
}

// madeFrom tells whether our class is known to have been made from that kind.
func (d *decision) madeFrom(ref machine.ClassRef) bool {
	return d.o.Class != nil && d.o.Class.Annotations[MigratedFrom] == ref.GroupKind()
}

// leave leaves the older class and the references to it as they are, and says
// so.
func (d *decision) leave(why Why, reason Reason, again codes.RetryClass) Plan {
	why.Reason = reason
	plan := Plan{Why: why, Warn: why}
	if again != codes.None {
		plan.At = d.now.Add(again.Period(0))
	}
	return plan
}

// fill has the class filled and stored; a plan without a reason: it is.
func (d *decision) fill(ref machine.ClassRef, why Why) Plan {
	filled := d.o.Filled
	switch {
	case filled == nil:
		if at, failed := d.retryAt(); failed {
			return d.failed(why, d.o.Failed.Outcome, at)
		}
		why.Reason = ReasonFill
		return Plan{Effect: Fill{ref}, Why: why}
	case filled.Code != codes.OK:
		at, _ := d.retryAt()
		return d.failed(why, filled.Outcome, at)
	case d.o.Stored:
		return Plan{}
	}
	if problem := d.unusable(filled.Class); problem != "" {
		why.Detail = problem
		return d.leave(why, ReasonFilledBadly, codes.Medium)
	}
	return d.store(ref, why)
}

// store stores the class as it was filled, unless it is like that already.
func (d *decision) store(ref machine.ClassRef, why Why) Plan {
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
		why.Reason = ReasonComplete
		return Plan{Write: &Update{want}, Why: why}
	}
	why.Reason = ReasonCreate
	return Plan{Write: &Create{want}, Why: why}
}

// unusable says what is wrong with a class that a driver has filled.
func (d *decision) unusable(c *machine.Class) string {
	if c == nil || c.SpecEqual(&machine.Class{}) {
		return "the driver has left it empty"
	}
	if err := c.Validate(); err != nil {
		return err.Error()
	}
	return ""
}

// retryAt is when the driver is asked again after a failure; zero: not before
// the older class changes. failed: there is one that counts, and its time has
// not come. One that claims to lie in the future counts for nothing.
func (d *decision) retryAt() (at time.Time, failed bool) {
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

// failed says what the driver answered, and waits.
func (d *decision) failed(why Why, answer machine.Outcome, at time.Time) Plan {
	why.Reason, why.Code, why.Detail = ReasonFillFailed, answer.Code, answer.Message
	if answer.Code == codes.Unimplemented {
		why.Reason = ReasonUnsupported
	}
	return Plan{At: at, Why: why, Warn: why}
}
