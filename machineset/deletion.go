package machineset

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// deletion takes a set that is being deleted to its end.
type deletion struct{ *counted }

// remove takes a set that is being deleted to its end: its machines first, then
// the finalizer. It creates nothing. Machines that are to stay behind are left
// alone until they have no owner.
func (d deletion) remove() Plan {
	if !d.s.HasFinalizer(Finalizer) {
		return Plan{Why: decision.Why{Reason: reasonNotOurs}}
	}
	d.summary.count(&d.situation)
	names := reservation(d)
	if names.allCame() { // once the machines are gone it would look as if some of them were yet to come
		return names.settled()
	}
	if !d.retryAt().IsZero() {
		return report(d).rest()
	}
	if d.s.HasFinalizer(object.OrphanDependents) {
		d.waiting = decision.Why{Reason: reasonLeaving}
		return report(d).rest()
	}
	if plan, busy := d.removeMachines(); busy {
		return plan
	}
	if n := d.summary.spared.count; n > 0 {
		d.waiting = d.kept(n)
		return report(d).rest()
	}
	if d.summary.owned > 0 {
		d.waiting = decision.Why{Reason: reasonTerminating, Count: int64(d.summary.terminating)}
		return report(d).rest()
	}
	var since time.Time
	if n := d.s.Instructions.Reservation.Reserved - d.s.Instructions.Reservation.Settled; n > 0 {
		if names.inFlight() {
			d.lookAgain(names.doneAt())
			d.waiting = decision.Why{Reason: reasonLateCreates, Count: n, For: names.doneAt().Sub(d.now)}
			return report(d).rest()
		}
		since = names.doneAt()
	}
	if plan, busy := d.readLiveSince(since, "letting the set go"); busy {
		return plan
	}
	changed := d.s.Clone()
	changed.RemoveFinalizer(Finalizer)
	return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonSetReleased}}
}

// removeMachines deletes the machines of a set that is being deleted, whether
// or not they match its selector.
func (d deletion) removeMachines() (Plan, bool) {
	if d.summary.owned == d.summary.terminating+d.summary.spared.count || d.o.Refused.Delete != nil {
		return Plan{}, false
	}
	if plan, busy := d.readFresh("deleting the set's machines"); busy {
		return plan, true
	}
	machines := d.summary.deletionOrder.sorted()
	orders := make([]Order, len(machines))
	for i, v := range machines {
		orders[i] = Order{Machine: v.machine, Why: decision.Why{Reason: reasonSetDeleted}}
	}
	return Plan{Delete: orders, Until: d.o.Read.Until(DeleteWithin, d.now), Why: d.tallyOf(ReasonDeleteAll, len(orders))}, true
}
