package deployment

import (
	"fmt"

	"github.com/millwright-go/millwright/object"
)

// Complete reports whether the rollout of d is complete, by its status: the status is that of the
// present spec, and Replicas, Updated and Available are all as many as the spec wants. Machines that
// are being deleted may still exist.
//
// It is stricter than ProgressAvailable, which stays when machines fail or are kept for inspection
// afterwards.
func Complete(d *Deployment) bool { return Missing(d) == "" }

// Missing says what d lacks to be Complete, as in "3 of 10 machines are updated", and which machines are
// held up by what, as their last operations say. Empty: it is complete. It
// fits store.Await, which waits for a rollout and can report its progress.
func Missing(d *Deployment) string {
	missing := lack(d)
	if missing == "" {
		return ""
	}
	missing += heldUpRemark(d)
	if d.Spec.Paused {
		missing += "; the deployment is paused"
	}
	if c := object.FindCondition(d.Status.Conditions, ConditionClassMissing); c != nil && d.Status.ObservedGeneration == d.Generation {
		missing += "; " + c.Message
	}
	if c := object.FindCondition(d.Status.Conditions, ConditionClassInvalid); c != nil && d.Status.ObservedGeneration == d.Generation {
		missing += "; " + c.Message
	}
	switch c := object.FindCondition(d.Status.Conditions, ConditionProgressing); {
	case c == nil || c.Status != object.False:
	case c.Reason == ProgressDeadlineExceeded:
		missing += fmt.Sprintf("; there was no progress within %s", d.Spec.ProgressDeadline)
	case c.Reason == ProgressStopped:
		missing += "; " + c.Message
	}
	return missing
}

// lack is Missing without what holds it up.
func lack(d *Deployment) string {
	s, wanted := &d.Status, max(d.Spec.Replicas, 0)
	invalid := object.FindCondition(s.Conditions, ConditionSpecValid)
	switch {
	case d.Deleted():
		return "the deployment is being deleted"
	case s.ObservedGeneration < d.Generation:
		return "the present spec has not been seen yet"
	case invalid != nil && invalid.Status == object.False:
		return "the spec is invalid: " + invalid.Message
	case s.Updated < wanted:
		return fmt.Sprintf("%d of %d machines are updated", s.Updated, wanted)
	case s.Replicas > s.Updated:
		return fmt.Sprintf("old machines are still there: %d", s.Replicas-s.Updated)
	case s.Updated > wanted:
		return fmt.Sprintf("more machines than wanted: %d", s.Updated-wanted)
	case s.Available < wanted && s.Preserved > 0:
		return fmt.Sprintf("%d of %d machines are available, %d are kept for inspection", s.Available, wanted, s.Preserved)
	case s.Available < wanted:
		return fmt.Sprintf("%d of %d machines are available", s.Available, wanted)
	}
	return ""
}
