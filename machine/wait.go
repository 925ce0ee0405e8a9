package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// deadlineAfter returns the first moment at which a wait has certainly passed. It counts from waitBase,
// and adds a second because stored times have whole seconds.
func (d *decider) deadlineAfter(base time.Time, wait time.Duration) time.Time {
	return d.waitBase(base).Add(wait).Add(time.Second)
}

// waitBase returns the latest of restarted and the beginning of this process's term: until then, another
// process may have watched, by another clock.
func (d *decider) waitBase(base time.Time) time.Time {
	base = d.restarted(base)
	if led := d.o.LedSince; led.After(base) && !led.After(d.now) {
		return led
	}
	return base
}

// restarted returns the latest of base, the restart of all clocks (Status.ClockFrom), and the end of the
// last pause (Status.ResumedAt).
func (d *decider) restarted(base time.Time) time.Time {
	for _, from := range [...]time.Time{d.m.Status.ClockFrom, d.m.Status.ResumedAt} {
		if from.After(base) {
			base = from
		}
	}
	return base
}

// verdictAt returns when a wait counts as failed: at its deadline. If the wait began before this process
// did, it does not fail before the process has watched for Policy.Grace: the awaited event may have
// happened while no process watched, or an outage that stopped the process may have prevented it.
func (d *decider) verdictAt(base time.Time, wait time.Duration) time.Time {
	deadline, watched := d.deadlineAfter(base, wait), d.o.WatchedSince
	if watched.IsZero() || watched.After(d.now) || !d.waitBase(base).Before(watched.Truncate(time.Second)) {
		return deadline
	}
	if end := watched.Add(max(d.p.Grace, 0)); end.After(deadline) {
		return end
	}
	return deadline
}

// retryAt returns when the next attempt after the stored failure is allowed, by the recovery table of
// package codes and Policy.WaitForChange. Zero: now, also if the machine, its class or its secrets have
// changed. A failure with a time in the future is ignored, because it could delay the attempt without end.
func (d *decider) retryAt(call codes.Call) time.Time {
	op := &d.m.Status.LastOperation
	if op.State != StateFailed || op.Against != d.inputs() || op.Time.After(d.now) {
		return time.Time{}
	}
	recovery := codes.RecoveryFor(call, op.Code)
	waits := d.p.WaitForChange && !recovery.AutoRetry && recovery.Class != codes.None && callsProvider(op.Stage)
	if recovery.Class == codes.None || recovery.Class == codes.Requeue {
		recovery.Class = codes.Short // a stored failure is never retried in a tight loop
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

// endless is longer than any wait: the next attempt is made only after a change.
const endless = 200 * 365 * 24 * time.Hour

// callsProvider reports whether a stage calls the provider. In other stages the cluster has failed, and
// no change of machine, class or secrets repairs that.
func callsProvider(stage Stage) bool {
	switch stage {
	case StageGetVMStatus, StageCreateVM, StageInstanceInitialization, StageInitiateVMDeletion, StageUpdateVM:
		return true
	}
	return false
}

// retryLater waits for the next attempt of a failed call, or for the deadline if that is earlier. A zero
// deadline means none.
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

const (
	nodeRetry   = 5 * time.Second  // after a failed write of a node, or another failed call to the cluster
	undoneRetry = 10 * time.Minute // after a write of a node that another program undoes each time
)

// lookAgainBy returns the plan. If the plan ends the pass, its At is not later than the given time.
func lookAgainBy(plan Plan, at time.Time) Plan {
	if plan.Write == nil && plan.Effect == nil && (plan.At.IsZero() || at.Before(plan.At)) {
		plan.At = at
	}
	return plan
}

// validPast returns a stored time, or zero if it lies in the future: such a time is an error, and no wait
// may count from it.
func (d *decider) validPast(at time.Time) time.Time {
	if at.After(d.now) {
		return time.Time{}
	}
	return at
}

// creationDeadline returns when a machine that has not joined is marked Failed.
func (d *decider) creationDeadline() time.Time {
	return d.verdictAt(d.creationBase(), d.p.creationTimeout(d.m))
}

// creationBase returns when the creation timeout begins: with the machine's creation, or now if the first
// step is still to come (creationNotBegun).
func (d *decider) creationBase() time.Time {
	if d.creationNotBegun() {
		return d.now
	}
	return d.m.CreatedAt
}

// creationNotBegun reports whether no step of the creation is recorded (the record of a class backoff is
// none), or the provider's rate limit delays the calls.
func (d *decider) creationNotBegun() bool {
	return d.o.Paced || d.m.Status.Phase == PhaseNew || d.classBackoffRecorded()
}

// beginCreationClock restarts the clocks of a machine whose creation begins more than Policy.Grace late.
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

// retrySoon looks again soon at a node that could not be written, and warns why.
func (d *decider) retrySoon(why decision.Why) Plan {
	return Plan{At: d.now.Add(nodeRetry), Why: why, Warn: why}
}
