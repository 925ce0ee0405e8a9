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

// hasSpec tells whether there is nothing to do about the VM's spec: the driver
// declares nothing, or the VM is as the class says.
func (d *decider) hasSpec() bool {
	return d.o.VMSpec == nil || d.m.Status.VMSpec == *d.o.VMSpec
}

// refresh is what to do about a VM's spec where else there is nothing to do;
// otherwise it is the plan it was given.
func (d *decider) refresh(plan Plan) Plan {
	if d.hasSpec() || plan.Write != nil || plan.Effect != nil || !d.changeable() {
		return plan
	}
	want, have := d.o.VMSpec, d.knownSpec()
	switch {
	case have == VMSpec{}:
		return d.noteSpec(reasonSpecTaken)
	case have == *want:
		return d.noteSpec(reasonSpecNoted)
	case have.Declared != want.Declared || have.Fixed != want.Fixed:
		plan.Why = decision.Why{Reason: reasonSpecFixed, Name: d.m.Spec.Class.Name}
		plan.Warn = firstOf(plan.Warn, plan.Why)
		return plan
	}
	if wait, closed := d.refreshGate(plan); closed {
		return wait
	}
	return d.updateVM(plan, have)
}

// changeable tells whether a VM may be changed where it is: it does its work,
// and nobody else is at work on it.
func (d *decider) changeable() bool {
	phase := d.m.Status.Phase
	return (phase == PhaseRunning || phase == PhaseAvailable) && d.m.Spec.InPlace == InPlaceNone &&
		d.m.Spec.ProviderID != "" && d.o.Class != nil
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
func (d *decider) knownSpec() VMSpec {
	have, want := d.m.Status.VMSpec, d.o.VMSpec
	if have.Fixed == "" || have.Declared == want.Declared {
		return have
	}
	was := strings.Split(have.Declared, ",")
	if SplitSpec(d.o.Class, was).Fixed != have.Fixed {
		return have
	}
	now := strings.Split(want.Declared, ",")
	next := SplitSpec(d.asOf(have), now)
	if have.Begun != "" {
		begun := have
		begun.Updatable = have.Begun
		next.Begun = SplitSpec(d.asOf(begun), now).Updatable
	}
	return next
}

// asOf is the class as it was when its spec had that split.
func (d *decider) asOf(have VMSpec) *Class {
	return &Class{Provider: d.o.Class.Provider, ProviderSpec: RestoreSpec(d.o.Class, have)}
}

// noteSpec records that the VM has the spec of its class.
func (d *decider) noteSpec(reason decision.Reason) Plan {
	why := decision.Why{Reason: reason, Name: d.m.Spec.Class.Name}
	return d.setStatus(why, func(s *Status) { s.VMSpec = *d.o.VMSpec })
}

// noteAgent notes that an agent has brought the VM to what its class says, but
// for what the driver can update.
func (d *decider) noteAgent(plan Plan) Plan {
	write, ok := plan.Write.(*UpdateStatus)
	if want := d.o.VMSpec; ok && want != nil && write.Status.VMSpec.Declared == want.Declared && write.Status.VMSpec.Fixed != "" {
		write.Status.VMSpec.Fixed = want.Fixed
	}
	return plan
}

// announceSpec notes what a VM that is about to be made is made from. An
// earlier create may have taken effect with other values: then these are what
// the VM may have.
func (d *decider) announceSpec(s *Status) {
	if d.o.VMSpec == nil {
		return
	}
	before := s.VMSpec
	s.VMSpec = *d.o.VMSpec
	if !d.began() || before == (VMSpec{}) || before.Declared != s.VMSpec.Declared {
		return
	}
	if before.Begun != "" || before.Updatable != s.VMSpec.Updatable {
		s.VMSpec.Begun = unite(before.Updatable, before.Begun)
	}
}

// refreshGate holds an update back: after a failure as the recovery table says;
// for good, until something changes, where the VM can't be changed. One said to be
// gone is asked for again after the health timeout, and 10 min at least: if it
// were gone its machine would have failed by then.
func (d *decider) refreshGate(plan Plan) (Plan, bool) {
	op := &d.m.Status.LastOperation
	if op.Kind != OperationUpdate || op.State != StateFailed {
		return Plan{}, false
	}
	if NeverUpdated(op.Code) && op.Against == d.inputs() {
		return d.givenUp(plan, op)
	}
	at := d.retryAt(codes.UpdateMachine)
	if at.IsZero() {
		return Plan{}, false
	}
	plan.Why = decision.Why{Reason: reasonRetryAt, Name: string(op.Stage), Code: op.Code, For: at.Sub(d.now)}
	return sooner(plan, at), true
}

// NeverUpdated tells whether a code of UpdateMachine says that asking again soon is
// of no use: the VM is gone, or can't be changed.
func NeverUpdated(code codes.Code) bool { return code == codes.NotFound || code == codes.Unimplemented }

// givenUp leaves a VM that is gone to the verdict on its machine's health for the
// time that takes, and has a machine replaced whose VM can't be changed.
func (d *decider) givenUp(plan Plan, op *Operation) (Plan, bool) {
	if op.Code != codes.NotFound {
		return d.refused(plan), true
	}
	plan.Why = decision.Why{Reason: reasonUpdateNoVM, Name: d.m.Spec.ProviderID}
	plan.Warn = firstOf(plan.Warn, plan.Why)
	if d.o.NoCluster { // nobody judges its health
		return plan, true
	}
	at := d.after(op.Time, max(d.p.healthTimeout(d.m), codes.Long.Backoff(0, 0)))
	return sooner(plan, at), d.now.Before(at) && !op.Time.After(d.now)
}

// refused has a machine replaced whose VM can't be changed, if there is anybody
// who does.
func (d *decider) refused(plan Plan) Plan {
	name, key := d.m.Spec.ProviderID, d.p.Keys.Replace
	if key == "" || d.m.Owner == nil {
		plan.Why = decision.Why{Reason: reasonUpdateRefused, Name: name}
		plan.Warn = firstOf(plan.Warn, plan.Why)
		return plan
	}
	why := decision.Why{Reason: reasonUpdateReplace, Name: name}
	if d.m.Annotations[key] != "" { // what it says is its owner's to decide
		plan.Why = why
		return plan
	}
	changed := d.m.Clone()
	changed.Annotations = maps.Clone(changed.Annotations)
	if changed.Annotations == nil {
		changed.Annotations = make(map[string]string, 1)
	}
	changed.Annotations[key] = "true"
	return Plan{Write: &Update{changed}, Why: why}
}

// updateVM asks for its turn, announces the update, issues it, and looks at
// its answer.
func (d *decider) updateVM(plan Plan, have VMSpec) Plan {
	why := decision.Why{Reason: reasonUpdateVM, Name: d.m.Spec.ProviderID}
	if answer := d.o.Updated; answer != nil {
		return d.updateAnswered(answer, why)
	}
	switch turn := d.o.UpdateTurn; {
	case turn == nil:
		why.Reason = reasonAskUpdate
		return Plan{Effect: AskUpdate{}, Why: why}
	case !turn.Allowed:
		plan.Why = decision.Why{Reason: reasonAwaitTurn, Name: why.Name, Detail: turn.Detail}
		if turn.At.After(d.now) {
			return sooner(plan, turn.At)
		}
		return sooner(plan, d.now.Add(turnRetry))
	}
	if have.Begun != "" && have.Begun != d.o.VMSpec.Updatable {
		have.Updatable = unite(have.Updatable, have.Begun) // the VM may have either
	}
	have.Begun = d.o.VMSpec.Updatable
	if !d.announcedUpdate(have) {
		why.Reason = reasonUpdateAnnounced
		return d.setStatus(why, func(s *Status) {
			s.VMSpec = have
			s.LastOperation = d.operation(OperationUpdate, StateProcessing, StageUpdateVM)
		})
	}
	return Plan{Effect: UpdateVM{string(RestoreSpec(d.o.Class, have))}, Why: why}
}

func (d *decider) announcedUpdate(noted VMSpec) bool {
	s := &d.m.Status
	return d.o.Fenced && s.VMSpec == noted && s.LastOperation.Kind == OperationUpdate &&
		s.LastOperation.State == StateProcessing
}

// updateAnswered records how an update ended.
func (d *decider) updateAnswered(answer *VM, why decision.Why) Plan {
	if answer.Code == codes.OK {
		why.Reason = ReasonVMUpdated
		return d.setStatus(why, func(s *Status) {
			d.noteVM(s)
			s.VMSpec = *d.o.VMSpec
			s.LastOperation = d.operation(OperationUpdate, StateSuccessful, StageUpdateVM)
			s.LastOperation.Message = "the VM is as class " + d.m.Spec.Class.Name + " says"
		})
	}
	why.Reason, why.Code, why.Detail = reasonVMUpdateFailed, answer.Code, answer.Message
	return d.setStatus(why, func(s *Status) {
		d.noteVM(s)
		s.LastOperation = d.failure(OperationUpdate, StageUpdateVM, answer.Code, answer.Message)
	})
}
