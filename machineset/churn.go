package machineset

import (
	"fmt"
	"math"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Machines that never come to run, for want of a quota, or because their image
// is broken, are replaced; and so are their replacements. Each time that goes
// wrong costs a VM, or a create at least, and helps nobody. So a set counts how
// often it did in a row, and takes its time: the first replacements are made at
// once, the second ones a while later, and each further wait is twice as long.
// The first machine that comes to run ends it. A changed template is another set,
// which has a count of its own.
//
// What waits is only what was missing when the failure was noted. What is missing
// besides, because more machines are wanted or one is lost that had run, is made
// at once.

// Churn counts the failures of machines that never ran. The zero value: there
// was none since the last one that did.
type Churn struct {
	// Rounds is how often in a row machines failed. Those that were made
	// before the failure of another fail in the same round.
	Rounds int32
	// UpTo is the highest number that was given out when the last round was
	// counted: a failure of a machine with a higher one is another round.
	UpTo int64
	// Last is when a failure was last noted. Whole seconds.
	Last time.Time
	// Missing is how many machines were missing then, with those that failed.
	Missing int32
	// Against are the versions of class and secrets that they failed with:
	// once one of them is another, the count begins anew.
	Against machine.Inputs
}

// Equal tells whether both say the same, the same instant in whatever location.
func (c *Churn) Equal(d *Churn) bool {
	e := *d
	e.Last = c.Last
	return *c == e && c.Last.Equal(d.Last)
}

// churnDelay is how long after the last failure of so many rounds their
// replacements are made; zero: at once.
func (p *Policy) churnDelay(rounds int32) time.Duration {
	if rounds <= 1 || p.ChurnBase <= 0 {
		return 0
	}
	wait := p.ChurnBase
	for ; rounds > 2 && wait < p.ChurnMax; rounds-- {
		wait *= 2
	}
	return min(wait, p.ChurnMax)
}

// stillborn tells whether a machine failed before it ever ran.
func stillborn(m *machine.Machine) bool {
	return m.Status.Phase == machine.PhaseFailed && m.Status.JoinedAfter == 0 &&
		m.Status.LastOperation.Kind == machine.OperationCreate
}

// countStillborn counts a machine that failed, if it never ran.
func (v *surveyor) countStillborn(m *machine.Machine) {
	if !stillborn(m) {
		return
	}
	c := &v.census
	c.stillborn++
	// A number that was never given out is not later than those that were.
	c.latest = max(c.latest, min(ordinalOf(v.s.namePrefix(), m.Name), v.s.Reservation.Reserved))
}

// countJoined notes when the last ready machine came to run, where that matters.
// A time to come says nothing, or it would end the count again and again.
func (v *surveyor) countJoined(m *machine.Machine) {
	if v.s.Status.Churn.Rounds == 0 {
		return
	}
	at := m.Status.Since
	if m.Status.JoinedAfter > 0 {
		at = m.CreatedAt.Add(m.Status.JoinedAfter)
	}
	if at.After(v.census.joined) && !at.After(v.now) {
		v.census.joined = at
	}
}

// churn is the count as it is by now: none if a machine came to run since, if
// class or secrets are others, or if no machine is wanted. Once their time has
// come, those that were made are not missing any more: their failure is to be
// noted anew.
func (d *decider) churn() Churn {
	c := d.s.Status.Churn
	if d.p.ChurnBase <= 0 || c.Rounds <= 0 || d.wanted() == 0 || c.Against != d.o.Inputs || d.census.joined.After(c.Last) {
		return Churn{}
	}
	if !d.now.Before(c.tryAt(d.p.churnDelay(c.Rounds))) {
		c.Missing = min(c.Missing, d.missingNow())
	}
	return c
}

func (d *decider) missingNow() int32 { return int32(min(max(d.short(), 0), math.MaxInt32)) }

// noteStillborn stores that machines failed before they ever ran, before they
// are deleted and nothing is left to know it by.
func (d *decider) noteStillborn() (Plan, bool) {
	if d.census.stillborn == 0 || d.p.ChurnBase <= 0 || d.wanted() == 0 {
		return Plan{}, false
	}
	c, missing := d.churn(), d.missingNow()
	another := c.Rounds == 0 || d.census.latest > c.UpTo
	if !another && missing <= c.Missing {
		return Plan{}, false
	}
	if another {
		c.Rounds, c.UpTo = min(c.Rounds, math.MaxInt32-1)+1, d.s.Reservation.Reserved
	}
	c.Last, c.Missing, c.Against = d.stamp(), missing, d.o.Inputs
	next := d.s.Status.Clone()
	next.Churn = c
	next.Conditions = d.churnCondition(next.Conditions, &c)
	why := decision.Why{Reason: reasonStillborn, Count: int64(c.Rounds), For: d.p.churnDelay(c.Rounds)}
	if why.For == 0 {
		return Plan{Write: &UpdateStatus{next}, Why: decision.Why{Reason: reasonStillbornFirst}}, true
	}
	return Plan{Write: &UpdateStatus{next}, Why: why, Warn: why}, true
}

// nextTry is when those that wait are made; zero: at once. A failure so far
// ahead that it is nobody's holds up nothing.
func (d *decider) nextTry() time.Time {
	c := d.churn()
	wait := d.p.churnDelay(c.Rounds)
	if wait == 0 || c.Last.After(d.now.Add(d.p.ChurnMax)) {
		return time.Time{}
	}
	if at := c.tryAt(wait); d.now.Before(at) {
		return at
	}
	return time.Time{}
}

// tryAt is a wait after the last failure, which lost its fraction of a second.
func (c *Churn) tryAt(wait time.Duration) time.Time { return c.Last.Add(wait + time.Second) }

// unhurried is how many of the missing machines may be made now.
func (d *decider) unhurried(short int) int {
	c, at := d.churn(), d.nextTry()
	waiting := min(short, int(c.Missing))
	if at.IsZero() || waiting <= 0 {
		return short
	}
	d.lookAgain(at)
	d.waiting = d.tally(reasonUnhurried)
	d.waiting.Count, d.waiting.Number = int64(waiting), int64(c.Rounds)
	d.waiting.For = at.Sub(d.now)
	return short - waiting
}

// churnCondition is conditions with what the count has to say: something from
// the second failure in a row on.
func (d *decider) churnCondition(conditions []object.Condition, c *Churn) []object.Condition {
	wait := d.p.churnDelay(c.Rounds)
	if wait == 0 {
		return withoutCondition(conditions, ConditionReplacementSlowed)
	}
	return withCondition(conditions, object.Condition{
		Type: ConditionReplacementSlowed, Status: object.True, Reason: reasonStillborn.String(),
		Message: fmt.Sprintf("machines failed before they ran, %d times in a row: what is missing since is not made before %s",
			c.Rounds, c.tryAt(wait).UTC().Format(time.RFC3339)),
		Since: d.stamp(),
	})
}

// holdCondition is conditions with why machines are not created that exist, if
// the provider refuses their class.
func (d *decider) holdCondition(conditions []object.Condition) []object.Condition {
	h := d.o.Hold
	if h == nil || d.census.unmade == 0 {
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

// unmade tells whether a machine has no VM yet and is to get one.
func unmade(m *machine.Machine) bool {
	switch m.Status.Phase {
	case machine.PhaseNew, machine.PhasePending, machine.PhaseCrashLoopBackOff:
		return m.Spec.ProviderID == ""
	case machine.PhaseAvailable, machine.PhaseRunning, machine.PhaseUnknown, machine.PhaseFailed, machine.PhaseTerminating,
		machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdateFailed:
	}
	return false
}
