package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// How long to wait is decided here: after a failure, by the recovery table of
// package codes, and from a persisted time on, by the clock.

// after is the first moment at which d has certainly passed since a persisted
// time, which lost its fraction of a second, or since the clocks were
// restarted, or a pause ended, if that was later.
func (d *decider) after(base time.Time, wait time.Duration) time.Time {
	return d.since(base).Add(wait).Add(time.Second)
}

// since is a persisted time, or when the clocks were restarted, or a pause
// ended, if that was later.
func (d *decider) since(base time.Time) time.Time {
	for _, from := range [...]time.Time{d.m.Status.ClockFrom, d.m.Status.ResumedAt} {
		if from.After(base) {
			base = from
		}
	}
	return base
}

// verdictAt is when a machine is given up for a wait of this length that began at
// a persisted time. What was to happen may have happened while no process
// looked, or been kept from happening by what stopped the process: so the end of
// a wait that began before this process did is believed only after a grace.
func (d *decider) verdictAt(base time.Time, wait time.Duration) time.Time {
	at, watched := d.after(base, wait), d.o.WatchedSince
	if watched.IsZero() || watched.After(d.now) || !d.since(base).Before(watched.Truncate(time.Second)) {
		return at
	}
	until := watched.Add(d.p.Grace)
	if !until.After(at) {
		return at
	}
	d.spared = !d.now.Before(at) && d.now.Before(until)
	return until
}

// whileSpared says so of a plan that ends the pass, where the machine's time is
// up and only the grace has it go on.
func (d *decider) whileSpared(plan Plan) Plan {
	if d.spared && plan.Write == nil && plan.Effect == nil {
		plan.Why = decision.Why{Reason: reasonGrace, Detail: plan.Why.String(), For: d.p.Grace}
	}
	return plan
}

func (d *decider) operation(kind OperationKind, state OperationState, stage Stage) Operation {
	return Operation{Kind: kind, State: state, Stage: stage, Time: d.stamp()}
}

func (d *decider) failure(kind OperationKind, stage Stage, code codes.Code, message string) Operation {
	op := d.operation(kind, StateFailed, stage)
	op.Code, op.Message, op.Against = code, message, d.inputs()
	return op
}

func (d *decider) inputs() Inputs {
	in := Inputs{Machine: d.m.Generation, Secret: d.o.Secret}
	if d.o.Class != nil {
		in.Class = d.o.Class.Generation
	}
	return in
}

// retryAt is when the recovery table allows the next attempt after the
// persisted failure; zero: now. What the call depends on having changed opens
// the gate at once, and so does a failure that claims to lie in the future:
// nobody knows for how long it would keep the gate shut.
func (d *decider) retryAt(call codes.Call) time.Time {
	op := &d.m.Status.LastOperation
	if op.State != StateFailed || op.Against != d.inputs() || op.Time.After(d.now) {
		return time.Time{}
	}
	class := codes.RecoveryFor(call, op.Code).Class
	if class == codes.None || class == codes.Requeue {
		class = codes.Short // a failure that was persisted is never retried in a spin
	}
	at := op.Time.Add(class.Backoff(d.o.Failures, d.p.QuotaRetry)).Add(time.Second)
	if !d.now.Before(at) {
		return time.Time{}
	}
	return at
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
