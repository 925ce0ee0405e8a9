package machineset

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// short returns how many machines are missing; negative: how many are surplus. Machines that are moving to
// this set, and failed ones that stay for now, count as present when machines are missing, but not when there
// is a surplus, because they may not arrive, or not stay.
func (d *state) short() int {
	short := d.wanted() + d.extra() - d.summary.active
	if short <= 0 {
		return short
	}
	return max(0, short-d.summary.arriving-d.staying())
}

// mayCreate reports whether creations are allowed at all. If not, it sets the reason of the wait.
func (d *state) mayCreate() bool {
	switch {
	case d.o.Frozen:
		d.waiting = d.tally(reasonFrozen)
		return false
	case d.closed():
		d.waiting = d.tally(reasonClosed)
		return false
	case d.scaleUpDisabled():
		d.waiting = d.tally(reasonDisabled)
		d.waiting.Name = d.p.Keys.ScaleUpDisabled
		return false
	}
	if bad := d.s.Spec.Template.InvalidEntry(); bad != nil {
		d.waiting = decision.Why{Reason: reasonSpecInvalid, Name: bad.Field, Detail: bad.Problem}
		return false
	}
	return d.o.Refused.Create == nil
}

// staying returns how many failed machines stay for now, so that none is created in their place: it is
// undecided which of them are preserved, or their deletion was refused, or its result is unknown.
func (d *state) staying() int {
	if d.preserveUndecided() || d.o.Refused.Delete != nil {
		return d.summary.failed
	}
	return 0
}

// extra returns how many machines there should be above the set's size, to replace others.
func (d *state) extra() int { return min(d.summary.requests.count, int(d.surgeAllowance().Surge)) }

// removable returns how many machines of a surplus may be deleted now.
func (d *state) removable(surplus int) int {
	c := &d.summary
	n := min(surplus-c.pausedMachines.unavailable, c.active-c.pausedMachines.count)
	if n < surplus {
		d.waiting = d.whyNotDeleted(surplus - max(n, 0))
	}
	return max(n, 0)
}

// whyNotDeleted returns why n surplus machines are not deleted.
func (d *state) whyNotDeleted(n int) decision.Why {
	why := d.tally(reasonMachinePaused)
	why.Name, why.Count = d.summary.pausedMachines.first, int64(n)
	return why
}

// tally returns a reason with the numbers of machines.
func (d *state) tally(reason decision.Reason) decision.Why {
	c := &d.summary
	return decision.Why{
		Reason: reason, Have: int64(c.active), Want: int64(d.wanted()),
		Ready: int64(c.ready), Available: int64(c.available),
	}
}

// tallyOf returns a reason with the numbers of machines, and how many of them it is about.
func (d *state) tallyOf(reason decision.Reason, n int) decision.Why {
	why := d.tally(reason)
	why.Count = int64(n)
	return why
}

// deleteSurplus deletes machines above the set's size, in the deletion order.
func (d *state) deleteSurplus() (Plan, bool) {
	n := -d.short()
	if n <= 0 || d.o.Refused.Delete != nil {
		return Plan{}, false
	}
	may := d.removable(n)
	if may == 0 {
		return Plan{}, false
	}
	if plan, found := d.readFresh("deleting surplus machines"); found {
		return plan, true
	}
	machines := d.summary.deletionOrder.sorted()
	machines = machines[:min(len(machines), may)]
	orders := make([]Order, len(machines))
	for i, v := range machines {
		why := decision.Why{
			Reason: reasonSurplus, Count: int64(n), Detail: d.p.ageWord(),
			Have: int64(v.machine.Priority(d.p.Keys.Priority)), Name: phaseWord(v.machine.Status.Phase),
		}
		if at, chosen := d.s.Instructions.chosenAt(v.machine.Name); chosen && !d.preservedByUser(v.machine) {
			why.Reason, why.Detail = reasonChosen, at.UTC().Format(time.RFC3339)
		}
		orders[i] = Order{Machine: v.machine, Why: why}
	}
	return Plan{Delete: orders, Until: d.o.Read.Until(DeleteWithin, d.now), Why: d.tallyOf(ReasonDeleteSurplus, len(orders))}, true
}

// A set never deletes a paused machine: not if it is surplus, failed or to be replaced, and not if the set is
// being deleted. The machine counts as one of the set's, so no other is created in its place. If it is not
// available, one machine fewer is deleted: a rollout assumes that a set that shrinks deletes unavailable
// machines first, so no available one may be deleted instead.

// pausedMachines are the machines that are paused and not being deleted.
type pausedMachines struct {
	count       int
	unavailable int    // of these, not available, or about to stop
	first       string // the first of their names
}

func (s *pausedMachines) add(m *machine.Machine, available bool) {
	if s.count++; s.count == 1 || m.Name < s.first {
		s.first = m.Name
	}
	if !available {
		s.unavailable++
	}
}

// machinePaused reports whether a machine is paused.
func (d *state) machinePaused(m *machine.Machine) bool {
	paused, _ := machine.Paused(&m.Meta, d.p.Keys.Paused)
	return paused
}
