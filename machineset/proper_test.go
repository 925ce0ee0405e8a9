package machineset_test

import (
	"fmt"
	"slices"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// improper says what is wrong with any plan.
func improper(o *machineset.Observation, plan *machineset.Plan) string {
	things := things(plan)
	creates := len(plan.Create) > 0 || reserves(o, plan)
	needsLive := creates || len(plan.Delete)+len(plan.Adopt)+len(plan.Release) > 0
	switch {
	case things > 1:
		return fmt.Sprintf("P8: a plan of %d things at once: %+v", things, plan)
	case things == 0 && plan.At.IsZero() && !waitsForever[plan.Why.Reason]:
		return "P21: waits without a time: " + plan.Why.String()
	case (len(plan.Create)+len(plan.Delete) > 0) == plan.Until.IsZero():
		return "Until is for creates and deletes, and they need one"
	case creates && (o.Frozen || o.Set.Deleted()):
		return "P25: creation by a set that is frozen or being deleted"
	case needsLive && !o.Read.Live():
		return "orders without a live read: " + plan.Why.String()
	}
	if what := mishandled(o, plan); what != "" {
		return what
	}
	return misplaced(o, plan)
}

// waitsForever are the waits that only a change of the set can end.
var waitsForever = map[decision.Reason]bool{
	machineset.ReasonSpecInvalid: true, machineset.ReasonNotOurs: true,
}

// things counts the kinds of things that a plan asks for.
func things(plan *machineset.Plan) int {
	n := 0
	for _, orders := range [][]machineset.Order{plan.Create, plan.Delete, plan.Adopt, plan.Release, plan.Push} {
		if len(orders) > 0 {
			n++
		}
	}
	if plan.Write != nil {
		n++
	}
	if plan.ReadLive {
		n++
	}
	return n
}

func reserves(o *machineset.Observation, plan *machineset.Plan) bool {
	write, ok := plan.Write.(*machineset.Update)
	return ok && write.Set.Instructions.Reservation.Reserved > o.Set.Instructions.Reservation.Reserved
}

// misplaced says which order is for a machine that it must not touch: P10.
func misplaced(o *machineset.Observation, plan *machineset.Plan) string {
	for rule, broken := range map[string]struct {
		orders []machineset.Order
		allows func(*machineset.Observation, machineset.Order) bool
	}{
		"P10: not ours, or already going":              {slices.Concat(plan.Delete, plan.Push), ours},
		"P10, P14: without owner, finalizer or number": {plan.Create, wellBorn},
		"P10: adopted, though it was not free":         {plan.Adopt, free},
		"P10: released, though it was not for us to":   {plan.Release, stray},
	} {
		for _, order := range broken.orders {
			if !broken.allows(o, order) {
				return rule + ": " + order.Machine.Name
			}
		}
	}
	return ""
}

func ours(o *machineset.Observation, order machineset.Order) bool {
	return order.Machine.OwnedBy(o.Set.UID) && !order.Machine.Deleted()
}

func wellBorn(o *machineset.Observation, order machineset.Order) bool {
	m := order.Machine
	return m.OwnedBy(o.Set.UID) && m.HasFinalizer(machine.Finalizer) && m.Name == o.Set.MachineName(order.Ordinal)
}

func free(o *machineset.Observation, order machineset.Order) bool {
	was := byUID(o.Orphans, order.Machine.UID)
	return was != nil && was.Owner == nil && !was.Deleted() &&
		order.Machine.OwnedBy(o.Set.UID) && o.Set.Spec.Selector.Matches(was.Labels)
}

func stray(o *machineset.Observation, order machineset.Order) bool {
	was := byUID(o.Machines, order.Machine.UID)
	return was != nil && was.OwnedBy(o.Set.UID) && !was.Deleted() &&
		order.Machine.Owner == nil && !o.Set.Spec.Selector.Matches(was.Labels)
}

func byUID(machines []*machine.Machine, uid string) *machine.Machine {
	for _, m := range machines {
		if m != nil && m.UID == uid {
			return m
		}
	}
	return nil
}
