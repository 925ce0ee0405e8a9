package deployment

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// report is the status as it should be, and whether it may be written yet.
type report struct {
	*summary
	scaler    *scaler
	rollout   *resizing
	throttled time.Duration // how long the status has to wait; zero: it need not
}

// Reasons of ConditionAvailable, in the spelling that stored objects have.
const (
	MinimumAvailable   = "MinimumReplicasAvailable"
	MinimumUnavailable = "MinimumReplicasUnavailable"
)

// Reason of ConditionReplicaFailure when an order to a set was refused. Any
// other reason is that of a set's own condition.
const FailureRefused = "OrderRefused"

// report plans a write of the status if it differs from what is stored and the
// last write is long enough ago.
func (d *report) report(want Status) (Plan, bool) {
	if want.Equal(&d.deployment.Status) {
		return Plan{}, false
	}
	if next := d.statusAt(d.statusInterval(&want)); d.now.Before(next) {
		told := want
		told.ProgressedAt, told.RolloutSince = d.deployment.Status.ProgressedAt, d.deployment.Status.RolloutSince
		if !told.Equal(&d.deployment.Status) { // a time alone delays nothing after the status
			d.throttled = next.Sub(d.now)
		}
		d.lookAt(next)
		return Plan{}, false
	}
	why := decision.Why{Reason: reasonStatus, Count: int64(want.Available), All: int64(max(d.deployment.Spec.Replicas, 0))}
	write := &UpdateStatus{Status: want}
	if began := d.deployment.Status.RolloutSince; !began.IsZero() && want.RolloutSince.IsZero() {
		write.News = NewsNormal
		why = decision.Why{
			Reason: reasonRolloutComplete, Name: d.current.set.Name, Number: d.revision,
			Count: int64(want.Available), For: max(0, d.now.Sub(began)),
		}
	}
	return Plan{Write: write, Why: why}, true
}

// statusInterval returns the least time between the last write of the status and that of this one.
// Nothing delays the first report of a rollout, which says when it began.
func (d *report) statusInterval(want *Status) time.Duration {
	switch {
	case d.onlyProgress(want):
		return max(d.p.StatusInterval, d.p.ProgressInterval)
	case (progress{d.summary, d.rollout}).begun():
		return 0
	}
	return max(d.p.StatusInterval, 0)
}

// onlyProgress reports whether a status only says how far machines are, and they are not all done.
func (d *report) onlyProgress(want *Status) bool {
	have := &d.deployment.Status
	settled := d.rollout.step.Reason == rollout.ReasonDone && want.Unavailable == 0
	sameNames := slices.EqualFunc(want.Failed, have.Failed, func(a, b machineset.FailedMachine) bool { return a.Name == b.Name })
	return !settled && sameNames && want.RolloutFailures.Equal(&have.RolloutFailures) && want.ObservedGeneration == have.ObservedGeneration && want.Collisions == have.Collisions &&
		want.Wanted == have.Wanted && want.WantedSince.Equal(have.WantedSince) && want.ScaledAt.Equal(have.ScaledAt) &&
		object.SameVerdicts(want.Conditions, d.gotFurther(have.Conditions, want))
}

// gotFurther returns the conditions of a rollout that had begun, if want only says that it made
// progress.
func (d *report) gotFurther(have []object.Condition, want *Status) []object.Condition {
	next := object.FindCondition(want.Conditions, ConditionProgressing)
	_, had := progress{d.summary, d.rollout}.hadProgress()
	if next == nil || next.Reason != ProgressUpdated || had != ProgressCreated && had != ProgressFound {
		return have
	}
	return object.SetCondition(slices.Clone(have), *next)
}

// counted returns the status that any deployment has, including one that is being deleted or is
// invalid.
func (d *report) counted() Status {
	s := d.deployment.Status.Clone()
	s.ObservedGeneration = d.deployment.Generation
	s.Failed, s.Failing = d.failedMachines(), d.failures
	s.Expired = d.expired()
	s.Replicas, s.Updated, s.Ready, s.Available, s.InPlace = 0, 0, 0, 0, InPlaceCounts{}
	s.Preserved, s.PreservedFailed = 0, 0
	told := int64(0)
	for i := range d.sets {
		f := &d.sets[i]
		s.Replicas += f.actual
		s.Ready += f.ready
		s.Available += f.available
		s.Preserved += f.preserved
		s.PreservedFailed += f.preservedFailed
		told += int64(max(f.set.Spec.Replicas, 0))
		s.InPlace.add(&f.inPlace)
	}
	if d.current != nil {
		s.Updated = d.current.actual
	}
	s.Unavailable = int32(min(max(0, told-int64(s.Available)), math.MaxInt32))
	s.Conditions = d.slowed(s.Conditions)
	if c := d.replicaFailure(); c.Type != "" {
		s.Conditions = object.SetCondition(s.Conditions, c)
	} else {
		s.Conditions = withoutCondition(s.Conditions, ConditionReplicaFailure)
	}
	return s
}

// replicaFailure returns the condition to set if orders to sets, or creations and deletions by
// them, fail. The zero condition: none does. The new set's failures come first, then those of the
// oldest. Only the code of a refusal is recorded, because its message may differ each time, and
// each write counts as a change.
func (d *report) replicaFailure() object.Condition {
	if failed := d.o.Failed; failed != nil {
		return object.Condition{
			Type: ConditionReplicaFailure, Status: object.True, Reason: FailureRefused, Since: d.stamp(),
			Message: "an order to a set was refused: " + failed.Code.Contract(),
		}
	}
	found := d.current.failure()
	for i := 0; i < len(d.sets) && found == nil; i++ {
		found = d.sets[i].failure()
	}
	if found == nil {
		return object.Condition{}
	}
	return object.Condition{
		Type: ConditionReplicaFailure, Status: object.True,
		Reason: found.Reason, Message: found.Message, Since: d.stamp(),
	}
}

// failure returns a set's own condition that machines could not be created or deleted. Nil: they
// could.
func (f *family) failure() *object.Condition {
	if f == nil {
		return nil
	}
	c := object.FindCondition(f.set.Status.Conditions, ConditionReplicaFailure)
	if c == nil || c.Status != object.True {
		return nil
	}
	return c
}

// status returns the whole status of a deployment that can be acted upon.
func (d *report) status() Status {
	s := d.counted()
	d.scaler.noteWanted(&s, d.rollout.gathered > 0)
	s.Conditions = withoutCondition(s.Conditions, ConditionSpecValid)
	if bad := d.deployment.Spec.Template.InvalidEntry(); bad != nil {
		s.Conditions = object.SetCondition(s.Conditions, d.specInvalid(bad, reasonSpecInvalid))
	}
	s.Conditions = object.SetCondition(s.Conditions, d.availability(&s))
	s.Conditions = object.SetCondition(s.Conditions, progress{d.summary, d.rollout}.progress(&s))
	hotUpdate{d.summary}.countOutdated(&s)
	s.Conditions = d.classInvalid(d.classMissing(s.Conditions))
	s.RolloutFailures = d.rolloutFailures
	return s
}

// specInvalid is the condition of a spec that can't be acted upon, or not by all that it asks for.
func (d *report) specInvalid(bad *object.FieldError, reason decision.Reason) object.Condition {
	return object.Condition{
		Type: ConditionSpecValid, Status: object.False, Reason: reason.String(), Message: bad.Error(), Since: d.stamp(),
	}
}

// ClassNotFound is the reason of ConditionClassMissing.
const ClassNotFound = "ClassNotFound"

// classMissing returns conditions with what is known of the template's class.
func (d *report) classMissing(conditions []object.Condition) []object.Condition {
	if !d.o.ClassMissing {
		return withoutCondition(conditions, ConditionClassMissing)
	}
	return object.SetCondition(conditions, object.Condition{
		Type: ConditionClassMissing, Status: object.True, Reason: ClassNotFound, Since: d.stamp(),
		Message: "class " + d.deployment.Spec.Template.Spec.Class.Name + " does not exist; no VM is created until it does",
	})
}

// classInvalid returns conditions with what is wrong with the template's class.
func (d *report) classInvalid(conditions []object.Condition) []object.Condition {
	if d.o.ClassInvalid == "" {
		return withoutCondition(conditions, ConditionClassInvalid)
	}
	return object.SetCondition(conditions, object.Condition{
		Type: ConditionClassInvalid, Status: object.True, Reason: ConditionClassInvalid, Since: d.stamp(),
		Message: d.o.ClassInvalid + "; no machine is updated in place until that is put right",
	})
}

func (d *report) availability(s *Status) object.Condition {
	replicas := d.deployment.Spec.Replicas
	floor := max(0, int64(replicas)-int64(d.bounds.Unavailable))
	if d.deployment.Spec.Strategy.Kind == Recreate {
		floor = int64(replicas) // all may be missing, but the condition says so
	}
	kept := ""
	if s.Preserved > 0 {
		floor = max(0, floor-int64(s.Preserved))
		kept = fmt.Sprintf(", kept for inspection: %d", s.Preserved)
	}
	c := object.Condition{Type: ConditionAvailable, Status: object.True, Reason: MinimumAvailable, Since: d.stamp()}
	if int64(s.Available) < floor {
		c.Status, c.Reason = object.False, MinimumUnavailable
	}
	c.Message = fmt.Sprintf("machines available: %d, wanted: %d, floor: %d%s", s.Available, replicas, floor, kept)
	return c
}
