package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// RuleChildren: the owner of machines is deleted after them.
const RuleChildren = "children first"

// refused is a call to the provider that was answered with an error.
type refused struct {
	at             time.Time
	wait           time.Duration // when the recovery table allows the next attempt
	machine, class int64         // generations at that time
}

// noteRetry takes down whether a call that failed is made again before its time,
// unless what it was made with has changed.
func (p *process) noteRetry(s driver.CallInfo) {
	f, was := p.refused[s.Method][s.Object]
	machine, class, known := p.w.madeWith(s)
	if !was || !known || f.machine != machine || f.class != class || p.w.faults[ClockJump] > 0 {
		return
	}
	p.w.ledger.repeated++
	if p.w.clock.now.Sub(f.at) < f.wait {
		p.w.ledger.early++
	}
}

// checkRetries: of all calls that were made again, few were too early. A refusal may be forgotten
// if its record met a conflict or was lost.
func (w *World) checkRetries() error {
	if l := &w.ledger; l.repeated >= 8 && 4*l.early > 3*l.repeated {
		return w.violation("P28", "of %d calls to the provider that were made again %d came before their time", l.repeated, l.early)
	}
	return nil
}

// noteAnswer takes down how a call was answered.
func (p *process) noteAnswer(s driver.CallInfo, err error) {
	machine, class, known := p.w.madeWith(s)
	if err == nil || p.dead || !known {
		delete(p.refused[s.Method], s.Object)
		return
	}
	if p.refused[s.Method] == nil {
		p.refused[s.Method] = map[object.Key]refused{}
	}
	// Times are stored in whole seconds.
	call, _ := s.Method.(codes.Call)
	wait := codes.RecoveryFor(call, codes.Of(err)).Class.Period(0) - time.Second
	p.refused[s.Method][s.Object] = refused{p.w.clock.now, wait, machine, class}
}

// madeWith are the generations of what a call is made with that changes a VM;
// unknown for others, and where VMs of that name are collected that are nobody's.
func (w *World) madeWith(s driver.CallInfo) (machine, class int64, known bool) {
	if s.Method != codes.CreateMachine && s.Method != codes.DeleteMachine {
		return 0, 0, false
	}
	m, err := w.machines.Get(context.Background(), s.Object)
	c, missing := w.classes.Get(context.Background(), s.Class)
	if err != nil || missing != nil || w.ledger.late[m.Name] {
		return 0, 0, false
	}
	several := 0
	for _, vm := range w.provider.VMs() {
		if vm.Name == m.Name {
			several++
		}
	}
	return m.Generation, c.Generation, several < 2
}

// RuleInitialized: a VM that needs initialization is initialized before its machine runs.
const RuleInitialized = "initialized"

// checkInitialized: no machine runs on a VM that is not initialized yet, unless the provider said
// that there is nothing to initialize.
func (w *World) checkInitialized(machines []*machine.Machine, vm *drivertest.MemoryVM) {
	call := codes.InitializeMachine
	if w.refusals[Refusal{call, codes.Unimplemented}]+w.refusals[Refusal{call, codes.NotFound}] > 0 {
		return
	}
	for _, m := range machines {
		if m.Spec.ProviderID == vm.ID && m.Status.Phase == machine.PhaseRunning {
			w.violate(RuleInitialized, "machine %s runs, and its VM was never initialized", m.Name)
		}
	}
}

// checkOwners: a set that is deleted leaves no machine behind that it must have known.
func (w *World) checkOwners(machines []*machine.Machine) {
	now := map[string]bool{}
	for _, s := range w.sets.all() {
		now[s.UID] = true
	}
	for _, m := range machines {
		known := w.ledger.lives[m.UID]
		if m.Owner == nil || now[m.Owner.UID] || !w.ledger.sets[m.Owner.UID] || w.ledger.belated || known == nil {
			continue
		}
		if !w.underWay(known.born) {
			w.violate(RuleChildren, "set %s is gone, and machine %s is there", m.Owner.Name, m.Name)
		}
	}
	w.ledger.sets = now
}

// checkRecreate: with that strategy, machines of two sets never exist at the same time.
func (w *World) checkRecreate(d *deployment.Deployment, born *machine.Machine, fleet []*machine.Machine) {
	if d.Spec.Strategy.Kind != deployment.Recreate || w.ledger.belated {
		return
	}
	for _, other := range fleet {
		if other.Owner.UID != born.Owner.UID {
			w.violate("P7", "machine %s of a new set was made while %s of another exists", born.Name, other.Name)
		}
	}
}

// checkUpdated: a machine that is available is taken out of service for its update only if enough
// others stay in service.
func (w *World) checkUpdated(m *machine.Machine, fleet []*machine.Machine, floor int) {
	serving := 0
	for _, other := range fleet {
		if known := w.ledger.lives[other.UID]; known != nil && w.serves(other) && !updates(other) {
			serving++
		}
	}
	if known := w.ledger.lives[m.UID]; serving < floor && !w.ledger.belated && !w.underWay(known.ready) {
		w.violate("P7", "machine %s was taken out of service for its update, and %d are left; %d have to", m.Name, serving, floor)
	}
}

// updates reports whether a machine is out of service for its update.
func updates(m *machine.Machine) bool {
	switch m.Status.Phase {
	case machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateFailed, machine.PhaseInPlaceUpdateSuccessful:
		return true
	}
	return false
}

// addLone makes a machine that belongs to no set, as a user would by hand.
func (w *World) addLone() error {
	m := &machine.Machine{Meta: object.Meta{
		Key: object.Key{Namespace: Namespace, Name: "by-hand"}, Labels: map[string]string{"made": "by hand"},
		Finalizers: []string{machine.Finalizer},
	}}
	m.Spec.Class.Name = "small"
	made, err := w.machines.Create(context.Background(), m)
	if err == nil {
		w.ledger.lone = made.Key
	}
	return err
}

// removeLone deletes that machine.
func (w *World) removeLone() {
	if m, err := w.machines.Get(context.Background(), w.ledger.lone); err == nil {
		_ = w.machines.Delete(context.Background(), m.Key, m.UID) // seen in the same instant: it is there
	}
}

// checkLone: nothing adopts what no selector picks.
func (w *World) checkLone() {
	if w.ledger.lone.Name == "" {
		return
	}
	if m, err := w.machines.Get(context.Background(), w.ledger.lone); err == nil && m.Owner != nil {
		w.violate("P10", "machine %s was adopted by %s, which does not select it", m.Name, m.Owner.Name)
	}
}

// cordon marks the nth node unschedulable, as a user would, unless it is so already.
func (w *World) cordon(n int) {
	node, found := nthOf(w.nodes, n)
	if !found || node.Unschedulable || node.Drain != nil || !node.Applied.Update.Since.IsZero() {
		return
	}
	node = node.Clone()
	node.Unschedulable = true
	if _, err := w.nodes.Update(context.Background(), node); err == nil {
		w.ledger.cordoned[node.UID] = true
	}
}

// checkCordons: what a user has cordoned stays so (P23).
func (w *World) checkCordons() {
	if len(w.ledger.cordoned) == 0 {
		return
	}
	for _, n := range w.nodes.all() {
		if w.ledger.cordoned[n.UID] && !n.Unschedulable {
			w.violate("P23", "node %s was cordoned by a user, and is not any more", n.Name)
		}
	}
}

// chatter changes the message of a node that is unhealthy for good again and again, as kubelets do.
func (w *World) chatter(name, id string) {
	w.clock.after(3*time.Minute+w.upTo(time.Minute), func() {
		n, err := w.nodes.Get(context.Background(), object.Key{Name: name})
		if err != nil || n.ProviderID != id || w.gone[id] {
			return
		}
		n = n.Clone()
		for i := range n.Conditions {
			if n.Conditions[i].Type == machine.NodeReady {
				n.Conditions[i].Message = "still ill at " + w.clock.now.Format(time.TimeOnly)
			}
		}
		_, _ = w.nodes.UpdateStatus(context.Background(), n) // read in the same instant: no conflict
		w.chatter(name, id)
	})
}
