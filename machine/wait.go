package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// How long to wait is decided here: after a failure, by the recovery table of
// package codes, and from a persisted time on, by the clock.

// deadlineAfter is the first moment at which d has certainly passed since a persisted
// time, which lost its fraction of a second, or since the clocks were
// restarted, or a pause ended, if that was later.
func (d *decider) deadlineAfter(base time.Time, wait time.Duration) time.Time {
	return d.waitBase(base).Add(wait).Add(time.Second)
}

// waitBase is a persisted time, or when the clocks were restarted, or a pause
// ended, if that was later.
func (d *decider) waitBase(base time.Time) time.Time {
	for _, from := range [...]time.Time{d.m.Status.ClockFrom, d.m.Status.ResumedAt} {
		if from.After(base) {
			base = from
		}
	}
	return base
}

// verdictAt returns when a wait of this length, which began at a persisted time,
// counts as failed. The awaited event may have happened while no process looked, or
// the cause that stopped the process may have prevented it. So the end of a wait
// that began before this process did is believed only after a grace.
func (d *decider) verdictAt(base time.Time, wait time.Duration) time.Time {
	at, watched := d.deadlineAfter(base, wait), d.o.WatchedSince
	if watched.IsZero() || watched.After(d.now) || !d.waitBase(base).Before(watched.Truncate(time.Second)) {
		return at
	}
	until := watched.Add(max(d.p.Grace, 0))
	if !until.After(at) {
		return at
	}
	d.spared = !d.now.Before(at) && d.now.Before(until)
	return until
}

// retryAt returns when the recovery table allows the next attempt after the
// persisted failure; zero: now. The attempt does not wait if the machine, its class
// or its secrets have changed. It does not wait for a failure with a time in the
// future either, which could delay it without end.
func (d *decider) retryAt(call codes.Call) time.Time {
	op := &d.m.Status.LastOperation
	if op.State != StateFailed || op.Against != d.inputs() || op.Time.After(d.now) {
		return time.Time{}
	}
	recovery := codes.RecoveryFor(call, op.Code)
	waits := d.p.WaitForChange && !recovery.AutoRetry && recovery.Class != codes.None && calls(op.Stage)
	if recovery.Class == codes.None || recovery.Class == codes.Requeue {
		recovery.Class = codes.Short // a failure that was persisted is never retried in a spin
	}
	at := op.Time.Add(recovery.Backoff(d.o.Failures, d.p.QuotaRetry)).Add(time.Second)
	if waits {
		at = op.Time.Add(endless)
	}
	if !d.now.Before(at) {
		return time.Time{}
	}
	return at
}

// endless is longer than any wait. What waits so long waits for a change alone.
const endless = 200 * 365 * 24 * time.Hour

// calls reports whether a failed stage is one that calls the provider. In other stages the cluster
// has answered, and none of the changes that a wait ends with can mend that.
func calls(stage Stage) bool {
	switch stage {
	case StageGetVMStatus, StageCreateVM, StageInstanceInitialization, StageInitiateVMDeletion, StageUpdateVM:
		return true
	}
	return false
}

// retryLater waits until a failed call may be made again, but not beyond a deadline. Zero: there is
// none.
func (d *decider) retryLater(name string, at, deadline time.Time) Plan {
	why := decision.Why{Reason: reasonRetryAt, Name: name, Code: d.m.Status.LastOperation.Code}
	if at.Sub(d.now) > endless/2 {
		why.Reason = reasonWaitForChange
		return Plan{At: deadline, Why: why}
	}
	if !deadline.IsZero() && deadline.Before(at) {
		at = deadline
	}
	why.For = at.Sub(d.now)
	return Plan{At: at, Why: why}
}

// How long after a write of a node the next one is made: of one that failed,
// and of one that something undid at once and would undo again.
const (
	nodeRetry   = 5 * time.Second
	undoneRetry = 10 * time.Minute
)

// within bounds the wait of a plan by the end of an update's time.
func within(plan Plan, until time.Time) Plan {
	if plan.Write == nil && plan.Effect == nil && (plan.At.IsZero() || until.Before(plan.At)) {
		plan.At = until
	}
	return plan
}

// sooner has a plan look again no later than at.
func sooner(plan Plan, at time.Time) Plan {
	if plan.At.IsZero() || at.Before(plan.At) {
		plan.At = at
	}
	return plan
}

// validPast is a persisted time, unless it lies in the future: no wait can be
// counted from a time that no process can have stored.
func (d *decider) validPast(at time.Time) time.Time {
	if at.After(d.now) {
		return time.Time{}
	}
	return at
}

// creationDeadline returns when a machine that has not joined is marked failed. The time of one
// whose creation has not begun has not begun either.
func (d *decider) creationDeadline() time.Time {
	base := d.m.CreatedAt
	if d.creationNotBegun() {
		base = d.now
	}
	return d.verdictAt(base, d.p.creationTimeout(d.m))
}

// creationNotBegun reports whether no step of the machine's creation is recorded, since it was held back or
// no process looked, or the provider takes no call now.
func (d *decider) creationNotBegun() bool {
	return d.o.Paced || d.m.Status.Phase == PhaseNew || d.classBackoffRecorded()
}

// beginCreationClock restarts the clock of a machine whose creation begins late.
func (d *decider) beginCreationClock(status *Status) {
	if d.creationNotBegun() && d.now.Sub(d.m.CreatedAt) > max(d.p.Grace, 0) {
		status.ResumedAt = d.stamp()
	}
}

// earlierOf returns the earlier of the requested retry time, if there is one, and the deadline. A retry
// time in the past becomes a second from now.
func (d *decider) earlierOf(at, until time.Time) time.Time {
	if at.IsZero() || until.Before(at) {
		return until
	}
	if !at.After(d.now) {
		at = d.now.Add(time.Second)
		if until.Before(at) {
			return until
		}
	}
	return at
}

// retrySoon is a plan that looks again soon at a node that could not be written.
func (d *decider) retrySoon(why decision.Why) Plan {
	return Plan{At: d.now.Add(nodeRetry), Why: why, Warn: why}
}
