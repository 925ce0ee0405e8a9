package deployment

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// decide lets the deployment and its sets decide until none has anything to order: the deployment
// first, then the sets, the oldest first.
func (p *preview) decide() error {
	for {
		if p.changed && !p.gone {
			if err := p.passDeployment(); err != nil {
				return err
			}
		}
		quiet := true
		for _, l := range slices.Clone(p.lanes) {
			if !l.changed || p.out.Ending.Reason != "" {
				continue
			}
			quiet = false
			if err := p.passSet(l); err != nil {
				return err
			}
		}
		if p.out.Ending.Reason != "" || quiet && (!p.changed || p.gone) {
			return nil
		}
	}
}

// spent counts a decision that looked at this many machines. It reports whether the preview has to
// end.
func (p *preview) spent(machines int) bool {
	p.moment++
	p.decisions += 1 + int64(machines)/budgetMachines
	switch err := p.interrupted(); {
	case err != nil:
		p.interrupt(err)
	case p.decisions > p.model.budget():
		p.interrupt(ErrBudgetSpent)
	case p.moment > momentDecisions+machineDecisions*(int64(p.out.Ceiling)+int64(p.out.HighestTotal)):
		p.stop(EndCircling)
	}
	return p.out.Ending.Reason != ""
}

// interrupt stops the preview before its end.
func (p *preview) interrupt(cause error) {
	p.halt = cause
	p.stop(EndStopped)
}

// passDeployment is one pass over the deployment.
func (p *preview) passDeployment() error {
	p.changed = false
	o := p.observation()
	for {
		plan, err := Decide(o, p.policy, p.now)
		if err != nil {
			return err
		}
		p.why = plan.Why
		if p.spent(int(p.seen.Total() + p.seen.Terminating)) {
			return nil
		}
		busy, err := p.carryOut(&plan, o)
		if err != nil || !busy {
			p.wake = p.wakeAt(plan.At, p.policy.Resync)
			return err
		}
		if p.gone {
			return nil
		}
		taken := o.Taken
		o = p.observation()
		o.Taken = taken
	}
}

// wakeAt returns a time to decide again, or zero if that is only to make sure.
func (p *preview) wakeAt(at time.Time, resync time.Duration) time.Time {
	if at.IsZero() || at.Sub(p.now) >= resync {
		return time.Time{}
	}
	return at
}

// carryOut carries out a plan about the deployment. False: the pass ends.
func (p *preview) carryOut(plan *Plan, o *Observation) (bool, error) {
	switch write := plan.Write.(type) {
	case nil:
		return p.carryOutOrders(plan, o), nil
	case *Update:
		p.deployment = write.Deployment
		p.gone = p.deployment.Deleted() && len(p.deployment.Finalizers) == 0
		if write.News != "" {
			p.noteAnswer(plan.Why)
		}
	case *UpdateStatus:
		// Observations share the deployment, so it is replaced.
		d := *p.deployment
		d.Status = write.Status
		p.deployment = &d
		c := object.FindCondition(d.Status.Conditions, ConditionProgressing)
		if p.out.Overdue == 0 && c != nil && c.Reason == ProgressDeadlineExceeded {
			p.out.Overdue = p.now.Sub(p.start)
		}
	default:
		return false, fmt.Errorf("%w: %T", errUnknownWrite, write)
	}
	return true, nil
}

// carryOutOrders gives sets the orders of a plan. False: there are none.
func (p *preview) carryOutOrders(plan *Plan, o *Observation) bool {
	orders := 0
	for _, part := range [...]struct {
		orders []Order
		do     func(*machineset.Set, *Observation)
	}{
		{plan.Create, p.createSet}, {plan.Push, p.updateSet}, {plan.Scale, p.updateSet},
		{plan.Delete, p.deleteSet}, {plan.Adopt, p.updateSet}, {plan.Release, p.releaseSet},
		{plan.Handover, p.updateSet},
	} {
		for _, order := range part.orders {
			orders++
			if noteworthy(order.Why.Reason) {
				p.note(order.Set, order.Why)
			}
			part.do(order.Set, o)
		}
	}
	orders += p.carryOutMachines(plan)
	switch plan.Why.Reason {
	case reasonSpecInvalid, reasonSelectsAll, reasonNotOurs:
		p.stop(EndRefused)
	}
	return orders > 0
}

// noteAnswer records the answer to an owner's request as a step.
func (p *preview) noteAnswer(why decision.Why) {
	for _, l := range p.lanes {
		if l.set.Name == why.Name {
			p.note(l.set, why)
			return
		}
	}
	p.out.Steps = append(p.out.Steps, Step{After: p.now.Sub(p.start), Set: why.Name, Why: why, Seen: p.seen})
}

// note records an order about a set as a step.
func (p *preview) note(s *machineset.Set, why decision.Why) {
	step := Step{After: p.now.Sub(p.start), Set: s.Name, From: s.Spec.Replicas, To: s.Spec.Replicas, Why: why, Seen: p.seen}
	step.New = sameTemplate(&s.Spec.Template, &p.deployment.Spec.Template, p.policy.Keys.TemplateHash)
	if l := p.lane(s.UID); l != nil {
		step.From = l.set.Spec.Replicas
	}
	p.out.Steps = append(p.out.Steps, step)
}

// createSet creates a set, or finds out which set holds its name.
func (p *preview) createSet(s *machineset.Set, o *Observation) {
	for _, other := range p.others {
		if other.Key == s.Key {
			o.Taken = &Taken{Name: s.Name, Set: other}
			return
		}
	}
	s.UID, s.Generation, s.CreatedAt = p.unique(), 1, p.stamp()
	p.lanes = append(p.lanes, &lane{set: s, changed: true, known: map[machineKey]*member{}})
	p.changed = true
}

// updateSet puts a set in the place of the one it was made from.
func (p *preview) updateSet(s *machineset.Set, _ *Observation) {
	if l := p.lane(s.UID); l != nil {
		if !s.SpecEqual(l.set) {
			s.Generation++
		}
		l.set, l.changed = s, true
	}
	p.changed = true
}

// deleteSet marks a set as being deleted.
func (p *preview) deleteSet(s *machineset.Set, o *Observation) {
	marked := s.Clone()
	marked.DeletedAt = p.stamp()
	p.updateSet(marked, o)
}

// releaseSet releases a set, with its machines.
func (p *preview) releaseSet(s *machineset.Set, _ *Observation) {
	p.others = append(p.others, s)
	p.forget(s.UID)
}

// forget removes a set from the fleet, and cancels the events of its machines.
func (p *preview) forget(uid string) {
	if l := p.lane(uid); l != nil {
		for _, m := range l.members {
			m.next = 0
		}
		p.lanes = slices.DeleteFunc(p.lanes, func(other *lane) bool { return other == l })
	}
	p.changed = true
	p.take()
}

// passSet is one pass over a set.
func (p *preview) passSet(l *lane) error {
	l.changed = false
	if n := l.set.Spec.Replicas; n > MaxPreviewMachines && !l.set.Deleted() {
		p.stop(EndTooLarge)
		p.out.Ending.Count = int64(n)
		return nil
	}
	o := machineset.Observation{Read: decision.Freshness{Began: p.now}}
	if !p.told {
		o.StatusWritten = p.now
	}
	for {
		o.Set, o.Machines = l.set, l.machines
		plan, err := machineset.Decide(&o, p.setPolicy, p.now)
		if err != nil {
			return err
		}
		l.why = plan.Why
		if p.spent(len(l.machines)) {
			return nil
		}
		busy, err := p.carryOutSet(l, &plan, &o)
		if err != nil || !busy {
			l.wake = p.wakeAt(plan.At, p.setPolicy.Resync)
			p.acknowledge(l)
			return err
		}
		if p.lane(l.set.UID) == nil {
			return nil // it is gone
		}
	}
}

// acknowledge records that a set knows its present spec. Unlike the rest of the status, a decision
// may wait for that.
func (p *preview) acknowledge(l *lane) {
	if l.set.Status.ObservedGeneration != l.set.Generation && p.lane(l.set.UID) == l {
		s := *l.set
		s.Status.ObservedGeneration = s.Generation
		l.set, p.changed = &s, true
	}
}

// carryOutSet carries out a plan about a set. False: the pass ends.
func (p *preview) carryOutSet(l *lane, plan *machineset.Plan, o *machineset.Observation) (bool, error) {
	switch write := plan.Write.(type) {
	case nil:
		return p.carryOutSetOrders(l, plan, o), nil
	case *machineset.Update:
		p.updateSet(write.Set, nil)
		if l.set.Deleted() && len(l.set.Finalizers) == 0 {
			p.forget(l.set.UID)
		}
	case *machineset.UpdateStatus:
		s := *l.set
		s.Status = write.Status
		l.set = &s
		p.changed = true
	default:
		return false, fmt.Errorf("%w: %T", errUnknownWrite, write)
	}
	return true, nil
}

// carryOutSetOrders carries out what a set orders its machines. False: nothing.
func (p *preview) carryOutSetOrders(l *lane, plan *machineset.Plan, o *machineset.Observation) bool {
	switch {
	case len(plan.Create) > 0:
		for _, order := range plan.Create {
			p.create(l, order.Machine)
			o.Created = order.Ordinal
		}
	case len(plan.Delete) > 0:
		if plan.Why.Reason != machineset.ReasonDeleteSurplus {
			p.noteMachines(l, plan.Why)
		}
		for _, order := range plan.Delete {
			p.remove(l.known[keyOf(order.Machine)])
		}
	case len(plan.Push) > 0:
		p.noteMachines(l, plan.Why)
		p.change(l, plan.Push)
	case len(plan.Release) > 0:
		p.noteMachines(l, plan.Why)
		p.change(l, plan.Release)
	default:
		return false
	}
	p.changed = true
	p.take()
	return true
}

// change replaces observed machines with changed ones. A machine that is no longer the set's leaves
// it.
func (p *preview) change(l *lane, orders []machineset.Order) {
	for _, order := range orders {
		m := l.known[keyOf(order.Machine)]
		switch {
		case m == nil:
		case order.Machine.OwnedBy(l.set.UID):
			m.put(order.Machine)
		default:
			l.drop(m)
		}
	}
}

// noteMachines records a set's own order as a step.
func (p *preview) noteMachines(l *lane, why decision.Why) {
	p.note(l.set, decision.Why{})
	p.out.Steps[len(p.out.Steps)-1].Machines = why
}

func saturated(n int64) int32 { return int32(min(n, math.MaxInt32)) }
