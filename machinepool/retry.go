package machinepool

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

func (d *decider) operation(call Call, state machine.OperationState) Operation {
	return Operation{Call: call, State: state, Time: d.stamp()}
}

func (d *decider) inputs() Inputs {
	in := Inputs{Pool: d.s.Generation, Secret: d.o.Secret}
	if d.o.Class != nil {
		in.Class = d.o.Class.Generation
	}
	return in
}

// retryAt returns when the recovery table allows the next attempt of a call after the persisted
// failure. Zero: now. A change of the call's inputs allows it at once. So does a failure from the
// future, because the length of its wait would be unknown.
func (d *decider) retryAt(call Call) time.Time {
	op := &d.s.Status.LastOperation
	if op.Call != call || op.State != machine.StateFailed || op.Against != d.inputs() || op.Time.After(d.now) {
		return time.Time{}
	}
	recovery := call.Recovery(op.Code)
	waits := d.p.WaitForChange && !recovery.AutoRetry && recovery.Class != codes.None && call.provider()
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

// gate holds a call back until it may be made again.
func (d *decider) gate(call Call) (Plan, bool) {
	at := d.retryAt(call)
	if at.IsZero() {
		return Plan{}, false
	}
	op := &d.s.Status.LastOperation
	why := decision.Why{Reason: reasonRetryAt, Name: string(call), Code: op.Code, Detail: op.Message, For: at.Sub(d.now)}
	if why.For < endless/2 {
		return Plan{At: at, Why: why}, true
	}
	why.Reason, why.For = reasonWaitForChange, 0
	if call == GetPoolStatus || d.s.Deleted() {
		return Plan{Why: why}, true
	}
	return Plan{At: d.now.Add(d.p.Period), Why: why}, true // the group is looked at as usual
}

// done holds back a call that has just succeeded for the same size: the provider may not show it
// yet, or may never show it. Without that, a call that changes nothing would be repeated endlessly
// without a pause.
func (d *decider) done(call Call) (Plan, bool) {
	op := &d.s.Status.LastOperation
	at := op.Time.Add(d.p.Poll)
	if op.Call != call || op.State != machine.StateSuccessful || op.Replicas != d.wanted() || op.Time.After(d.now) || !d.now.Before(at) {
		return Plan{}, false
	}
	return Plan{At: at, Why: decision.Why{Reason: reasonTakesEffect, Name: string(call), For: at.Sub(d.now)}}, true
}

// order plans a changing effect. A write of the same pass announces it first, so that a process
// that decides from an old pool fails at that write. An announcement of an earlier pass does not
// count: that order may have been carried out, from another template.
func (d *decider) order(call Call, effect Effect, why decision.Why) Plan {
	if plan, waits := d.gate(call); waits {
		return plan
	}
	if plan, waits := d.done(call); waits {
		return plan
	}
	op := &d.s.Status.LastOperation
	if !d.o.Announced || op.Call != call || op.State != machine.StateProcessing || op.Replicas != d.wanted() {
		announced := d.operation(call, machine.StateProcessing)
		announced.Replicas = d.wanted()
		plan := d.setStatus(decision.Why{Reason: reasonFence, Name: string(call)}, func(s *Status) {
			s.LastOperation = announced
			switch call {
			case CreatePool:
				s.Applied = d.ordered(&s.Applied)
				s.GroupID = "" // it is gone: a deletion finds the new group by the pool's name
			case UpdatePool:
				s.Applied = s.Applied.doubted()
			}
		})
		plan.Announces = true
		return plan
	}
	return Plan{Effect: effect, Why: why}
}
