package machineset

import "github.com/millwright-go/millwright/decision"

// replaceFailed deletes machines that failed. Then scale finds one missing and creates
// another: that is the whole replacement.
func (d *decider) replaceFailed() (Plan, bool) {
	if d.summary.failed == 0 || d.o.Refused.Delete != nil || d.undecided() {
		return Plan{}, false
	}
	if plan, busy := d.readFresh("deleting failed machines"); busy {
		return plan, true
	}
	if plan, busy := d.recordCrashLoop(); busy {
		return plan, true
	}
	machines := d.summary.replaced.sorted()
	orders := make([]Order, len(machines))
	for i, v := range machines {
		orders[i] = Order{Machine: v.machine, Why: decision.Why{Reason: reasonReplace, Detail: v.machine.Status.LastOperation.Message}}
	}
	return Plan{Delete: orders, Until: d.o.Read.Until(DeleteWithin, d.now), Why: d.deletion(ReasonDeleteFailed, len(orders))}, true
}
