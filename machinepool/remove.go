package machinepool

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// remove decides about a pool whose deletion was asked for. The group is deleted first,
// then the bootstrap data of its machines, then the record. Steps from before a crash are done again, and
// have no effect.
func (d *decider) remove() Plan {
	if !d.s.HasFinalizer(Finalizer) {
		return Plan{Why: decision.Why{Reason: reasonNotOurs}}
	}
	if d.s.Status.Phase != PhaseDeleting {
		return d.deleting()
	}
	if !d.s.Status.NeverCreated {
		var answer *machine.Outcome
		if d.o.GroupDeleted != nil {
			answer = &d.o.GroupDeleted.Outcome
		}
		if d.o.Class == nil && answer == nil {
			return Plan{At: d.now.Add(d.p.Period), Why: decision.Why{Reason: reasonClassGone, Name: d.s.Spec.Template.Class.Name}}
		}
		if plan, busy := d.gone(DeletePool, answer, DeleteGroup{}); busy {
			return plan
		}
	}
	if d.s.Spec.Template.Bootstrap.Config != "" {
		if plan, busy := d.gone(DeleteBootstrap, d.o.BootstrapDeleted, RemoveBootstrap{}); busy {
			return plan
		}
	}
	if plan, busy := d.removeToken(); busy {
		return plan
	}
	changed := d.s.Clone()
	changed.RemoveFinalizer(Finalizer)
	return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonReleased}, Warn: d.tokenLeft()}
}

// removeToken deletes the token that the machines of the pool joined with. A failure holds nothing up,
// because the token expires.
func (d *decider) removeToken() (Plan, bool) {
	if b := d.o.Bootstrap; b == nil || !b.OwnToken || d.o.TokenRemoved != nil {
		return Plan{}, false
	}
	if !d.o.Fenced {
		return readLive(), true
	}
	return Plan{Effect: RemoveToken{}, Why: decision.Why{Reason: reasonRemoveToken}}, true
}

// tokenLeft is the warning about a token that could not be deleted.
func (d *decider) tokenLeft() decision.Why {
	answer := d.o.TokenRemoved
	if answer == nil || answer.Code == codes.OK || answer.Code == codes.NotFound {
		return decision.Why{}
	}
	return decision.Why{Reason: reasonTokenLeft, Code: answer.Code, Detail: answer.Message}
}

// deleting enters the phase. If no create was ever announced, the pool has no group, and deleting
// records that, because its class may never have existed.
func (d *decider) deleting() Plan {
	s := &d.s.Status
	from := Phase(phases.State(string(s.Phase)))
	to, _ := phases.Next(string(from), eventDelete)
	never := s.LastOperation == (Operation{}) && s.GroupID == "" && s.Replicas == 0 && !s.InfrastructureReady &&
		len(d.s.Spec.ProviderIDs) == 0
	plan := d.setStatus(decision.Why{Reason: reasonDeleting, Name: string(from)}, func(s *Status) {
		s.Phase, s.Since, s.NeverCreated = Phase(to), d.stamp(), never
	})
	plan.Move = machine.Move{Table: phases.Name, From: string(from), On: eventDelete, To: to}
	return plan
}

// gone deletes one thing, until the answer says that it is gone.
func (d *decider) gone(call Call, answer *machine.Outcome, effect Effect) (Plan, bool) {
	if answer != nil && (answer.Code == codes.OK || answer.Code == codes.NotFound) {
		return Plan{}, false
	}
	if answer != nil {
		next := d.s.Status
		if d.o.GroupDeleted != nil {
			noteWords(&next, d.o.GroupDeleted)
		}
		if why := d.noteFailed(&next, call, *answer); why != (decision.Why{}) {
			return Plan{Write: &UpdateStatus{next.Clone()}, Why: why, Warn: why}, true
		}
	}
	if plan, waits := d.gate(call); waits {
		return plan, true
	}
	if !d.o.Fenced { // the pool may be gone, and the group of that name another's
		return readLive(), true
	}
	return Plan{Effect: effect, Why: decision.Why{Reason: reasonDelete, Name: string(call)}}, true
}
