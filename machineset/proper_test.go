package machineset_test

import (
	"fmt"
	"slices"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// improper says what is wrong with a plan, whatever led to it.
func improper(o *machineset.Observation, plan *machineset.Plan) string {
	filled := 0
	for _, orders := range [][]machineset.Order{plan.Create, plan.Delete, plan.Adopt, plan.Release, plan.Push} {
		if len(orders) > 0 {
			filled++
		}
	}
	if plan.Write != nil {
		filled++
	}
	if plan.ReadLive {
		filled++
	}
	reserves := false
	if write, ok := plan.Write.(*machineset.Update); ok {
		reserves = write.Set.Reservation.Reserved > o.Set.Reservation.Reserved
	}
	creates := len(plan.Create) > 0 || reserves
	if (len(plan.Create) > 0) == plan.Until.IsZero() {
		return "Until is for creates, and they need one"
	}
	switch {
	case filled > 1:
		return fmt.Sprintf("P8: a plan of %d things at once: %+v", filled, plan)
	case creates && (o.Frozen || o.Set.Deleted()):
		return "P25: creation by a set that is frozen or being deleted"
	case (creates || len(plan.Delete)+len(plan.Adopt)+len(plan.Release) > 0) && o.Live.IsZero():
		return "orders without a live read: " + plan.Why.String()
	case filled == 0 && plan.At.IsZero() && !waitsForever[plan.Why.Reason]:
		return "P21: waits without a time: " + plan.Why.String()
	}
	return misplaced(o, plan)
}

// waitsForever are the waits that only a change of the set can end.
var waitsForever = map[machineset.Reason]bool{
	machineset.ReasonSpecInvalid: true, machineset.ReasonNotOurs: true,
}

// misplaced says which order is for a machine that it must not touch: P10.
func misplaced(o *machineset.Observation, plan *machineset.Plan) string {
	uid := o.Set.UID
	for _, order := range slices.Concat(plan.Delete, plan.Push) {
		if !order.Machine.OwnedBy(uid) || order.Machine.Deleted() {
			return "P10: deleted or changed, though not ours or already going: " + order.Machine.Name
		}
	}
	for _, order := range plan.Create {
		m := order.Machine
		if !m.OwnedBy(uid) || !m.HasFinalizer(machine.Finalizer) || m.Name != o.Set.MachineName(order.Ordinal) {
			return "P10, P14: made without owner, finalizer or a name of its own: " + m.Name
		}
	}
	for _, order := range plan.Adopt {
		was := byUID(o.Orphans, order.Machine.UID)
		if was == nil || was.Owner != nil || was.Deleted() || !order.Machine.OwnedBy(uid) || !o.Set.Spec.Selector.Matches(was.Labels) {
			return "P10: adopted, though it was not free: " + order.Machine.Name
		}
	}
	for _, order := range plan.Release {
		was := byUID(o.Machines, order.Machine.UID)
		if was == nil || !was.OwnedBy(uid) || was.Deleted() || order.Machine.Owner != nil || o.Set.Spec.Selector.Matches(was.Labels) {
			return "P10: released, though it was not ours to release: " + order.Machine.Name
		}
	}
	return ""
}

func byUID(machines []*machine.Machine, uid string) *machine.Machine {
	for _, m := range machines {
		if m != nil && m.UID == uid {
			return m
		}
	}
	return nil
}
