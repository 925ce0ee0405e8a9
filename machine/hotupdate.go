package machine

import (
	"maps"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// A VM is changed where it is, without a replacement, when the spec that it
// should have differs from the one it was made from only in fields that the
// driver declares. The machine keeps its phase and its node meanwhile.
//
// Each call is announced by a write in the very pass that issues it, as a
// create is: a reader of an old state fails there, before it can bring back
// what was asked for earlier. What was announced stays noted until a call has
// been answered with OK, so that one whose answer got lost is made good even if
// the spec is what it was before.

// turnRetry is after how long a machine asks again whether it is its turn.
const turnRetry = 10 * time.Second

// hasSpec reports whether there is nothing to do about the VM's spec: the driver
// declares nothing, or the VM is as the class says.
func (h hotUpdate) hasSpec() bool {
	return h.o.VMSpec == nil || h.m.Status.VMSpec == *h.o.VMSpec
}

// refresh returns the plan it is given if that does anything. Otherwise it decides
// about the VM's spec: whether to update the VM to what its class says.
func (h hotUpdate) refresh(plan Plan) Plan {
	if h.hasSpec() || plan.Write != nil || plan.Effect != nil || !h.changeable() {
		return plan
	}
	if err := h.o.Class.Validate(); err != nil {
		plan.Why = decision.Why{Reason: reasonUpdateClass, Name: h.m.Spec.ProviderID, Detail: err.Error()}
		plan.Warn = firstOf(plan.Warn, plan.Why)
		return plan
	}
	want, have := h.o.VMSpec, h.knownSpec()
	switch {
	case have == VMSpec{}:
		return h.noteSpec(reasonSpecTaken)
	case have == *want:
		return h.noteSpec(reasonSpecNoted)
	case have.Declared != want.Declared || have.Fixed != want.Fixed:
		plan.Why = decision.Why{Reason: reasonSpecFixed, Name: h.m.Spec.Class.Name}
		plan.Warn = firstOf(plan.Warn, plan.Why)
		return plan
	}
	if wait, closed := h.refreshGate(plan); closed {
		return wait
	}
	return h.updateVM(plan, have)
}

// changeable reports whether a VM may be changed where it is: it does its work,
// and no other update or deletion is under way.
func (h hotUpdate) changeable() bool {
	phase := h.m.Status.Phase
	return (phase == PhaseRunning || phase == PhaseAvailable) && h.m.Spec.InPlace == InPlaceNone &&
		h.m.Spec.ProviderID != "" && h.o.Class != nil
}

// firstOf is the first of two reasons that says anything.
func firstOf(a, b decision.Why) decision.Why {
	if a != (decision.Why{}) {
		return a
	}
	return b
}

// knownSpec is the spec that the VM is known to have, in terms of what the
// driver declares now. A record from when it declared other fields says as
// much, unless the class has changed in others since.
func (h hotUpdate) knownSpec() VMSpec {
	have, want := h.m.Status.VMSpec, h.o.VMSpec
	if have.Fixed == "" || have.Declared == want.Declared {
		return have
	}
	was := strings.Split(have.Declared, ",")
	if SplitSpec(h.o.Class, was).Fixed != have.Fixed {
		return have
	}
	now := strings.Split(want.Declared, ",")
	next := SplitSpec(h.asOf(have), now)
	if have.Begun != "" {
		begun := have
		begun.Updatable = have.Begun
		next.Begun = SplitSpec(h.asOf(begun), now).Updatable
	}
	return next
}

// asOf is the class as it was when its spec had that split.
func (h hotUpdate) asOf(have VMSpec) *Class {
	return &Class{Provider: h.o.Class.Provider, ProviderSpec: RestoreSpec(h.o.Class, have)}
}

// noteSpec records that the VM has the spec of its class.
func (h hotUpdate) noteSpec(reason decision.Reason) Plan {
	why := decision.Why{Reason: reason, Name: h.m.Spec.Class.Name}
	return h.setStatus(why, func(s *Status) { s.VMSpec = *h.o.VMSpec })
}

// noteAgent notes that an agent has brought the VM to what its class says, but
// for what the driver can update.
func (h hotUpdate) noteAgent(plan Plan) Plan {
	write, ok := plan.Write.(*UpdateStatus)
	if want := h.o.VMSpec; ok && want != nil && write.Status.VMSpec.Declared == want.Declared && write.Status.VMSpec.Fixed != "" {
		write.Status.VMSpec.Fixed = want.Fixed
	}
	return plan
}

// refreshGate holds an update back: after a failure as the recovery table says;
// for good, until something changes, where the VM can't be changed. One said to be
// gone is asked for again after the health timeout, and 10 min at least: if it
// were gone its machine would have failed by then.
func (h hotUpdate) refreshGate(plan Plan) (Plan, bool) {
	op := &h.m.Status.LastOperation
	if op.Kind != OperationUpdate || op.State != StateFailed || op.Stage == StageSyncNode {
		return Plan{}, false
	}
	if NeverUpdated(op.Code) && op.Against == h.inputs() {
		return h.unchangeable(plan, op)
	}
	at := h.retryAt(codes.UpdateMachine)
	if at.IsZero() {
		return Plan{}, false
	}
	later := h.retryLater(string(op.Stage), at, time.Time{})
	if plan.Why = later.Why; later.At.IsZero() {
		return plan, true
	}
	return sooner(plan, at), true
}

// NeverUpdated reports whether a code of UpdateMachine says that asking again soon is
// of no use: the VM is gone, or can't be changed.
func NeverUpdated(code codes.Code) bool { return code == codes.NotFound || code == codes.Unimplemented }

// unchangeable leaves a VM that is gone to the verdict on its machine's health for the
// time that takes, and has a machine replaced whose VM can't be changed.
func (h hotUpdate) unchangeable(plan Plan, op *Operation) (Plan, bool) {
	if op.Code != codes.NotFound {
		return h.refused(plan), true
	}
	plan.Why = decision.Why{Reason: reasonUpdateNoVM, Name: h.m.Spec.ProviderID}
	plan.Warn = firstOf(plan.Warn, plan.Why)
	if h.o.NoCluster { // its health is not judged
		return plan, true
	}
	at := h.after(op.Time, max(h.p.healthTimeout(h.m), codes.Long.Backoff(0, 0)))
	return sooner(plan, at), h.now.Before(at) && !op.Time.After(h.now)
}

// refused has a machine replaced whose VM can't be changed, if there is anybody
// who does.
func (h hotUpdate) refused(plan Plan) Plan {
	name, key := h.m.Spec.ProviderID, h.p.Keys.Replace
	if key == "" || h.m.Owner == nil {
		plan.Why = decision.Why{Reason: reasonUpdateRefused, Name: name}
		plan.Warn = firstOf(plan.Warn, plan.Why)
		return plan
	}
	why := decision.Why{Reason: reasonUpdateReplace, Name: name}
	if h.m.Annotations[key] != "" { // what it says is its owner's to decide
		plan.Why = why
		return plan
	}
	changed := h.m.Clone()
	changed.Annotations = maps.Clone(changed.Annotations)
	if changed.Annotations == nil {
		changed.Annotations = make(map[string]string, 1)
	}
	changed.Annotations[key] = "true"
	return Plan{Write: &Update{changed}, Why: why}
}

// updateVM asks for its turn, announces the update, issues it, and looks at
// its answer.
func (h hotUpdate) updateVM(plan Plan, have VMSpec) Plan {
	why := decision.Why{Reason: reasonUpdateVM, Name: h.m.Spec.ProviderID}
	if answer := h.o.Updated; answer != nil {
		return h.answered(answer, why)
	}
	switch turn := h.o.UpdateTurn; {
	case turn == nil:
		why.Reason = reasonAskUpdate
		return Plan{Effect: AskUpdate{}, Why: why}
	case !turn.Allowed:
		plan.Why = decision.Why{Reason: reasonAwaitTurn, Name: why.Name, Detail: turn.Detail}
		if turn.At.After(h.now) {
			return sooner(plan, turn.At)
		}
		return sooner(plan, h.now.Add(turnRetry))
	}
	if have.Begun != "" && have.Begun != h.o.VMSpec.Updatable {
		have.Updatable = unite(have.Updatable, have.Begun) // the VM may have either
	}
	have.Begun = h.o.VMSpec.Updatable
	if !h.announced(have) {
		why.Reason = reasonUpdateAnnounced
		return h.setStatus(why, func(s *Status) {
			s.VMSpec = have
			s.LastOperation = h.operation(OperationUpdate, StateProcessing, StageUpdateVM)
		})
	}
	return Plan{Effect: UpdateVM{string(RestoreSpec(h.o.Class, have))}, Why: why}
}

func (h hotUpdate) announced(noted VMSpec) bool {
	s := &h.m.Status
	return h.o.Fenced && s.VMSpec == noted && s.LastOperation.Kind == OperationUpdate &&
		s.LastOperation.State == StateProcessing
}

// answered records how an update ended.
func (h hotUpdate) answered(answer *VM, why decision.Why) Plan {
	if answer.Code == codes.OK {
		why.Reason = ReasonVMUpdated
		return h.setStatus(why, func(s *Status) {
			h.noteVM(s)
			s.VMSpec = *h.o.VMSpec
			s.LastOperation = h.operation(OperationUpdate, StateSuccessful, StageUpdateVM)
			s.LastOperation.Message = "the VM is as class " + h.m.Spec.Class.Name + " says"
		})
	}
	why.Reason, why.Code, why.Detail = reasonVMUpdateFailed, answer.Code, answer.Message
	return h.setStatus(why, func(s *Status) {
		h.noteVM(s)
		s.LastOperation = h.failure(OperationUpdate, StageUpdateVM, answer.Code, answer.Message)
	})
}
