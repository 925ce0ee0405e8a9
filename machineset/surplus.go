package machineset

import (
	"time"

	"github.com/millwright-go/millwright/decision"
)

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
