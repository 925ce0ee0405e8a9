package machineset

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// counted is a situation whose machines are counted: how many are missing, or too many.
type counted struct {
	situation
	summary summary
}

// preservation is the part that keeps failed machines.
func (d *counted) preservation() preservation {
	return preservation{&d.situation, &d.summary.preserving}
}

// short returns how many machines are missing; negative: how many active ones are
// surplus. Machines that are moving to this set are not missing, and neither are
// failed ones that stay for now. They do not make others surplus, because it is not
// known yet whether they come, or stay.
func (d *counted) short() int {
	short := d.wanted() + d.extra() - d.summary.active
	if short <= 0 {
		return short
	}
	return max(0, short-d.summary.arriving-d.staying())
}

// mayCreate reports whether creations are allowed at all, and notes why not.
func (d *counted) mayCreate() bool {
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

// staying is how many failed machines stay for now: it is undecided which of them
// are kept, or their deletion was refused, or its answer lost. None is made in their
// place.
func (d *counted) staying() int {
	if d.preservation().undecided() || d.o.Refused.Delete != nil {
		return d.summary.failed
	}
	return 0
}

// extra is how many machines there should be beyond the set's size, to take the
// place of others.
func (d *counted) extra() int { return min(d.summary.requests.count, int(d.surgeAllowance().Surge)) }

// removable is how many machines of a surplus may be deleted now.
func (d *counted) removable(surplus int) int {
	c := &d.summary
	n := min(surplus-c.spared.idle, c.active-c.spared.count)
	if n < surplus {
		d.waiting = d.kept(surplus - max(n, 0))
	}
	return max(n, 0)
}

// kept is the reason why n machines stay that would go.
func (d *counted) kept(n int) decision.Why {
	why := d.tally(reasonSpared)
	why.Name, why.Count = d.summary.spared.first, int64(n)
	return why
}

// tally is a reason with the numbers of machines.
func (d *counted) tally(reason decision.Reason) decision.Why {
	c := &d.summary
	return decision.Why{
		Reason: reason, Have: int64(c.active), Want: int64(d.wanted()),
		Ready: int64(c.ready), Available: int64(c.available),
	}
}

// tallyOf is a reason with the numbers of machines, and n of those it is about.
func (d *counted) tallyOf(reason decision.Reason, n int) decision.Why {
	why := d.tally(reason)
	why.Count = int64(n)
	return why
}

// surplus deletes machines beyond the set's size, the first in the deletion order.
type surplus struct{ *counted }

// remove deletes machines beyond what the spec asks for.
func (d surplus) remove() (Plan, bool) {
	n := -d.short()
	if n <= 0 || d.o.Refused.Delete != nil {
		return Plan{}, false
	}
	may := d.removable(n)
	if may == 0 {
		return Plan{}, false
	}
	if plan, busy := d.readFresh("deleting surplus machines"); busy {
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
		if at, chosen := d.s.Instructions.chosenAt(v.machine.Name); chosen && !d.explicit(v.machine) {
			why.Reason, why.Detail = reasonChosen, at.UTC().Format(time.RFC3339)
		}
		orders[i] = Order{Machine: v.machine, Why: why}
	}
	return Plan{Delete: orders, Until: d.o.Read.Until(DeleteWithin, d.now), Why: d.tallyOf(ReasonDeleteSurplus, len(orders))}, true
}

// A machine that is paused is deleted by no set, for any reason: the set
// is too large, is being deleted, or the machine failed or is to be replaced.
// It counts as one of the set's, so none is made in its place. If it is not
// available, it takes the place of one that would be deleted: a rollout assumes
// that a set which shrinks first deletes what is not available, so no other
// machine may be deleted instead.

// spared are the machines that are paused and not being deleted.
type spared struct {
	count int
	idle  int    // of these, not available, or about to stop
	first string // of their names, in order
}

func (s *spared) add(m *machine.Machine, available bool) {
	if s.count++; s.count == 1 || m.Name < s.first {
		s.first = m.Name
	}
	if !available {
		s.idle++
	}
}

// spares reports whether a machine is paused.
func (d *situation) spares(m *machine.Machine) bool {
	paused, _ := machine.Paused(&m.Meta, d.p.Keys.Paused)
	return paused
}
