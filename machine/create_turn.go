package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// A provider that refuses to create anything of a class, because a quota is used up
// or the class has a mistake, refuses it to every machine of the class. Package
// safety keeps count, and the caller passes a Hold to each of them. A machine with a
// Hold makes no call until it is its turn to try for all. Its creation
// clock begins with its first try. If a quota is missing, the machine's status says so once: an
// autoscaler reads that, and tries another group of nodes.

// createTurnRetry is after how long a turn is asked for again where the answer says
// nothing better.
const createTurnRetry = 5 * time.Second

// held keeps a machine whose class is slowed from calling the provider until it
// is its turn. It comes before the announcement, so that a machine that waits
// writes no more than one status.
func (c creation) held() (Plan, bool) {
	h, turn := c.o.Hold, c.o.CreateTurn
	if h == nil || c.o.Created != nil || turn != nil && turn.Given {
		return Plan{}, false
	}
	deadline := c.creationDeadline()
	if !c.now.Before(deadline) {
		return c.heldTooLong(), true
	}
	why := decision.Why{Reason: reasonHeld, Detail: h.String(), Code: h.Code}
	at := h.Until
	switch {
	case turn != nil:
		at = turn.At
	case !c.now.Before(at):
		why.Reason = reasonAskCreate
		return Plan{Effect: AskCreate{}, Why: why}, true
	}
	if c.unnoted(h) {
		return c.noteHeld(h), true
	}
	if !c.now.Before(at) {
		at = c.now.Add(createTurnRetry)
	}
	if deadline.Before(at) && !c.unbegun() {
		at = deadline
	}
	why.For = at.Sub(c.now)
	return Plan{At: at, Why: why}, true
}

// unnoted reports whether the status of a new machine has yet to say that a quota
// is missing.
func (c creation) unnoted(h *Hold) bool {
	s := &c.m.Status
	return h.Code == codes.ResourceExhausted && s.Phase == PhaseNew && s.LastOperation.Kind == "" && c.m.Spec.ProviderID == ""
}

// noteHeld records the refusal that the class met as this machine's own.
func (c creation) noteHeld(h *Hold) Plan {
	why := decision.Why{Reason: reasonHeldNoted, Detail: h.String(), Code: h.Code}
	never := !c.known()
	return c.move(eventCreateFailed, why, func(s *Status) {
		s.LastOperation, s.NeverCreated = c.failure(OperationCreate, StageNone, h.Code, h.String()), never
	})
}

// heldNoted reports whether the last operation is what noteHeld wrote. It is no
// attempt of this machine, so nothing waits for it.
func (s *situation) heldNoted() bool {
	op := &s.m.Status.LastOperation
	return op.Kind == OperationCreate && op.State == StateFailed && op.Stage == StageNone && op.Code == codes.ResourceExhausted
}

// heldTooLong marks a machine failed whose time was up before its next turn. Its
// failure carries the code of what held it back.
func (c creation) heldTooLong() Plan {
	h, last, never := c.o.Hold, &c.m.Status.LastOperation, c.m.untouched() && !c.known()
	why := decision.Why{Reason: reasonCreationTimeout, For: c.p.creationTimeout(c.m), Detail: h.String()}
	return c.move(eventCreationTimeout, why, func(s *Status) {
		op := c.failure(OperationCreate, last.Stage, h.Code, why.String())
		if last.Kind != OperationCreate {
			op.Stage = StageNone
		}
		s.LastOperation, s.NeverCreated = op, never
	})
}

// mayBeMade reports whether a VM may exist though none is recorded: a create was
// announced, and no refusal says that nothing came of it.
func (c creation) mayBeMade() bool {
	op := &c.m.Status.LastOperation
	return c.began() && (op.State != StateFailed || codes.RecoveryFor(codes.CreateMachine, op.Code).AutoRetry)
}
