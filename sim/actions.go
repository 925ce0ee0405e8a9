package sim

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Do does a step at once. It ignores After.
func (w *World) Do(s *Step) {
	w.tell("step: %s", s)
	switch s.Do {
	case Roll:
		w.edit(s.Name, func(spec *deployment.Spec) { spec.Template.Spec.Class.Name = s.Class })
	case Scale:
		w.edit(s.Name, func(spec *deployment.Spec) { spec.Replicas = int32(s.N) })
	case Rollback:
		w.edit(s.Name, func(spec *deployment.Spec) { spec.RollbackTo = &deployment.Rollback{Revision: int64(s.N)} })
	case Pause, Resume:
		w.edit(s.Name, func(spec *deployment.Spec) { spec.Paused = s.Do == Pause })
	case Delete:
		if d := w.deployment(s.Name); d != nil {
			_ = w.deployments.Delete(context.Background(), d.Key, d.UID) // seen in the same instant: it is there
		}
	case Resize:
		w.apps.Resize(s.Name, s.N)
	default:
		w.disturb(s)
		w.request(s)
		w.meddle(s)
		w.actOnPool(s)
	}
	w.check()
}

// disturb does to machines, nodes and VMs what a step says.
func (w *World) disturb(s *Step) {
	switch s.Do {
	case DeleteMachine:
		if m, found := nthOf(w.machines, s.N); found {
			_ = w.machines.Delete(context.Background(), m.Key, m.UID) // seen in the same instant: it is there
		}
	case DeleteNode:
		if n, found := nthOf(w.nodes, s.N); found {
			w.deleteNode(n)
		}
	case DeleteNodes:
		all := w.nodes.all()
		for _, n := range all[:min(max(s.N, 0), len(all))] {
			w.deleteNode(n)
		}
	case CordonNode:
		w.cordon(s.N)
	case RemoveVM:
		w.removeVM(s.N)
	case OrphanVM:
		w.addOrphanVM(s.N)
	case StopControl:
		w.StopControl(s.For)
	case StopTarget:
		w.StopTarget(s.For)
	case StopZone:
		w.StopZone(s.N, s.For)
	case JumpClock:
		w.JumpClock(s.For)
	}
}

// deleteNode deletes a node, as somebody does who is not the manager.
func (w *World) deleteNode(n *machine.Node) {
	w.excuseNode(n.Name)
	_ = w.nodes.Delete(context.Background(), n.Key, n.UID)
}

// excuseNode records that a user asks for the deletion of a node's machine by deleting the node.
func (w *World) excuseNode(node string) {
	for _, m := range w.machines.all() {
		if m.Name == node {
			w.facts.excused[m.UID] = true
		}
	}
}

// removeVM deletes the nth VM at the provider, without the manager.
func (w *World) removeVM(n int) {
	vms := w.provider.VMs()
	if len(vms) == 0 { // also with a driver whose VMs are elsewhere
		return
	}
	w.provider.Remove(vms[n%len(vms)].ID)
	w.count(VMLost)
	w.changed()
	w.lookAtVMs()
}

// addOrphanVM adds an orphan VM: under a name of its own, or under that of a machine that has one.
func (w *World) addOrphanVM(n int) {
	if w.o.Class != nil { // the driver does not see it
		return
	}
	if m, found := nthOf(w.machines, n); found && n%2 == 1 && m.Status.Phase == machine.PhaseRunning {
		w.AddOrphanVM(m.Name)
		return
	}
	w.orphans++
	w.AddOrphanVM(fmt.Sprint("stray-", w.orphans))
}

// lone is a machine that belongs to no set, and that no selector picks.
var lone = object.Key{Namespace: Namespace, Name: "by-hand"}

// madeByHand: a user has made that machine.
type madeByHand struct{}

// addLone makes a machine that belongs to no set, as a user would by hand.
func (w *World) addLone() error {
	m := &machine.Machine{Meta: object.Meta{
		Key: lone, Labels: map[string]string{"made": "by hand"},
		Finalizers: []string{machine.Finalizer},
	}}
	m.Spec.Class.Name = "small"
	_, err := w.machines.Create(context.Background(), m)
	if err == nil {
		w.emit(madeByHand{})
	}
	return err
}

// removeLone deletes that machine.
func (w *World) removeLone() {
	if m, err := w.machines.Get(context.Background(), lone); err == nil {
		_ = w.machines.Delete(context.Background(), m.Key, m.UID) // seen in the same instant: it is there
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
		w.facts.cordoned[node.UID] = true
	}
}
