package sim

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/sim/internal/cluster"
)

// p25Paused: a paused machine is left as it is, and so are the size and the machines of a paused
// set (P25). What was under way before is excused.
type p25Paused struct{ *World }

func (w p25Paused) see(e event) {
	switch e := e.(type) {
	case machineChanged:
		w.checkPausedMachine(e.seen, e.now)
	case machineDeleted:
		if w.setPaused(e.now) {
			w.violate("P25", "machine %s was deleted, and its set is paused", e.now.Name)
		}
	case setChanged:
		w.checkPausedSet(e.seen, e.now)
	case called:
		w.checkPausedCall(e.call)
	case cluster.EvictionTried:
		w.checkPausedPod(e.Pod)
	case cluster.PodDeleted:
		w.checkPausedPod(e.Pod)
	}
}

// checkPausedCall: the provider is not asked to change anything of a machine
// that is paused.
func (w p25Paused) checkPausedCall(s driver.CallInfo) {
	if _, ofMachines := s.Method.(codes.Call); ofMachines && s.Object.Name != "" && w.pausedLong(s.Object.Name) {
		w.violate("P25", "%s was called for machine %s, which is paused", s.Method, s.Object.Name)
	}
}

// checkPausedPod: the manager does not drain its node.
func (w p25Paused) checkPausedPod(p cluster.Pod) {
	if !w.belated && w.pausedLong(p.Node) {
		w.violate("P25", "pod %s was told to go from node %s, whose machine is paused", p.Name, p.Node)
	}
}

// checkPausedMachine: nothing of it changes, and the manager does not delete it.
func (w p25Paused) checkPausedMachine(r *record[*machine.Machine], now *machine.Machine) {
	if !w.longAgo(r.paused) {
		return
	}
	before, a, b := r.last, &r.last.Status, &now.Status
	moved := a.Phase != b.Phase || a.LastOperation.Kind != b.LastOperation.Kind || a.LastOperation.Stage != b.LastOperation.Stage ||
		a.LastOperation.State != b.LastOperation.State || before.Spec.ProviderID != now.Spec.ProviderID
	switch {
	case now.Deleted() && !before.Deleted():
		w.violate("P25", "machine %s was deleted, and is paused", now.Name)
	case moved:
		w.violate("P25", "machine %s went from %s, %s to %s, %s, and is paused", now.Name,
			a.Phase, a.LastOperation.Stage, b.Phase, b.LastOperation.Stage)
	}
}

// checkPausedSet: a paused set keeps its size and is not deleted. Moves of machines that had begun
// go on.
func (w p25Paused) checkPausedSet(r *record[*machineset.Set], now *machineset.Set) {
	if !w.acting || w.belated || !w.longAgo(r.paused) {
		return
	}
	moving := len(r.last.Instructions.Handover.Arriving)+len(r.last.Instructions.Handover.Leaving)+len(now.Instructions.Handover.Arriving)+len(now.Instructions.Handover.Leaving) > 0
	switch {
	case now.Deleted() && !r.last.Deleted():
		w.violate("P25", "set %s was deleted, and is paused", now.Name)
	case now.Spec.Replicas != r.last.Spec.Replicas && !moving:
		w.violate("P25", "set %s went from %d to %d replicas, and is paused", now.Name, r.last.Spec.Replicas, now.Spec.Replicas)
	}
}
