package machine

import (
	"strconv"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

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
