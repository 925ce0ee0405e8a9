package machinepool

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// heldFor is how long no further instance is chosen after the provider has replaced one that was
// removed. Each attempt costs a drain and a machine.
const heldFor = time.Hour

// hold records that the provider undoes a scale-down: it removed instances, kept the size and made
// others. Without that, one instance after the other would be drained and replaced without end.
func (d *decider) hold() (Plan, bool) {
	if !d.undone() || d.held() {
		return Plan{}, false
	}
	why := d.heldWhy()
	c := object.Condition{
		Type: ConditionScaleDownHeld, Status: object.True, Reason: why.Reason.String(), Message: why.String(), Since: d.stamp(),
	}
	plan := d.setStatus(why, func(s *Status) {
		s.Conditions = object.SetCondition(object.DropCondition(s.Conditions, c.Type), c)
	})
	plan.Warn = why
	return plan, true
}

// undone reports whether DeleteInstances has succeeded for the wanted size, and the group has as
// many instances as at the look before, another one in place of the removed one. A group that was
// seen at its size since then is larger for another reason.
func (d *decider) undone() bool {
	op, known := &d.s.Status.LastOperation, d.s.Spec.ProviderIDs
	if !d.found() || op.Call != DeleteInstances || op.State != machine.StateSuccessful || op.Replicas != d.wanted() {
		return false
	}
	if d.surplus() == 0 || len(known) <= int(d.wanted()) || int(d.staying()) < len(known) {
		return false
	}
	return slices.ContainsFunc(d.instances, func(i Instance) bool { return !i.Going && !slices.Contains(known, i.ProviderID) })
}

// held reports whether the recorded hold is about the size that is wanted now, and not over yet.
func (d *decider) held() bool {
	c := object.FindCondition(d.s.Status.Conditions, ConditionScaleDownHeld)
	return c != nil && c.Status == object.True && c.Message == d.heldWhy().String() &&
		!c.Since.After(d.now) && d.now.Before(c.Since.Add(heldFor))
}

func (d *decider) heldWhy() decision.Why {
	return decision.Why{Reason: reasonHeld, All: int64(d.wanted()), For: heldFor}
}

// noteHeld drops a hold that is over: its time, its size, or the surplus.
func (d *decider) noteHeld(next *Status) {
	if object.FindCondition(next.Conditions, ConditionScaleDownHeld) == nil || !d.found() || d.surplus() > 0 && d.held() {
		return
	}
	next.Conditions = object.DropCondition(next.Conditions, ConditionScaleDownHeld)
}
