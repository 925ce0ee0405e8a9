package machineset

import "github.com/millwright-go/millwright/decision"

// replacement deletes machines that failed or are to be replaced, so that others are
// created in their place.
type replacement struct{ *counted }

// replaceFailed deletes machines that failed. Then scale finds one missing and creates
// another: that is the whole replacement.
func (d replacement) replaceFailed() (Plan, bool) {
	if d.summary.failed == 0 || d.o.Refused.Delete != nil || d.preservation().undecided() {
		return Plan{}, false
	}
	if plan, busy := d.readFresh("deleting failed machines"); busy {
		return plan, true
	}
	if plan, busy := crashLoopBackoff(d).record(); busy {
		return plan, true
	}
	machines := d.summary.replaced.sorted()
	orders := make([]Order, len(machines))
	for i, v := range machines {
		orders[i] = Order{Machine: v.machine, Why: decision.Why{Reason: reasonReplace, Detail: v.machine.Status.LastOperation.Message}}
	}
	return Plan{Delete: orders, Until: d.o.Read.Until(DeleteWithin, d.now), Why: d.tallyOf(ReasonDeleteFailed, len(orders))}, true
}

// replaceRequested deletes machines that are to be replaced, as many as can be
// spared. Those that are not available cost nothing. Surplus machines are deleted
// before them: a scaler may have chosen one that is available.
func (d replacement) replaceRequested() (Plan, bool) {
	r := &d.summary.requests
	if r.count == 0 || d.o.Refused.Delete != nil || d.o.Frozen || d.scaleUpDisabled() || d.s.Spec.Template.InvalidEntry() != nil {
		return Plan{}, false
	}
	if short := d.short(); short < 0 && d.removable(-short) > 0 {
		return Plan{}, false
	}
	n, out := d.dispensable(), r.count-r.ready
	if n+out == 0 {
		d.waiting = d.tally(d.replacing(reasonReplacing, reasonExpiring))
		d.waiting.Count = int64(r.count)
		return Plan{}, false
	}
	if plan, busy := d.readFresh("deleting machines that are to be replaced"); busy {
		return plan, true
	}
	spared := r.available.sorted()
	machines := append(r.others.sorted(), spared[:min(n, len(spared))]...)
	machines = machines[:min(len(machines), int(d.p.Burst))]
	orders := make([]Order, len(machines))
	for i, v := range machines {
		orders[i] = Order{Machine: v.machine, Why: d.whyReplaced(v)}
	}
	return Plan{Delete: orders, Until: d.o.Read.Until(DeleteWithin, d.now), Why: d.tallyOf(d.replacing(reasonDeleteRequested, reasonDeleteExpired), len(orders))}, true
}

// dispensable is how many of the available machines that are to be replaced may
// go now. Availability must permit it, and if there may be more machines for a
// time, the replacements must be available.
func (d replacement) dispensable() int {
	c, r, allowance := &d.summary, &d.summary.requests, d.surgeAllowance()
	n := min(r.ready, c.available-max(0, d.wanted()-int(allowance.Unavailable)))
	if allowance.Surge > 0 {
		n = min(n, c.available-r.ready-(d.wanted()-r.count))
	}
	return max(0, n)
}

// replacing picks a reason by why machines are replaced.
func (d replacement) replacing(asked, aged decision.Reason) decision.Reason {
	if n := d.summary.expiries.granted; n == d.summary.requests.count {
		return aged
	}
	return asked
}

// whyReplaced is why one machine is deleted, to be replaced.
func (d replacement) whyReplaced(v ranked) decision.Why {
	if v.rank>>classShift == uint64(classExpired) {
		return decision.Why{Reason: reasonExpired, For: d.now.Sub(v.machine.CreatedAt)}
	}
	return decision.Why{Reason: reasonRequested, Name: phaseWord(v.machine.Status.Phase)}
}
