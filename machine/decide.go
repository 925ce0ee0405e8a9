package machine

import (
	"errors"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// errNoMachine is the error for a mistake of the caller.
var errNoMachine = errors.New("machine.Decide: the observation has no machine")

// Decide says what to do next about one machine. It changes none of its
// arguments. Calling it again with the same arguments gives the same plan.
//
// The error is for a caller's mistake only: no machine, or an
// *object.FieldError for a policy out of range. A nil policy is the default one. A machine that holds nonsense
// gets a plan that says so.
func Decide(o *Observation, p *Policy, now time.Time) (plan Plan, err error) {
	if o == nil || o.Machine == nil {
		return Plan{}, errNoMachine
	}
	p = p.WithDefaults()
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	d := newDecider(o, p, now)
	plan = d.decide()
	d.warnInvalidPause(&plan)
	return plan, nil
}

// decide decides about any machine.
func (d *decider) decide() Plan {
	if d.pauseRequested() {
		return d.pause()
	}
	if d.settled() {
		return Plan{Why: decision.Why{Reason: reasonHealthy, Name: d.o.Node.Node.Name}}
	}
	if plan, busy := d.resume(); busy {
		return plan
	}
	if d.m.Deleted() {
		return d.reconcileDeletion()
	}
	return d.reconcile()
}

// reconcile decides about a machine that is not being deleted.
func (d *decider) reconcile() Plan {
	if d.m.Status.Phase == PhaseFailed && !d.o.Frozen && d.m.HasFinalizer(Finalizer) { // even one with an invalid spec is waited for
		if plan, busy := d.preserve(); busy {
			return plan
		}
	}
	if bad := d.m.invalidField(); bad != nil {
		return d.waitForValidSpec(bad)
	}
	if bad := d.invalidForNode(); bad != nil {
		if plan, unsaid := d.recordInvalid(bad); unsaid {
			return plan
		}
	} else if object.FindCondition(d.m.Status.Conditions, ConditionSpecValid) != nil {
		return d.setStatus(decision.Why{Reason: reasonSpecValid}, func(s *Status) {
			s.Conditions = object.DropCondition(s.Conditions, ConditionSpecValid)
			if d.m.Spec.ProviderID == "" && !d.o.Frozen {
				s.ResumedAt = d.stamp() // its creation was held back, and has its time now
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
	if plan, busy := d.preserve(); busy {
		return plan
	}
	if plan, busy := d.followNodeDeletion(); busy {
		return plan
	}
	return d.whilePreserved(d.explainGrace(d.retryNodeDeletionGrant(d.alsoPreserve(d.byPhase()))))
}

// byPhase decides by the phase.
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
			s.LastOperation = d.failure(OperationDelete, s.LastOperation.Stage, codes.Aborted, "terminating, but deletion was not asked for")
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

// waitForValidSpec records once which field can't be acted upon, and waits for a change.
func (d *decider) waitForValidSpec(bad *object.FieldError) Plan {
	if plan, unsaid := d.recordInvalid(bad); unsaid {
		return plan
	}
	return Plan{Why: specInvalid(bad)}
}

func specInvalid(bad *object.FieldError) decision.Why {
	return decision.Why{Reason: reasonSpecInvalid, Name: bad.Field, Detail: bad.Problem}
}

// recordInvalid records once which field is wrong.
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

// explainGrace sets the reason GraceAfterStart if the deadline has passed and only the grace after a
// start keeps the machine.
func (d *decider) explainGrace(plan Plan) Plan {
	if d.spared && plan.Write == nil && plan.Effect == nil {
		plan.Why = decision.Why{Reason: reasonGrace, Detail: plan.Why.String(), For: d.p.Grace}
	}
	return plan
}

// decider is what one call of Decide is given: all that its decision rests on.
type decider struct {
	o   *Observation
	p   *Policy
	m   *Machine
	now time.Time
	// owner is the machine named by the label of the observed node. Empty: no node, or no label.
	owner string
	// spared says that the machine's time is up, and that it is not marked failed
	// only because this process has not watched for its grace yet.
	spared bool
}

func newDecider(o *Observation, p *Policy, now time.Time) *decider {
	return &decider{o: o, p: p, m: o.Machine, now: now, owner: ownerOf(o.Node, p.Keys.NodeMachine)}
}

func ownerOf(answer *NodeAnswer, key string) string {
	if answer == nil || answer.Node == nil || key == "" {
		return ""
	}
	return answer.Node.Labels[key]
}

// preserved reports whether the machine is kept for inspection.
func (d *decider) preserved() bool { return d.m.Status.Preservation.Active(d.now) }

// labelTrue reports whether a label of the machine says yes. An empty key is on none.
func (d *decider) labelTrue(key string) bool {
	if key == "" {
		return false
	}
	yes, err := strconv.ParseBool(d.m.Labels[key])
	return err == nil && yes
}

// machineLabelKey is the label on a node with its machine's name. Empty: there is none, or no label can have
// that name as its value.
func (d *decider) machineLabelKey() string {
	if !named(d.m.Name) {
		return ""
	}
	return d.p.Keys.NodeMachine
}

// stamp is now as stores keep it.
func (d *decider) stamp() time.Time { return d.now.Truncate(time.Second) }

// setStatus plans a write of the status that leaves the phase alone.
func (d *decider) setStatus(why decision.Why, change func(*Status)) Plan {
	status := d.m.Status.Clone()
	change(&status)
	return Plan{Write: &UpdateStatus{status}, Why: why}
}

// move plans a write of the status that takes the phase along an edge of the table.
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
	plan.Moves[0] = Move{Table: phases.Name, From: from, On: on, To: to}
	return plan
}

// copyVMState lets what drivers said in this pass ride on a status write.
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

func (d *decider) inputs() Inputs {
	in := Inputs{Machine: d.m.Generation, Secret: d.o.Secret}
	if d.o.Class != nil {
		in.Class = d.o.Class.Generation
	}
	return in
}

// A machine that is paused is left as it is: no call is made for it, no phase
// and no stage moves, nothing is judged and nothing deleted, for any
// labels. Only its status says so. An effect that was under way when the pause was
// written still happens; what came of it is found out after the pause, as after
// a crash.

// Paused reports whether an annotation of the key asks for the object to be left
// as it is. odd is what it says if that can't be read: then it is not paused.
func Paused(m *object.Meta, key string) (paused bool, odd string) {
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

// pauseRequested reports whether the machine's annotation asks for a pause. A machine that is being deleted
// without our finalizer is not even written.
func (d *decider) pauseRequested() bool {
	paused, _ := Paused(&d.m.Meta, d.p.Keys.Paused)
	return paused && !d.finalizerMissing()
}

// pause leaves the machine alone, and records the condition once.
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

// resume ends a pause with the write that restarts the machine's clocks:
// nothing could be judged while they ran.
func (d *decider) resume() (Plan, bool) {
	if object.FindCondition(d.m.Status.Conditions, ConditionPaused) == nil || d.finalizerMissing() {
		return Plan{}, false
	}
	return d.setStatus(decision.Why{Reason: reasonResumed}, func(s *Status) {
		s.Conditions = object.DropCondition(s.Conditions, ConditionPaused)
		s.ResumedAt = d.stamp()
	}), true
}

// finalizerMissing reports whether the machine is being deleted without our finalizer.
func (d *decider) finalizerMissing() bool { return d.m.Deleted() && !d.m.HasFinalizer(Finalizer) }

// warnInvalidPause lets a plan warn of a pause that can't be read.
func (d *decider) warnInvalidPause(plan *Plan) {
	if _, odd := Paused(&d.m.Meta, d.p.Keys.Paused); odd != "" && plan.Warn == (decision.Why{}) {
		plan.Warn = decision.Why{Reason: reasonOddPause, Name: d.p.Keys.Paused, Detail: odd}
	}
}
