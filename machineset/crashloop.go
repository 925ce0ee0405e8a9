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

// starts are the machines that failed before they were ready, and the last one that became ready.
type starts struct {
	failures int       // machines that failed before they were ready
	latest   int64     // the highest number among them
	ran      time.Time // when the last ready machine became ready; zero: not needed
}

// failed counts a machine that failed, if it was never ready.
func (c *starts) failed(d *state, m *machine.Machine) {
	if !failedBeforeReady(m) {
		return
	}
	c.failures++
	// A number that was never given out is not later than those that were.
	c.latest = max(c.latest, min(ordinalOf(d.s.namePrefix(), m.Name), d.s.Instructions.Reservation.Reserved))
}

// joined records when the last ready machine became ready, if failures are counted. A time in the future
// does not count, or it would end the count again and again.
func (c *starts) joined(d *state, m *machine.Machine) {
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

// currentCrashLoop returns the count as of now. It is zero if a machine became ready since, if the class or
// its secrets have changed, if no machine is wanted, or if the policy has no such backoff. Once the backoff
// is over, machines that were created are no longer missing: if they fail too, that is recorded again.
func (d *state) currentCrashLoop() CrashLoop {
	c := d.s.Status.CrashLoop
	if d.p.CrashLoopBase <= 0 || c.Rounds <= 0 || d.wanted() == 0 || c.Against != d.o.Inputs || d.summary.starts.ran.After(c.Last) {
		return CrashLoop{}
	}
	if !d.now.Before(c.tryAt(d.p.crashLoopDelay(c.Rounds))) {
		c.Missing = min(c.Missing, d.missingNow())
	}
	return c
}

func (d *state) missingNow() int32 { return int32(min(max(d.short(), 0), math.MaxInt32)) }

// recordCrashLoop stores that machines failed before they were ready, before the set deletes them: nothing
// else shows it afterwards.
func (d *state) recordCrashLoop() (Plan, bool) {
	if d.summary.starts.failures == 0 || d.p.CrashLoopBase <= 0 || d.wanted() == 0 {
		return Plan{}, false
	}
	c, missing := d.currentCrashLoop(), d.missingNow()
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
	next.Conditions = d.backoffCondition(next.Conditions, &c)
	why := decision.Why{Reason: reasonFailedBeforeReady, Count: int64(c.Rounds), For: d.p.crashLoopDelay(c.Rounds)}
	if why.For == 0 {
		return Plan{Write: &UpdateStatus{next}, Why: decision.Why{Reason: reasonFailedBeforeReadyFirst}}, true
	}
	return Plan{Write: &UpdateStatus{next}, Why: why, Warn: why}, true
}

// nextReplacement returns when the missing machines are created. Zero: at once. A failure at a time that no
// clock can have written delays nothing.
func (d *state) nextReplacement() time.Time {
	c := d.currentCrashLoop()
	wait := d.p.crashLoopDelay(c.Rounds)
	if wait == 0 || c.Last.After(d.now.Add(d.p.CrashLoopMax)) {
		return time.Time{}
	}
	if at := c.tryAt(wait); d.now.Before(at) {
		return at
	}
	return time.Time{}
}

// withinBackoff returns how many of the missing machines may be created now.
func (d *state) withinBackoff(short int) int {
	c, at := d.currentCrashLoop(), d.nextReplacement()
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

// backoffCondition returns conditions with ConditionReplacementSlowed, from the
// second failure in a row on.
func (d *state) backoffCondition(conditions []object.Condition, c *CrashLoop) []object.Condition {
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
