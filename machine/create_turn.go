package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// A provider that refuses to create anything of a class, for want of a quota or
// for a mistake in the class, refuses it to every machine of the class. Who
// knows that (package safety keeps count) tells each of them by a Hold; the
// machine then calls nobody until it is its turn to try for all. Its creation
// clock runs on. If a quota is missing, the machine's status says so once: an
// autoscaler goes by that, and tries another group of nodes.

// createTurnRetry is after how long a turn is asked for again where the answer says
// nothing better.
const createTurnRetry = 5 * time.Second

// held keeps a machine whose class is slowed from calling the provider until it
// is its turn. It comes before the announcement, so that a machine that waits
// writes no more than one status.
func (d *decider) held() (Plan, bool) {
	h, turn := d.o.Hold, d.o.CreateTurn
	if h == nil || d.o.Created != nil || turn != nil && turn.Given {
		return Plan{}, false
	}
	deadline := d.creationDeadline()
	if !d.now.Before(deadline) {
		return d.heldTooLong(), true
	}
	why := decision.Why{Reason: reasonHeld, Detail: h.String(), Code: h.Code}
	at := h.Until
	switch {
	case turn != nil:
		at = turn.At
	case !d.now.Before(at):
		why.Reason = reasonAskCreate
		return Plan{Effect: AskCreate{}, Why: why}, true
	}
	if d.unnoted(h) {
		return d.noteHeld(h), true
	}
	if !d.now.Before(at) {
		at = d.now.Add(createTurnRetry)
	}
	if deadline.Before(at) {
		at = deadline
	}
	why.For = at.Sub(d.now)
	return Plan{At: at, Why: why}, true
}

// unnoted reports whether the status of a new machine has yet to say that a quota
// is missing.
func (d *decider) unnoted(h *Hold) bool {
	s := &d.m.Status
	return h.Code == codes.ResourceExhausted && s.Phase == PhaseNew && s.LastOperation.Kind == "" && d.m.Spec.ProviderID == ""
}

// noteHeld records the refusal that the class met as this machine's own.
func (d *decider) noteHeld(h *Hold) Plan {
	why := decision.Why{Reason: reasonHeldNoted, Detail: h.String(), Code: h.Code}
	never := !d.known()
	return d.move(EventCreateFailed, why, func(s *Status) {
		s.LastOperation, s.NeverCreated = d.failure(OperationCreate, StageNone, h.Code, h.String()), never
	})
}

// heldNoted reports whether the last operation is what noteHeld wrote. It is no
// attempt of this machine, so nothing waits for it.
func (d *decider) heldNoted() bool {
	op := &d.m.Status.LastOperation
	return op.Kind == OperationCreate && op.State == StateFailed && op.Stage == StageNone && op.Code == codes.ResourceExhausted
}

// heldTooLong gives up a machine whose time was up before it was its turn. Its
// failure carries the code of what held it back.
func (d *decider) heldTooLong() Plan {
	h, last, never := d.o.Hold, &d.m.Status.LastOperation, d.m.untouched() && !d.known()
	why := decision.Why{Reason: reasonCreationTimeout, For: d.p.creationTimeout(d.m), Detail: h.String()}
	return d.move(EventCreationTimeout, why, func(s *Status) {
		op := d.failure(OperationCreate, last.Stage, h.Code, why.String())
		if last.Kind != OperationCreate {
			op.Stage = StageNone
		}
		s.LastOperation, s.NeverCreated = op, never
	})
}

// mayBeMade tells whether a VM may exist though none is recorded: a create was
// announced, and no refusal says that nothing came of it.
func (d *decider) mayBeMade() bool {
	op := &d.m.Status.LastOperation
	return d.began() && (op.State != StateFailed || codes.RecoveryFor(codes.CreateMachine, op.Code).AutoRetry)
}
