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

// replaceRequested deletes machines that are to be replaced, on request or for their age: all that are not
// available, and as many available ones as the surge allowance permits. Surplus machines are deleted before
// them, because a scaler may have chosen one that is available.
func (d *state) replaceRequested() (Plan, bool) {
	r := &d.summary.requests
	if r.count == 0 || d.o.Refused.Delete != nil || d.o.Frozen || d.scaleUpDisabled() || d.s.Spec.Template.InvalidEntry() != nil {
		return Plan{}, false
	}
	if short := d.short(); short < 0 && d.removable(-short) > 0 {
		return Plan{}, false
	}
	n, unavailable := d.dispensable(), r.count-r.availableCount
	if n+unavailable == 0 {
		d.waiting = d.tally(d.replaceReason(reasonReplacing, reasonExpiring))
		d.waiting.Count = int64(r.count)
		return Plan{}, false
	}
	if plan, found := d.readFresh("deleting machines to replace them"); found {
		return plan, true
	}
	available := r.available.sorted()
	machines := append(r.others.sorted(), available[:min(n, len(available))]...)
	machines = machines[:min(len(machines), d.burst())]
	orders := make([]Order, len(machines))
	for i, v := range machines {
		orders[i] = Order{Machine: v.machine, Why: d.whyReplaced(v)}
	}
	return Plan{Delete: orders, Until: d.o.Read.Until(DeleteWithin, d.now), Why: d.tallyOf(d.replaceReason(reasonDeleteRequested, reasonDeleteExpired), len(orders))}, true
}

// dispensable returns how many of the available machines that are to be replaced may be deleted now. Enough
// others must be available and, with a surge, so must the replacements.
func (d *state) dispensable() int {
	c, r, allowance := &d.summary, &d.summary.requests, d.surgeAllowance()
	n := min(r.availableCount, c.available-max(0, d.wanted()-int(allowance.Unavailable)))
	if allowance.Surge > 0 {
		n = min(n, c.available-r.availableCount-(d.wanted()-r.count))
	}
	return max(0, n)
}

// replaceReason returns expired if all machines are replaced for their age, otherwise requested.
func (d *state) replaceReason(requested, expired decision.Reason) decision.Reason {
	if n := d.summary.expiries.admitted; n == d.summary.requests.count {
		return expired
	}
	return requested
}

// whyReplaced returns why one machine is replaced.
func (d *state) whyReplaced(v ranked) decision.Why {
	if v.rank>>classShift == uint64(classExpired) {
		return decision.Why{Reason: reasonExpired, For: d.now.Sub(v.machine.CreatedAt)}
	}
	return decision.Why{Reason: reasonRequested, Name: phaseWord(v.machine.Status.Phase)}
}

// A machine is replaced if its annotation (Keys.Replace) asks for it. If the surge allowance has room, another
// is created first. The machine is deleted once availability permits. No progress is stored: while there are
// such machines, the set wants more machines, up to its surge, and deletes such a machine as soon as it is
// dispensable.

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
	count, availableCount int    // of all, and of the available ones
}

func (r *requests) limit(n int) { r.available.limit, r.others.limit = n, n }

// toReplace reports whether an active machine is to be replaced on request. If the template has the annotation,
// requests are ignored: each new machine would have it, and replacements would never end.
func (d *state) toReplace(m *machine.Machine) bool {
	key := d.p.Keys.Replace
	return Requested(m, key) && !d.preservedByUser(m) && d.s.Spec.Template.Annotations[key] == "" && d.surgeAllowance() != (SurgeAllowance{})
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

// A machine that is too old is replaced like one with a replace request, within the surge allowance. Its age is
// computed from the clock; no progress is stored. The first to expire are replaced first, and no more than
// Policy.ExpireAtOnce at a time. A machine that is not available is not replaced for its age: the health check
// is responsible for it.

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

// MayExpire reports whether a machine can be replaced for its age at all. A machine that is being updated in
// place, is about to be, or is being deleted, is not.
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
	oldest   lowest    // the first that expired
	next     time.Time // when the next machine expires; zero: none
	admitted int       // how many of them are among the requests
}

// visit adds an available machine if it is too old; otherwise it updates next.
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
	expired := e.oldest.sorted()
	if d.surgeAllowance().Surge == 0 {
		missing := max(0, d.wanted()-available)
		expired = expired[:max(0, min(len(expired), int(d.p.ExpireAtOnce)-missing))]
	}
	for _, v := range expired {
		r.count++
		r.availableCount++
		r.available.offer(v)
	}
	e.admitted = len(expired)
}
