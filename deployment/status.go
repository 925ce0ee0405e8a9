package deployment

import (
	"fmt"

	"github.com/millwright-go/millwright/object"
)

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
func (d *decision) report(want Status) (Plan, bool) {
	if want.Equal(&d.deployment.Status) {
		return Plan{}, false
	}
	// A last write in the future means that the clock was set back since.
	last, next := d.o.StatusWritten, d.o.StatusWritten.Add(d.p.StatusInterval)
	if !last.IsZero() && !last.After(d.now) && next.After(d.now) {
		d.throttled = next.Sub(d.now)
		d.lookAt(next)
		return Plan{}, false
	}
	why := Why{Reason: ReasonStatus, Count: want.Available, Of: max(d.deployment.Spec.Replicas, 0)}
	return Plan{Write: &UpdateStatus{want}, Why: why}, true
}

// counted is the status with what can be said of any deployment, also of one
// that is being deleted or holds nonsense.
func (d *decision) counted() Status {
	s := d.deployment.Status.Clone()
	s.ObservedGeneration = d.deployment.Generation
	s.Failed = d.failed
	s.Replicas, s.Updated, s.Ready, s.Available, s.InPlace = 0, 0, 0, 0, InPlaceCounts{}
	for i := range d.sets {
		f := &d.sets[i]
		s.Replicas += f.actual
		s.Ready += f.ready
		s.Available += f.available
		s.InPlace.add(&f.inPlace)
	}
	if d.current != nil {
		s.Updated = d.current.actual
	}
	s.Unavailable = max(0, max(d.deployment.Spec.Replicas, 0)-s.Available)
	if c := d.replicaFailure(); c.Type != "" {
		s.Conditions = object.SetCondition(s.Conditions, c)
	} else {
		s.Conditions = object.DropCondition(s.Conditions, ConditionReplicaFailure)
	}
	return s
}

// replicaFailure is the condition to be set if orders to sets, or creations
// and deletions by them, fail; the zero condition: none does. The new set's
// troubles matter most, then those of the oldest. Only the code of a refusal
// is recorded: its message may be another one each time, and each write is
// seen as a change.
func (d *decision) replicaFailure() object.Condition {
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

// failure is a set's own condition that machines could not be created or
// deleted; nil: they could.
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

// status is the whole status of a deployment that can be acted upon.
func (d *decision) status() Status {
	s := d.counted()
	d.noteWanted(&s)
	s.Conditions = object.DropCondition(s.Conditions, ConditionSpecValid)
	s.Conditions = object.SetCondition(s.Conditions, d.availability(&s))
	s.Conditions = object.SetCondition(s.Conditions, d.progress(&s))
	return s
}

func (d *decision) availability(s *Status) object.Condition {
	replicas := d.deployment.Spec.Replicas
	floor := max(0, int64(replicas)-int64(d.bounds.Unavailable))
	if d.deployment.Spec.Strategy.Kind == Recreate {
		floor = int64(replicas) // all may be missing, but not unnoticed
	}
	c := object.Condition{Type: ConditionAvailable, Status: object.True, Reason: MinimumAvailable, Since: d.stamp()}
	if int64(s.Available) < floor {
		c.Status, c.Reason = object.False, MinimumUnavailable
	}
	c.Message = fmt.Sprintf("machines available: %d, wanted: %d, floor: %d", s.Available, replicas, floor)
	return c
}
