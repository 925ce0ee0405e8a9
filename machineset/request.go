package machineset

import (
	"strconv"

	"github.com/millwright-go/millwright/machine"
)

// A machine whose annotation asks for it (Keys.Replace) is replaced: another is
// created first, where the surge allowance has room for it, and it is deleted once
// availability permits. Nothing is remembered: while such machines are there, the
// set wants as many more as may exist besides. As soon as the set can do without
// one of them, it deletes that one.

// surgeAllowance is what holds for the set.
func (d *decider) surgeAllowance() SurgeAllowance {
	s := d.s.Instructions.SurgeAllowance
	if s == (SurgeAllowance{}) && d.s.Owner == nil {
		return SurgeAllowance{Surge: 1}
	}
	return SurgeAllowance{max(0, s.Surge), max(0, s.Unavailable)}
}

// Requested reports whether an annotation of the key asks for the machine to be
// replaced.
func Requested(m *machine.Machine, key string) bool {
	text, ok := m.Annotations[key]
	if !ok || key == "" {
		return false
	}
	yes, err := strconv.ParseBool(text)
	return err == nil && yes
}

// requests are the machines that are to be replaced.
type requests struct {
	available, others lowest // each in the deletion order
	count, ready      int    // of all, and of those available
}

func (r *requests) limit(n int) { r.available.limit, r.others.limit = n, n }

// visitRequest counts an active machine if it is to be replaced. A template
// that asks for it would never come to an end, and is not listened to.
// It reports whether it did.
func (v *counter) visitRequest(m *machine.Machine, available bool) bool {
	key := v.p.Keys.Replace
	if !Requested(m, key) || v.explicit(m) || v.s.Spec.Template.Annotations[key] != "" || v.surgeAllowance() == (SurgeAllowance{}) {
		return false
	}
	r := &v.summary.requests
	r.count++
	list := &r.others
	if available {
		r.ready++
		list = &r.available
	}
	list.offer(v.rank(m, available))
	return true
}

// extra is how many machines there should be beyond the set's size, to take the
// place of others.
func (d *decider) extra() int { return min(d.summary.requests.count, int(d.surgeAllowance().Surge)) }

// dispensable is how many of the available machines that are to be replaced may
// go now. Availability must permit it, and if there may be more machines for a
// time, the replacements must be available.
func (d *decider) dispensable() int {
	c, r, allowance := &d.summary, &d.summary.requests, d.surgeAllowance()
	n := min(r.ready, c.available-max(0, d.wanted()-int(allowance.Unavailable)))
	if allowance.Surge > 0 {
		n = min(n, c.available-r.ready-(d.wanted()-r.count))
	}
	return max(0, n)
}

// replaceRequested deletes machines that are to be replaced, as many as can be
// spared. Those that are not available cost nothing. Surplus machines are deleted
// before them: a scaler may have chosen one that is available.
func (d *decider) replaceRequested() (Plan, bool) {
	r := &d.summary.requests
	if r.count == 0 || d.o.Refused.Delete != nil || d.o.Frozen || d.scaleUpDisabled() {
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
	return Plan{Delete: orders, Until: d.o.Read.Until(DeleteWithin, d.now), Why: d.deletion(d.replacing(reasonDeleteRequested, reasonDeleteExpired), len(orders))}, true
}
