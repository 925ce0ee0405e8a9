package machine

import (
	"errors"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// A caller's mistakes.
var (
	ErrNoMachine = errors.New("machine.Decide: the observation has no machine")
	ErrNoPolicy  = errors.New("machine.Decide: there is no policy")
)

// Decide says what to do next about one machine. It changes none of its
// arguments. Calling it again with the same arguments gives the same plan.
//
// The error is for a caller's mistake only: ErrNoMachine, ErrNoPolicy, or an
// *object.FieldError for a policy out of range. A machine that holds nonsense
// gets a plan that says so.
func Decide(o *Observation, p *Policy, now time.Time) (Plan, error) {
	if o == nil || o.Machine == nil {
		return Plan{}, ErrNoMachine
	}
	if p == nil {
		return Plan{}, ErrNoPolicy
	}
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	d := decider{o: o, p: p, m: o.Machine, now: now, owner: ownerOf(o.Node, p.Keys.NodeMachine)}
	return d.oddPause(d.decide()), nil
}

// decider is one call of Decide.
type decider struct {
	o   *Observation
	p   *Policy
	m   *Machine
	now time.Time
	// owner is the machine whose name the observed node carries; empty: it
	// carries none, or there is no node.
	owner string
	// spared says that the machine's time is up, and that it is not given up
	// only because this process has not watched for its grace yet.
	spared bool
}

func ownerOf(answer *NodeAnswer, key string) string {
	if answer == nil || answer.Node == nil || key == "" {
		return ""
	}
	return answer.Node.Labels[key]
}

// decide decides about any machine.
func (d *decider) decide() Plan {
	if plan, paused := d.pause(); paused {
		return plan
	}
	if d.settled() {
		return Plan{Why: decision.Why{Reason: reasonHealthy, Name: d.o.Node.Node.Name}}
	}
	if plan, busy := d.resume(); busy {
		return plan
	}
	if d.m.Deleted() {
		return d.remove()
	}
	return d.keep()
}

// keep decides about a machine that is not being deleted.
func (d *decider) keep() Plan {
	if d.m.Status.Phase == PhaseFailed && !d.o.Frozen && d.m.HasFinalizer(Finalizer) { // even one with an invalid spec is waited for
		if plan, busy := d.preserve(); busy {
			return plan
		}
	}
	if bad := d.m.invalidField(); bad != nil {
		return d.invalid(bad)
	}
	if c := object.FindCondition(d.m.Status.Conditions, ConditionSpecValid); c != nil {
		return d.setStatus(decision.Why{Reason: reasonSpecValid}, func(s *Status) {
			s.Conditions = object.DropCondition(s.Conditions, ConditionSpecValid)
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
	return d.whilePreserved(d.whileSpared(d.alsoPreserve(d.follow())))
}

// follow decides by the phase.
func (d *decider) follow() Plan {
	switch d.m.Status.Phase {
	case PhaseNew, PhaseCrashLoopBackOff, PhasePending:
		return d.create()
	case PhaseRunning, PhaseUnknown, PhaseInPlaceUpdateFailed:
		return d.watch()
	case PhaseAvailable:
		if plan, busy := d.lost(); busy {
			return plan
		}
		return d.refresh(Plan{Why: decision.Why{Reason: reasonAvailable, Name: d.m.Spec.ProviderID}})
	case PhaseTerminating:
		return d.move(EventNotDeleted, decision.Why{Reason: reasonNotDeleted}, func(s *Status) {
			s.LastOperation = d.failure(OperationDelete, s.LastOperation.Stage, codes.Aborted, "terminating, but deletion was not asked for")
		})
	case PhaseInPlaceUpdating:
		return d.update()
	case PhaseInPlaceUpdateSuccessful:
		return d.takeBack()
	case PhaseFailed:
	}
	return d.failed()
}

// invalid records once which field can't be acted upon, and waits for a change.
func (d *decider) invalid(bad *object.FieldError) Plan {
	why := decision.Why{Reason: reasonSpecInvalid, Name: bad.Field, Detail: bad.Problem}
	want := object.Condition{
		Type: ConditionSpecValid, Status: object.False, Reason: reasonSpecInvalid.String(),
		Message: bad.Error(), Since: d.stamp(),
	}
	have := object.FindCondition(d.m.Status.Conditions, ConditionSpecValid)
	if have != nil && have.Status == want.Status && have.Message == want.Message {
		return Plan{Why: why}
	}
	plan := d.setStatus(why, func(s *Status) { s.Conditions = object.SetCondition(s.Conditions, want) })
	plan.Warn = why
	return plan
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
	from := string(d.m.Status.Phase)
	to, _ := phases.Next(from, on)
	plan := d.setStatus(why, func(status *Status) {
		if to != from {
			status.Phase, status.Since = Phase(to), d.stamp()
		}
		d.noteVM(status)
		change(status)
	})
	plan.Moves[0] = Move{Table: phases.Name, From: from, On: on, To: to}
	return plan
}

// noteVM lets what drivers said in this pass ride on a status write.
func (d *decider) noteVM(status *Status) {
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
