package machineset

import (
	"fmt"
	"math"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// The crash-loop backoff of a set. A machine may fail before it is ever ready: the
// quota is used up, or its image is broken. The set replaces it, and the replacement
// fails too. Each failure costs a VM, or at least a create. So a set counts such
// failures in a row and backs off: it makes the first replacements at once, the
// second ones after a wait, and doubles each further wait. The first machine that
// becomes ready ends the backoff. A changed template is another set, which has a
// count of its own.
//
// Only the machines wait that were missing when the set recorded the failure. The
// set creates others at once: those for a larger size, and those that replace a
// machine that was ready before.

// CrashLoop counts the failures of machines that were never ready. The zero value:
// no machine has failed so since the last one became ready.
type CrashLoop struct {
	// Rounds is how often in a row machines failed. Those that were made
	// before the failure of another fail in the same round.
	Rounds int32
	// UpTo is the highest number that was given out when the last round was
	// counted. A failure of a machine with a higher number is another round.
	UpTo int64
	// Last is when a failure was last noted. Whole seconds.
	Last time.Time
	// Missing is how many machines were missing then, with those that failed.
	Missing int32
	// Against are the versions of class and secrets that they failed with:
	// once one of them is another, the count begins again.
	Against machine.Inputs
}

// Equal reports whether both say the same, the same instant in any location.
func (c *CrashLoop) Equal(d *CrashLoop) bool {
	e := *d
	e.Last = c.Last
	return *c == e && c.Last.Equal(d.Last)
}

// crashLoopDelay returns how long after the last failure of so many rounds the set
// creates the replacements; zero: at once.
func (p *Policy) crashLoopDelay(rounds int32) time.Duration {
	if rounds <= 1 || p.CrashLoopBase <= 0 {
		return 0
	}
	wait := p.CrashLoopBase
	for ; rounds > 2 && wait < p.CrashLoopMax; rounds-- {
		wait *= 2
	}
	return min(wait, p.CrashLoopMax)
}

// failedBeforeReady reports whether a machine failed before it was ever ready.
func failedBeforeReady(m *machine.Machine) bool {
	return m.Status.Phase == machine.PhaseFailed && m.Status.JoinedAfter == 0 &&
		m.Status.LastOperation.Kind == machine.OperationCreate
}

// countFailedBeforeReady counts a machine that failed, if it was never ready.
func (v *counter) countFailedBeforeReady(m *machine.Machine) {
	if !failedBeforeReady(m) {
		return
	}
	c := &v.summary
	c.failedBeforeReady++
	// A number that was never given out is not later than those that were.
	c.latest = max(c.latest, min(ordinalOf(v.s.namePrefix(), m.Name), v.s.Instructions.Reservation.Reserved))
}

// countJoined notes when the last ready machine came to run, where that matters.
// A time to come says nothing, or it would end the count again and again.
func (v *counter) countJoined(m *machine.Machine) {
	if v.s.Status.CrashLoop.Rounds == 0 {
		return
	}
	at := m.Status.Since
	if m.Status.JoinedAfter > 0 {
		at = m.CreatedAt.Add(m.Status.JoinedAfter)
	}
	if at.After(v.summary.joined) && !at.After(v.now) {
		v.summary.joined = at
	}
}

// crashLoop is the count as it is now: none if a machine came to run since, if
// class or secrets are others, or if no machine is wanted. Once their time has
// come, those that were made are not missing any more: their failure is to be
// noted again.
func (d *decider) crashLoop() CrashLoop {
	c := d.s.Status.CrashLoop
	if d.p.CrashLoopBase <= 0 || c.Rounds <= 0 || d.wanted() == 0 || c.Against != d.o.Inputs || d.summary.joined.After(c.Last) {
		return CrashLoop{}
	}
	if !d.now.Before(c.tryAt(d.p.crashLoopDelay(c.Rounds))) {
		c.Missing = min(c.Missing, d.missingNow())
	}
	return c
}

func (d *decider) missingNow() int32 { return int32(min(max(d.short(), 0), math.MaxInt32)) }

// recordCrashLoop stores that machines failed before they were ready. It does so
// before the set deletes them, since nothing else shows it afterwards.
func (d *decider) recordCrashLoop() (Plan, bool) {
	if d.summary.failedBeforeReady == 0 || d.p.CrashLoopBase <= 0 || d.wanted() == 0 {
		return Plan{}, false
	}
	c, missing := d.crashLoop(), d.missingNow()
	another := c.Rounds == 0 || d.summary.latest > c.UpTo
	if !another && missing <= c.Missing {
		return Plan{}, false
	}
	if another {
		c.Rounds, c.UpTo = min(c.Rounds, math.MaxInt32-1)+1, d.s.Instructions.Reservation.Reserved
	}
	c.Last, c.Missing, c.Against = d.stamp(), missing, d.o.Inputs
	next := d.s.Status.Clone()
	next.CrashLoop = c
	next.Conditions = d.crashLoopCondition(next.Conditions, &c)
	why := decision.Why{Reason: reasonFailedBeforeReady, Count: int64(c.Rounds), For: d.p.crashLoopDelay(c.Rounds)}
	if why.For == 0 {
		return Plan{Write: &UpdateStatus{next}, Why: decision.Why{Reason: reasonFailedBeforeReadyFirst}}, true
	}
	return Plan{Write: &UpdateStatus{next}, Why: why, Warn: why}, true
}

// nextTry returns when the missing machines are created; zero: at once. A failure
// with a time that no clock can have written delays nothing.
func (d *decider) nextTry() time.Time {
	c := d.crashLoop()
	wait := d.p.crashLoopDelay(c.Rounds)
	if wait == 0 || c.Last.After(d.now.Add(d.p.CrashLoopMax)) {
		return time.Time{}
	}
	if at := c.tryAt(wait); d.now.Before(at) {
		return at
	}
	return time.Time{}
}

// tryAt is a wait after the last failure, which lost its fraction of a second.
func (c *CrashLoop) tryAt(wait time.Duration) time.Time { return c.Last.Add(wait + time.Second) }

// withinBackoff is how many of the missing machines may be made now.
func (d *decider) withinBackoff(short int) int {
	c, at := d.crashLoop(), d.nextTry()
	waiting := min(short, int(c.Missing))
	if at.IsZero() || waiting <= 0 {
		return short
	}
	d.lookAgain(at)
	d.waiting = d.tally(reasonReplacementSlowed)
	d.waiting.Count, d.waiting.Number = int64(waiting), int64(c.Rounds)
	d.waiting.For = at.Sub(d.now)
	return short - waiting
}

// crashLoopCondition returns conditions with ConditionReplacementSlowed, from the
// second failure in a row on.
func (d *decider) crashLoopCondition(conditions []object.Condition, c *CrashLoop) []object.Condition {
	wait := d.p.crashLoopDelay(c.Rounds)
	if wait == 0 {
		return withoutCondition(conditions, ConditionReplacementSlowed)
	}
	return withCondition(conditions, object.Condition{
		Type: ConditionReplacementSlowed, Status: object.True, Reason: reasonFailedBeforeReady.String(),
		Message: fmt.Sprintf("machines failed before they ran, %d times in a row: what is missing since is not made before %s",
			c.Rounds, c.tryAt(wait).UTC().Format(time.RFC3339)),
		Since: d.stamp(),
	})
}

// holdCondition is conditions with why machines are not created that exist, if
// the provider refuses their class.
func (d *decider) holdCondition(conditions []object.Condition) []object.Condition {
	h := d.o.Hold
	if h == nil || d.summary.unmade == 0 {
		return withoutCondition(conditions, ConditionCreationSlowed)
	}
	if h.Until.After(d.now) {
		d.lookAgain(h.Until)
	}
	return withCondition(conditions, object.Condition{
		Type: ConditionCreationSlowed, Status: object.True, Reason: h.Code.String(),
		Message: h.String() + "; the next is not tried before " + h.Until.UTC().Format(time.RFC3339),
		Since:   d.stamp(),
	})
}

// unmade reports whether a machine has no VM yet and is to get one.
func unmade(m *machine.Machine) bool {
	switch m.Status.Phase {
	case machine.PhaseNew, machine.PhasePending, machine.PhaseCrashLoopBackOff:
		return m.Spec.ProviderID == ""
	case machine.PhaseAvailable, machine.PhaseRunning, machine.PhaseUnknown, machine.PhaseFailed, machine.PhaseTerminating,
		machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdateFailed:
	}
	return false
}
