package machine

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// errNoEdge is the error for a planned move that is in no table. It would be a bug of this package.
var errNoEdge = errors.New("machine.Decide: no table has the edge")

// Decide returns what to do next about one machine. It changes none of its arguments, and returns the
// same plan for the same arguments.
//
// An error is a caller's mistake: decision.ErrNoObservation, or a setting of the policy that is out of
// range (*object.FieldError). A nil policy is DefaultPolicy. A machine whose spec or status is invalid is
// no error: its plan says what is wrong. A move that no table has would be a fault of this package. It is
// an error too, so that its state is not stored.
func Decide(o *Observation, p *Policy, now time.Time) (plan Plan, err error) {
	if o == nil || o.Machine == nil {
		return Plan{}, fmt.Errorf("machine.Decide: %w", decision.ErrNoObservation)
	}
	p = p.WithDefaults()
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	d := newDecider(o, p, now)
	plan = d.decide()
	d.warnInvalidPause(&plan)
	for _, move := range plan.Moves {
		if !phases.Allows(move) && !deletions.Allows(move) && !updates.Allows(move) {
			return Plan{}, fmt.Errorf("%w: %s", errNoEdge, move)
		}
	}
	return plan, nil
}

// decide decides about any machine. Here and below, a step returns a plan and whether it found one: then
// the plan is what to do now, and no later step is asked.
func (d *decider) decide() Plan {
	if d.pauseRequested() {
		return d.pause()
	}
	if plan, found := d.resume(); found {
		return plan
	}
	if d.m.Deleted() {
		return d.reconcileDeletion()
	}
	return d.reconcile()
}

// reconcile decides about a machine that is not being deleted.
func (d *decider) reconcile() Plan {
	if d.m.Status.Phase == PhaseFailed && !d.o.Frozen && d.m.HasFinalizer(Finalizer) { // before the spec is checked, because the machine's set waits until the preservation is recorded
		if plan, found := d.preserve(); found {
			return plan
		}
	}
	if bad := d.m.invalidField(); bad != nil {
		return d.waitForValidSpec(bad)
	}
	if bad := d.invalidForNode(); bad != nil {
		if plan, found := d.recordInvalid(bad); found {
			return plan
		}
	} else if object.FindCondition(d.m.Status.Conditions, ConditionSpecValid) != nil {
		return d.setStatus(decision.Why{Reason: reasonSpecValid}, func(s *Status) {
			s.Conditions = object.DropCondition(s.Conditions, ConditionSpecValid)
			if d.m.Spec.ProviderID == "" && !d.o.Frozen {
				s.ResumedAt = d.stamp() // the creation timeout starts now
			}
		})
	}
	if d.o.Frozen {
		return Plan{Why: decision.Why{Reason: reasonFrozen}}
	}
	if !d.m.HasFinalizer(Finalizer) {
		changed := d.m.Clone()
		changed.AddFinalizer(Finalizer)
		return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonFinalizer}}
	}
	if plan, found := d.preserve(); found {
		return plan
	}
	if plan, found := d.followNodeDeletion(); found {
		return plan
	}
	plan := d.byPhase()
	d.alsoPreserve(&plan)
	d.retryNodeDeletionGrant(&plan)
	d.explainGrace(&plan)
	d.whilePreserved(&plan)
	return plan
}

// byPhase decides what to do in the machine's phase.
func (d *decider) byPhase() Plan {
	switch d.m.Status.Phase {
	case PhaseNew, PhaseCrashLoopBackOff, PhasePending:
		return d.create()
	case PhaseRunning, PhaseUnknown, PhaseInPlaceUpdateFailed:
		return d.watchNode()
	case PhaseAvailable:
		if !d.o.NoCluster {
			return d.joinAvailable()
		}
		return d.watchVM()
	case PhaseTerminating:
		return d.move(eventNotDeleted, decision.Why{Reason: reasonNotDeleted}, func(s *Status) {
			s.LastOperation = d.failure(OperationDelete, s.LastOperation.Stage, codes.Aborted, "Terminating without a deletion timestamp")
		})
	case PhaseInPlaceUpdating:
		return d.reconcileUpdate()
	case PhaseInPlaceUpdateSuccessful:
		return d.finishUpdate()
	case PhaseFailed:
		return d.reconcileFailed()
	}
	why := decision.Why{Reason: reasonPhaseRestart, Name: string(d.m.Status.Phase)}
	plan := d.move(eventRestart, why, func(s *Status) { s.ClockFrom = d.stamp() })
	plan.Warn = why
	return plan
}

// waitForValidSpec records which field is invalid, and waits for a change.
func (d *decider) waitForValidSpec(bad *object.FieldError) Plan {
	if plan, found := d.recordInvalid(bad); found {
		return plan
	}
	return Plan{Why: specInvalid(bad)}
}

func specInvalid(bad *object.FieldError) decision.Why {
	return decision.Why{Reason: reasonSpecInvalid, Name: bad.Field, Detail: bad.Problem}
}

// recordInvalid records which field is invalid, unless the status says so already.
func (d *decider) recordInvalid(bad *object.FieldError) (Plan, bool) {
	why := specInvalid(bad)
	want := object.Condition{
		Type: ConditionSpecValid, Status: object.False, Reason: reasonSpecInvalid.String(),
		Message: bad.Error(), Since: d.stamp(),
	}
	have := object.FindCondition(d.m.Status.Conditions, ConditionSpecValid)
	if have != nil && have.Status == want.Status && have.Message == want.Message {
		return Plan{}, false
	}
	plan := d.setStatus(why, func(s *Status) { s.Conditions = object.SetCondition(s.Conditions, want) })
	plan.Warn = why
	return plan, true
}

// explainGrace sets the reason GraceAfterStart if the deadline has passed, and the machine is not marked
// Failed only because this process has started a short time ago (Policy.Grace).
func (d *decider) explainGrace(plan *Plan) {
	if plan.Write != nil || plan.Effect != nil || plan.At.IsZero() {
		return
	}
	base, timeout := d.phaseTimeout()
	deadline, end := d.deadlineAfter(base, timeout), d.verdictAt(base, timeout)
	if !d.now.Before(deadline) && d.now.Before(end) && !plan.At.After(end) {
		plan.Why = decision.Why{Reason: reasonGrace, Detail: plan.Why.String(), For: d.p.Grace}
	}
}

// phaseTimeout returns from when the timeout of the machine's phase counts, and how long it is. The steps decide
// what happens at its end, and whether it applies.
func (d *decider) phaseTimeout() (base time.Time, timeout time.Duration) {
	switch d.m.Status.Phase {
	case PhaseNew, PhasePending, PhaseCrashLoopBackOff:
		return d.creationBase(), d.p.creationTimeout(d.m)
	case PhaseUnknown, PhaseInPlaceUpdateSuccessful, PhaseInPlaceUpdateFailed:
		return d.m.Status.Since, d.p.healthTimeout(d.m)
	case PhaseInPlaceUpdating:
		return d.m.Status.Since, d.p.inPlaceTimeout(d.m)
	}
	return d.now, 0 // no timeout
}

// decider holds what one call of Decide is given. It does not change during the call: all steps of the
// decision are functions of it.
type decider struct {
	o   *Observation
	p   *Policy
	m   *Machine
	now time.Time
	// nodeOwner is the name of a machine in the label of the observed node. Empty: no node, or no label.
	nodeOwner string
}

func newDecider(o *Observation, p *Policy, now time.Time) *decider {
	return &decider{o: o, p: p, m: o.Machine, now: now, nodeOwner: nodeOwnerOf(o.Node, p.Keys.NodeMachine)}
}

func nodeOwnerOf(answer *NodeAnswer, key string) string {
	if answer == nil || answer.Node == nil || key == "" {
		return ""
	}
	return answer.Node.Labels[key]
}

// preserved reports whether the machine is preserved now.
func (d *decider) preserved() bool { return d.m.Status.Preservation.Active(d.now) }

// labelTrue reports whether a label of the machine is true. No label has an empty key.
func (d *decider) labelTrue(key string) bool {
	if key == "" {
		return false
	}
	isTrue, err := strconv.ParseBool(d.m.Labels[key])
	return err == nil && isTrue
}

// machineLabelKey returns the key of the node label that holds the machine's name. It is empty if the
// policy has none, or if the name is no valid label value.
func (d *decider) machineLabelKey() string {
	if !isName(d.m.Name) {
		return ""
	}
	return d.p.Keys.NodeMachine
}

// stamp returns now in whole seconds, as stores keep it.
func (d *decider) stamp() time.Time { return d.now.Truncate(time.Second) }

// setStatus plans a write of the status, after the given change.
func (d *decider) setStatus(why decision.Why, change func(*Status)) Plan {
	status := d.m.Status.Clone()
	change(&status)
	return Plan{Write: &UpdateStatus{status}, Why: why}
}

// move plans a write of the status that moves the phase along an edge of PhaseTable.
func (d *decider) move(on Event, why decision.Why, change func(*Status)) Plan {
	from := phases.State(string(d.m.Status.Phase))
	to, _ := phases.Next(from, on)
	plan := d.setStatus(why, func(status *Status) {
		if to != from {
			status.Phase, status.Since = Phase(to), d.stamp()
		}
		d.copyVMState(status)
		change(status)
	})
	plan.Moves = []Move{{Table: phases.Name, From: from, On: on, To: to}}
	return plan
}

// copyVMState copies the VM state and the addresses that the driver returned in this pass to a status.
func (d *decider) copyVMState(status *Status) {
	for _, vm := range [...]*VM{d.o.VM, d.o.Created, d.o.Initialized, d.o.Updated, d.o.VMDeleted} {
		if vm == nil {
			continue
		}
		if vm.LastKnown != "" {
			status.LastKnown = vm.LastKnown
		}
		if len(vm.Addresses) > 0 {
			status.Addresses = append([]Address(nil), vm.Addresses...)
		}
	}
}

func (d *decider) operation(kind OperationKind, state OperationState, stage Stage) Operation {
	return Operation{Kind: kind, State: state, Stage: stage, Time: d.stamp()}
}

func (d *decider) failure(kind OperationKind, stage Stage, code codes.Code, message string) Operation {
	op := d.operation(kind, StateFailed, stage)
	op.Code, op.Message, op.Against = code, message, d.inputs()
	return op
}

// inputs returns the versions of what a call depends on. If one has changed since a failure, the call is repeated at
// once.
func (d *decider) inputs() Inputs {
	in := Inputs{Machine: d.m.Generation, Secret: d.o.Secret}
	if d.o.Class != nil {
		in.Class = d.o.Class.Generation
	}
	return in
}

// A paused machine is not reconciled: the manager makes no calls for it, changes no phase and no stage, and
// deletes nothing, not even with the force label. Only its condition says that it is paused. An effect that
// was in progress when the pause was written still takes effect; its result is read after the pause, as
// after a crash.

// Paused reports whether the annotation under a key pauses an object. invalid is its value in quotes if
// that is neither true nor false: then the object is not paused.
func Paused(m *object.Meta, key string) (paused bool, invalid string) {
	text, ok := m.Annotations[key]
	if !ok || key == "" {
		return false, ""
	}
	paused, err := strconv.ParseBool(text)
	if err != nil {
		return false, strconv.Quote(text)
	}
	return paused, ""
}

// pauseRequested reports whether the machine is to be paused. A machine that is being deleted and has lost
// our finalizer is not paused, because it is never written.
func (d *decider) pauseRequested() bool {
	paused, _ := Paused(&d.m.Meta, d.p.Keys.Paused)
	return paused && !d.finalizerMissing()
}

// pause sets the condition Paused, and does nothing else.
func (d *decider) pause() Plan {
	why := decision.Why{Reason: reasonPaused, Name: d.p.Keys.Paused}
	want := object.Condition{
		Type: ConditionPaused, Status: object.True, Reason: reasonPaused.String(), Message: why.String(), Since: d.stamp(),
	}
	have := object.FindCondition(d.m.Status.Conditions, ConditionPaused)
	if have != nil && have.Status == want.Status && have.Message == want.Message {
		return Plan{Why: why}
	}
	return d.setStatus(why, func(s *Status) { s.Conditions = object.SetCondition(s.Conditions, want) })
}

// resume removes the condition Paused, and restarts all timeouts in the same write, except the end of a
// preservation: the machine was not reconciled while they ran.
func (d *decider) resume() (Plan, bool) {
	if object.FindCondition(d.m.Status.Conditions, ConditionPaused) == nil || d.finalizerMissing() {
		return Plan{}, false
	}
	return d.setStatus(decision.Why{Reason: reasonResumed}, func(s *Status) {
		s.Conditions = object.DropCondition(s.Conditions, ConditionPaused)
		s.ResumedAt = d.stamp()
	}), true
}

// finalizerMissing reports whether the machine is being deleted and no longer has our finalizer.
func (d *decider) finalizerMissing() bool { return d.m.Deleted() && !d.m.HasFinalizer(Finalizer) }

// warnInvalidPause warns if the value of the pause annotation is invalid.
func (d *decider) warnInvalidPause(plan *Plan) {
	if _, invalid := Paused(&d.m.Meta, d.p.Keys.Paused); invalid != "" && plan.Warn == (decision.Why{}) {
		plan.Warn = decision.Why{Reason: reasonInvalidPause, Name: d.p.Keys.Paused, Detail: invalid}
	}
}
