package deployment

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// noteworthy reports whether an order to a set is a step of its own.
func noteworthy(r decision.Reason) bool {
	return r != reasonRevision && r != reasonClose && r != reasonOpen && r != reasonMoveDone
}

// carryOutMachines gives machines the orders of a plan, and returns how many.
func (p *preview) carryOutMachines(plan *Plan) int {
	var last *lane
	for _, order := range plan.Mark {
		m := p.find(order.Machine)
		if m == nil {
			continue
		}
		m.put(order.Machine)
		if updated(order.Machine) && order.Machine.Spec.InPlace == machine.InPlaceNone {
			p.enterUpdate(m, machine.PhaseRunning, machine.StateSuccessful)
		}
		if order.Why.Reason != ReasonSelect {
			continue
		}
		if m.lane != last {
			p.note(m.lane.set, order.Why)
			last = m.lane
		}
		p.out.Selected++
		p.beginUpdate(m)
	}
	for _, order := range plan.Move {
		p.move(p.find(order.Machine), order.Machine)
	}
	if n := len(plan.Mark) + len(plan.Move); n > 0 {
		p.changed = true
		p.take()
		return n
	}
	return 0
}

// find returns the member of a machine. Nil: none.
func (p *preview) find(m *machine.Machine) *member {
	for _, l := range p.lanes {
		if found := l.known[keyOf(m)]; found != nil {
			return found
		}
	}
	return nil
}

// beginUpdate lets a machine update itself; it was selected.
func (p *preview) beginUpdate(m *member) {
	p.enterUpdate(m, machine.PhaseInPlaceUpdating, machine.StateProcessing)
	p.expectUpdate(m, p.now)
}

// expectUpdate schedules the result of an update that began then.
func (p *preview) expectUpdate(m *member, began time.Time) {
	p.updates++
	what := fateUpdated
	if among(p.updates, p.model.FailUpdate) {
		what = fateNotUpdated
	}
	p.expect(m, what, p.remaining(began, p.model.Update))
}

// failUpdate makes an update fail, and the machine with it when its time is up.
func (p *preview) failUpdate(m *member) {
	p.enterUpdate(m, machine.PhaseInPlaceUpdateFailed, machine.StateFailed)
	if wait := healthAfter(&m.machine.Spec.Config); wait > 0 {
		p.expect(m, fateFailed, p.now.Add(wait))
	}
}

// enterUpdate gives a machine the phase of an update in place.
func (p *preview) enterUpdate(m *member, phase machine.Phase, state machine.OperationState) {
	c := *m.machine
	c.Status.Phase, c.Status.Since = phase, p.stamp()
	c.Status.LastOperation = machine.Operation{Kind: machine.OperationInPlaceUpdate, State: state, Time: p.stamp()}
	if state == machine.StateFailed {
		c.Status.LastOperation.Code, c.Status.LastOperation.Message = codes.Aborted, "its update in place failed"
	}
	m.put(&c)
	m.lane.changed, p.changed = true, true
}

// move takes a machine to the set that owns it now, where it works again.
func (p *preview) move(m *member, moved *machine.Machine) {
	to := p.lane(moved.Owner.UID)
	if m == nil || to == nil {
		return
	}
	m.lane.drop(m)
	m.lane.changed, to.changed = true, true
	m.machine = moved
	to.share(moved)
	to.add(m)
	p.out.Moved++
	if updated(moved) {
		p.enterUpdate(m, machine.PhaseRunning, machine.StateSuccessful)
	}
}
