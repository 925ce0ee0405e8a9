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

// starts are the machines that failed before they were ready, and the last one that came to run.
type starts struct {
	failures int       // machines that failed, and never ran
	latest   int64     // the highest number among them
	ran      time.Time // when the last ready machine came to run; zero: not looked for
}

// failed counts a machine that failed, if it was never ready.
func (c *starts) failed(d *situation, m *machine.Machine) {
	if !failedBeforeReady(m) {
		return
	}
	c.failures++
	// A number that was never given out is not later than those that were.
	c.latest = max(c.latest, min(ordinalOf(d.s.namePrefix(), m.Name), d.s.Instructions.Reservation.Reserved))
}

// joined notes when the last ready machine came to run, where that matters.
// A time to come says nothing, or it would end the count again and again.
func (c *starts) joined(d *situation, m *machine.Machine) {
	if d.s.Status.CrashLoop.Rounds == 0 {
		return
	}
	at := m.Status.Since
	if m.Status.JoinedAfter > 0 {
		at = m.CreatedAt.Add(m.Status.JoinedAfter)
	}
	if at.After(c.ran) && !at.After(d.now) {
		c.ran = at
	}
}

// crashLoopBackoff slows the replacements of machines that failed before they were ready.
type crashLoopBackoff struct{ *counted }

// current is the count as it is now: none if a machine came to run since, if
// class or secrets are others, or if no machine is wanted. Once their time has
// come, those that were made are not missing any more: their failure is to be
// noted again.
func (d crashLoopBackoff) current() CrashLoop {
	c := d.s.Status.CrashLoop
	if d.p.CrashLoopBase <= 0 || c.Rounds <= 0 || d.wanted() == 0 || c.Against != d.o.Inputs || d.summary.starts.ran.After(c.Last) {
		return CrashLoop{}
	}
	if !d.now.Before(c.tryAt(d.p.crashLoopDelay(c.Rounds))) {
		c.Missing = min(c.Missing, d.missingNow())
	}
	return c
}

func (d crashLoopBackoff) missingNow() int32 { return int32(min(max(d.short(), 0), math.MaxInt32)) }

// record stores that machines failed before they were ready. It does so
// before the set deletes them, since nothing else shows it afterwards.
func (d crashLoopBackoff) record() (Plan, bool) {
	if d.summary.starts.failures == 0 || d.p.CrashLoopBase <= 0 || d.wanted() == 0 {
		return Plan{}, false
	}
	c, missing := d.current(), d.missingNow()
	another := c.Rounds == 0 || d.summary.starts.latest > c.UpTo
	if !another && missing <= c.Missing {
		return Plan{}, false
	}
	if another {
		c.Rounds, c.UpTo = min(c.Rounds, math.MaxInt32-1)+1, d.s.Instructions.Reservation.Reserved
	}
	c.Last, c.Missing, c.Against = d.stamp(), missing, d.o.Inputs
	next := d.s.Status.Clone()
	next.CrashLoop = c
	next.Conditions = d.condition(next.Conditions, &c)
	why := decision.Why{Reason: reasonFailedBeforeReady, Count: int64(c.Rounds), For: d.p.crashLoopDelay(c.Rounds)}
	if why.For == 0 {
		return Plan{Write: &UpdateStatus{next}, Why: decision.Why{Reason: reasonFailedBeforeReadyFirst}}, true
	}
	return Plan{Write: &UpdateStatus{next}, Why: why, Warn: why}, true
}

// nextTry returns when the missing machines are created; zero: at once. A failure
// with a time that no clock can have written delays nothing.
func (d crashLoopBackoff) nextTry() time.Time {
	c := d.current()
	wait := d.p.crashLoopDelay(c.Rounds)
	if wait == 0 || c.Last.After(d.now.Add(d.p.CrashLoopMax)) {
		return time.Time{}
	}
	if at := c.tryAt(wait); d.now.Before(at) {
		return at
	}
	return time.Time{}
}

// within is how many of the missing machines may be made now.
func (d crashLoopBackoff) within(short int) int {
	c, at := d.current(), d.nextTry()
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

// condition returns conditions with ConditionReplacementSlowed, from the
// second failure in a row on.
func (d crashLoopBackoff) condition(conditions []object.Condition, c *CrashLoop) []object.Condition {
	wait := d.p.crashLoopDelay(c.Rounds)
	if wait == 0 {
		return withoutCondition(conditions, ConditionReplacementSlowed)
	}
	return withCondition(conditions, object.Condition{
		Type: ConditionReplacementSlowed, Status: object.True, Reason: reasonFailedBeforeReady.String(),
		Message: fmt.Sprintf("machines failed before they ran, %d times in a row: replacements wait until %s",
			c.Rounds, c.tryAt(wait).UTC().Format(time.RFC3339)),
		Since: d.stamp(),
	})
}
