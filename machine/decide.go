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
	s := situationOf(o, p, now)
	plan = decider{&s}.decide()
	pause{&s}.warnInvalid(&plan)
	return plan, nil
}

// decide decides about any machine.
func (d decider) decide() Plan {
	p, h := pause(d), health(d)
	if p.asked() {
		return p.begin()
	}
	if h.settled() {
		return Plan{Why: decision.Why{Reason: reasonHealthy, Name: d.o.Node.Node.Name}}
	}
	if plan, busy := p.end(); busy {
		return plan
	}
	if d.m.Deleted() {
		return deletion(d).remove()
	}
	return d.keep()
}

// keep decides about a machine that is not being deleted.
func (d decider) keep() Plan {
	inspection := preservation(d)
	if d.m.Status.Phase == PhaseFailed && !d.o.Frozen && d.m.HasFinalizer(Finalizer) { // even one with an invalid spec is waited for
		if plan, busy := inspection.preserve(); busy {
			return plan
		}
	}
	if bad := d.m.invalidField(); bad != nil {
		return d.invalid(bad)
	}
	if bad := d.unfit(); bad != nil {
		if plan, unsaid := d.noteInvalid(bad); unsaid {
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
	if plan, busy := inspection.preserve(); busy {
		return plan
	}
	if plan, busy := d.followDeletion(); busy {
		return plan
	}
	return inspection.whilePreserved(d.explainGrace(d.stayLater(inspection.alsoPreserve(d.follow()))))
}

// follow decides by the phase.
func (d decider) follow() Plan {
	switch d.m.Status.Phase {
	case PhaseNew, PhaseCrashLoopBackOff, PhasePending:
		return creation(d).create()
	case PhaseRunning, PhaseUnknown, PhaseInPlaceUpdateFailed:
		return health(d).watch()
	case PhaseAvailable:
		if !d.o.NoCluster {
			return creation(d).appear()
		}
		return health(d).watchVM()
	case PhaseTerminating:
		return d.move(eventNotDeleted, decision.Why{Reason: reasonNotDeleted}, func(s *Status) {
			s.LastOperation = d.failure(OperationDelete, s.LastOperation.Stage, codes.Aborted, "terminating, but deletion was not asked for")
		})
	case PhaseInPlaceUpdating:
		return inPlace{situation: d.situation}.update()
	case PhaseInPlaceUpdateSuccessful:
		return inPlace{situation: d.situation}.finish()
	case PhaseFailed:
		return preservation(d).failed()
	}
	why := decision.Why{Reason: reasonPhaseRestart, Name: string(d.m.Status.Phase)}
	plan := d.move(eventRestart, why, func(s *Status) { s.ClockFrom = d.stamp() })
	plan.Warn = why
	return plan
}

// invalid records once which field can't be acted upon, and waits for a change.
func (d decider) invalid(bad *object.FieldError) Plan {
	if plan, unsaid := d.noteInvalid(bad); unsaid {
		return plan
	}
	return Plan{Why: specInvalid(bad)}
}

func specInvalid(bad *object.FieldError) decision.Why {
	return decision.Why{Reason: reasonSpecInvalid, Name: bad.Field, Detail: bad.Problem}
}

// noteInvalid records once which field is wrong.
func (d decider) noteInvalid(bad *object.FieldError) (Plan, bool) {
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
func (d decider) explainGrace(plan Plan) Plan {
	if d.spared && plan.Write == nil && plan.Effect == nil {
		plan.Why = decision.Why{Reason: reasonGrace, Detail: plan.Why.String(), For: d.p.Grace}
	}
	return plan
}

// situation is what one call of Decide is given, and what all parts of the
// decision share.
type situation struct {
	o   *Observation
	p   *Policy
	m   *Machine
	now time.Time
	// owner is the machine whose name the observed node carries; empty: it
	// carries none, or there is no node.
	owner string
	// spared says that the machine's time is up, and that it is not marked failed
	// only because this process has not watched for its grace yet.
	spared bool
}

func situationOf(o *Observation, p *Policy, now time.Time) situation {
	return situation{o: o, p: p, m: o.Machine, now: now, owner: ownerOf(o.Node, p.Keys.NodeMachine)}
}

func ownerOf(answer *NodeAnswer, key string) string {
	if answer == nil || answer.Node == nil || key == "" {
		return ""
	}
	return answer.Node.Labels[key]
}

// preserved reports whether the machine is kept for inspection.
func (s *situation) preserved() bool { return s.m.Status.Preservation.Active(s.now) }

// labelled reports whether a label of the machine says yes. An empty key is on none.
func (s *situation) labelled(key string) bool {
	if key == "" {
		return false
	}
	yes, err := strconv.ParseBool(s.m.Labels[key])
	return err == nil && yes
}

// nameKey is the label on a node with its machine's name. Empty: there is none, or no label can have
// that name as its value.
func (s *situation) nameKey() string {
	if !named(s.m.Name) {
		return ""
	}
	return s.p.Keys.NodeMachine
}

// stamp is now as stores keep it.
func (s *situation) stamp() time.Time { return s.now.Truncate(time.Second) }

// setStatus plans a write of the status that leaves the phase alone.
func (s *situation) setStatus(why decision.Why, change func(*Status)) Plan {
	status := s.m.Status.Clone()
	change(&status)
	return Plan{Write: &UpdateStatus{status}, Why: why}
}

// move plans a write of the status that takes the phase along an edge of the table.
func (s *situation) move(on Event, why decision.Why, change func(*Status)) Plan {
	from := phases.State(string(s.m.Status.Phase))
	to, _ := phases.Next(from, on)
	plan := s.setStatus(why, func(status *Status) {
		if to != from {
			status.Phase, status.Since = Phase(to), s.stamp()
		}
		s.noteVM(status)
		change(status)
	})
	plan.Moves[0] = Move{Table: phases.Name, From: from, On: on, To: to}
	return plan
}

// noteVM lets what drivers said in this pass ride on a status write.
func (s *situation) noteVM(status *Status) {
	for _, vm := range [...]*VM{s.o.VM, s.o.Created, s.o.Initialized, s.o.Updated, s.o.VMDeleted} {
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

func (s *situation) operation(kind OperationKind, state OperationState, stage Stage) Operation {
	return Operation{Kind: kind, State: state, Stage: stage, Time: s.stamp()}
}

func (s *situation) failure(kind OperationKind, stage Stage, code codes.Code, message string) Operation {
	op := s.operation(kind, StateFailed, stage)
	op.Code, op.Message, op.Against = code, message, s.inputs()
	return op
}

func (s *situation) inputs() Inputs {
	in := Inputs{Machine: s.m.Generation, Secret: s.o.Secret}
	if s.o.Class != nil {
		in.Class = s.o.Class.Generation
	}
	return in
}

// A decision has parts. Each is a value that holds the situation and, where it is
// about a node that is not always the observed one, that node. The parts stand here
// from the ground up: a part asks parts above it in this file, and never one below.

// token is the bootstrap token of a machine.
type token struct{ *situation }

// nodeRollout is what a rollout has put on a node, and what it wants there.
type nodeRollout struct {
	*situation
	n *Node
}

// nodePreservation is what the preservation of a machine has put on its node, and
// what it wants there. n may be nil.
type nodePreservation struct {
	*situation
	n *Node
}

// nodeUpdate is what an update in place has put on a node, and what it wants there.
type nodeUpdate struct {
	*situation
	n *Node
}

// nodeSync brings a node in line with its machine. joining says that the node is
// healthy, so that it is about to join or has joined: then the startup taint is removed.
type nodeSync struct {
	*situation
	n       *Node
	joining bool
}

// hotUpdate changes a VM to what its class says, without a replacement.
type hotUpdate struct{ *situation }

// creation takes a machine from new to Available or Running.
type creation struct{ *situation }

// inPlace takes a machine through an update in place, and back into service. n is its
// node; nil: it is missing, or was not looked for. What goes into a plan is node()
// instead: a part whose node is in a plan makes each decision allocate.
type inPlace struct {
	*situation
	n *Node
}

// preservation keeps a machine for inspection.
type preservation struct{ *situation }

// deletion takes a machine that is being deleted through the stages of that.
type deletion struct{ *situation }

// health watches a machine that has joined once.
type health struct{ *situation }

// pause leaves a machine as it is while its annotation asks for that.
type pause struct{ *situation }

// decider asks the parts in order.
type decider struct{ *situation }

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

// asked reports whether the machine's annotation asks for a pause. A machine that is being deleted
// without our finalizer is not even written.
func (p pause) asked() bool {
	paused, _ := Paused(&p.m.Meta, p.p.Keys.Paused)
	return paused && !p.notOurs()
}

// begin leaves the machine alone, and records the condition once.
func (p pause) begin() Plan {
	why := decision.Why{Reason: reasonPaused, Name: p.p.Keys.Paused}
	want := object.Condition{
		Type: ConditionPaused, Status: object.True, Reason: reasonPaused.String(), Message: why.String(), Since: p.stamp(),
	}
	have := object.FindCondition(p.m.Status.Conditions, ConditionPaused)
	if have != nil && have.Status == want.Status && have.Message == want.Message {
		return Plan{Why: why}
	}
	return p.setStatus(why, func(s *Status) { s.Conditions = object.SetCondition(s.Conditions, want) })
}

// end ends a pause with the write that restarts the machine's clocks:
// nothing could be judged while they ran.
func (p pause) end() (Plan, bool) {
	if object.FindCondition(p.m.Status.Conditions, ConditionPaused) == nil || p.notOurs() {
		return Plan{}, false
	}
	return p.setStatus(decision.Why{Reason: reasonResumed}, func(s *Status) {
		s.Conditions = object.DropCondition(s.Conditions, ConditionPaused)
		s.ResumedAt = p.stamp()
	}), true
}

// notOurs reports whether the machine is being deleted without our finalizer.
func (p pause) notOurs() bool { return p.m.Deleted() && !p.m.HasFinalizer(Finalizer) }

// warnInvalid lets a plan warn of a pause that can't be read.
func (p pause) warnInvalid(plan *Plan) {
	if _, odd := Paused(&p.m.Meta, p.p.Keys.Paused); odd != "" && plan.Warn == (decision.Why{}) {
		plan.Warn = decision.Why{Reason: reasonOddPause, Name: p.p.Keys.Paused, Detail: odd}
	}
}
