package machineset

import (
	"time"

	"github.com/millwright-go/millwright/machine"
)

// A machine that is too old is replaced as one is whose replacement was asked
// for (request.go): within the surge allowance, another first where there is room for it. What
// is too old is seen by the clock and not remembered. The oldest go first, and
// no more than a few at a time; a machine that is not available is left to the
// health check and its budget.

// spread is the part of a maximum age by which that of one machine may differ
// either way: one tenth.
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
func (e *expiries) visit(d *situation, m *machine.Machine) {
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

// admit takes those machines up that may be replaced now. Without a
// surge the ones that are missing already count among them: the next ones wait
// for their replacements.
func (r *requests) admit(d *situation, e *expiries, available int) {
	old := e.oldest.sorted()
	if d.surgeAllowance().Surge == 0 {
		missing := max(0, d.wanted()-available)
		old = old[:max(0, min(len(old), int(d.p.ExpireAtOnce)-missing))]
	}
	for _, v := range old {
		r.count++
		r.ready++
		r.available.offer(v)
	}
	e.granted = len(old)
}
