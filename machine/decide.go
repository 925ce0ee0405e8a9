package machine

import (
	"errors"
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
	return inspection.whilePreserved(d.whileSpared(d.stayLater(inspection.alsoPreserve(d.follow()))))
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

// whileSpared says so of a plan that ends the pass, where the machine's time is
// up and only the grace has it go on.
func (d decider) whileSpared(plan Plan) Plan {
	if d.spared && plan.Write == nil && plan.Effect == nil {
		plan.Why = decision.Why{Reason: reasonGrace, Detail: plan.Why.String(), For: d.p.Grace}
	}
	return plan
}
