package machineset

import (
	"strconv"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// replaceFailed deletes machines that failed. Then scale finds one missing and creates
// another: that is the whole replacement.
func (d *state) replaceFailed() (Plan, bool) {
	if d.summary.failed == 0 || d.o.Refused.Delete != nil || d.preserveUndecided() {
		return Plan{}, false
	}
	if plan, found := d.readFresh("deleting failed machines"); found {
		return plan, true
	}
	if plan, found := d.recordCrashLoop(); found {
		return plan, true
	}
	machines := d.summary.replaced.sorted()
	orders := make([]Order, len(machines))
	for i, v := range machines {
		orders[i] = Order{Machine: v.machine, Why: decision.Why{Reason: reasonReplace, Detail: v.machine.Status.LastOperation.Message}}
	}
	return Plan{Delete: orders, Until: d.o.Read.Until(DeleteWithin, d.now), Why: d.tallyOf(ReasonDeleteFailed, len(orders))}, true
}

// replaceRequested deletes machines that are to be replaced, on request or for their age, as many as
// can be spared. Those that are not available cost nothing. Surplus machines are deleted
// before them: a scaler may have chosen one that is available.
func (d *state) replaceRequested() (Plan, bool) {
	r := &d.summary.requests
	if r.count == 0 || d.o.Refused.Delete != nil || d.o.Frozen || d.scaleUpDisabled() || d.s.Spec.Template.InvalidEntry() != nil {
		return Plan{}, false
	}
	if short := d.short(); short < 0 && d.removable(-short) > 0 {
		return Plan{}, false
	}
	n, out := d.dispensable(), r.count-r.availableCount
	if n+out == 0 {
		d.waiting = d.tally(d.replacing(reasonReplacing, reasonExpiring))
		d.waiting.Count = int64(r.count)
		return Plan{}, false
	}
	if plan, found := d.readFresh("deleting machines to replace them"); found {
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
func (d *state) dispensable() int {
	c, r, allowance := &d.summary, &d.summary.requests, d.surgeAllowance()
	n := min(r.availableCount, c.available-max(0, d.wanted()-int(allowance.Unavailable)))
	if allowance.Surge > 0 {
		n = min(n, c.available-r.availableCount-(d.wanted()-r.count))
	}
	return max(0, n)
}

// replacing picks a reason by why machines are replaced.
func (d *state) replacing(asked, aged decision.Reason) decision.Reason {
	if n := d.summary.expiries.granted; n == d.summary.requests.count {
		return aged
	}
	return asked
}

// whyReplaced is why one machine is deleted, to be replaced.
func (d *state) whyReplaced(v ranked) decision.Why {
	if v.rank>>classShift == uint64(classExpired) {
		return decision.Why{Reason: reasonExpired, For: d.now.Sub(v.machine.CreatedAt)}
	}
	return decision.Why{Reason: reasonRequested, Name: phaseWord(v.machine.Status.Phase)}
}

// A machine whose annotation asks for it (Keys.Replace) is replaced: another is
// created first, where the surge allowance has room for it, and it is deleted once
// availability permits. Nothing is remembered: while such machines are there, the
// set wants as many more as may exist besides. As soon as the set can do without
// one of them, it deletes that one.

// surgeAllowance returns the allowance in effect. A set that has neither one nor an owner may surge by 1.
func (d *state) surgeAllowance() SurgeAllowance {
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
	available, others     lowest // each in the deletion order
	count, availableCount int    // of all, and of those available
}

func (r *requests) limit(n int) { r.available.limit, r.others.limit = n, n }

// toReplace reports whether an active machine is to be replaced on request. A template
// that asks for it would never come to an end, and is not listened to.
func (d *state) toReplace(m *machine.Machine) bool {
	key := d.p.Keys.Replace
	return Requested(m, key) && !d.explicit(m) && d.s.Spec.Template.Annotations[key] == "" && d.surgeAllowance() != (SurgeAllowance{})
}

func (r *requests) add(m ranked, available bool) {
	r.count++
	list := &r.others
	if available {
		r.availableCount++
		list = &r.available
	}
	list.offer(m)
}

// A machine that is too old is replaced like one whose replacement was requested: within the surge
// allowance, and after another was created where there is room for it. Its age is computed from
// the clock, nothing is remembered. The oldest go first, and
// no more than a few at a time; a machine that is not available is left to the
// health check and its budget.

// spread: a machine expires up to 1/spread of the maximum age earlier or later.
const spread = 10

// ExpiresAt returns when a machine is too old: maxAge after its creation, up to a tenth
// earlier or later. The difference follows from its UID, so that machines that were
// created together are not replaced together. Zero: never, because maxAge is not
// positive or the machine's age is not known.
func ExpiresAt(m *machine.Machine, maxAge time.Duration) time.Time {
	if maxAge <= 0 || m.CreatedAt.IsZero() {
		return time.Time{}
	}
	const steps = 10_000
	step := time.Duration(fnv(offset64, m.UID) % (2*steps + 1)) // 0 to 20,000
	shift := maxAge/spread/steps*step - maxAge/spread
	return m.CreatedAt.Add(maxAge).Add(shift).Add(time.Second) // CreatedAt lost its fraction of a second
}

// MayExpire reports whether a machine can be replaced for its age at all:
// one that is being updated in place, or about to be, is not.
func MayExpire(m *machine.Machine) bool {
	switch m.Status.Phase {
	case machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdateFailed:
		return false
	case machine.PhaseNew, machine.PhasePending, machine.PhaseAvailable, machine.PhaseRunning, machine.PhaseUnknown,
		machine.PhaseFailed, machine.PhaseCrashLoopBackOff, machine.PhaseTerminating:
	}
	return !m.Deleted() && m.Spec.InPlace == machine.InPlaceNone
}

// expiries are the machines that are too old.
type expiries struct {
	oldest  lowest    // the first of them to be too old
	next    time.Time // when the next one will be; zero: none
	granted int       // that are among the requests now
}

// visit notes an available machine that is too old.
func (e *expiries) visit(d *state, m *machine.Machine) {
	if d.s.Spec.MaxAge <= 0 || !MayExpire(m) || d.surgeAllowance() == (SurgeAllowance{}) {
		return
	}
	at := ExpiresAt(m, d.s.Spec.MaxAge)
	switch {
	case at.IsZero():
	case d.now.Before(at):
		if e.next.IsZero() || at.Before(e.next) {
			e.next = at
		}
	default:
		e.oldest.limit = int(d.p.ExpireAtOnce)
		e.oldest.offer(ranked{rank: uint64(classExpired) << classShift, age: at.Unix(), machine: m})
	}
}

// admit adds the expired machines that may be replaced now to the requests. Without a surge, machines
// that are missing already count against Policy.ExpireAtOnce, so the next ones wait for the
// replacements.
func (r *requests) admit(d *state, e *expiries, available int) {
	old := e.oldest.sorted()
	if d.surgeAllowance().Surge == 0 {
		missing := max(0, d.wanted()-available)
		old = old[:max(0, min(len(old), int(d.p.ExpireAtOnce)-missing))]
	}
	for _, v := range old {
		r.count++
		r.availableCount++
		r.available.offer(v)
	}
	e.granted = len(old)
}
