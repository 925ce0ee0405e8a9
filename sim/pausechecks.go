package sim

import (
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// A paused machine is left as it is, and so are the size and the machines of a paused set (P25).
// What was under way before is excused.

// checkPausedCall: the provider is not asked to change anything of a machine
// that is paused.
func (w *World) checkPausedCall(s driver.CallInfo) {
	if s.Object.Name != "" && w.pausedLong(s.Object.Name) {
		w.violate("P25", "%s was called for machine %s, which is paused", s.Method, s.Object.Name)
	}
}

// checkPausedPod: the manager does not drain its node.
func (w *World) checkPausedPod(p *pod) {
	if !w.ledger.belated && w.pausedLong(p.node) {
		w.violate("P25", "pod %s was told to go from node %s, whose machine is paused", p.Name, p.node)
	}
}

// checkPausedMachine: nothing of it changes, and the manager does not delete it.
func (w *World) checkPausedMachine(r *record[*machine.Machine], now *machine.Machine) {
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

// setPaused reports whether the set of a machine has been paused for long.
func (w *World) setPaused(m *machine.Machine) bool {
	r := w.ledger.setRecords[ownerUID(m)]
	return r != nil && w.longAgo(r.paused)
}

// checkSetChange: a paused set keeps its size and is not deleted. Moves of machines that had begun
// go on.
func (w *World) checkSetChange(r *record[*machineset.Set], now *machineset.Set) {
	if !w.ledger.acting || w.ledger.belated || !w.longAgo(r.paused) {
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

// pausedSince reports whether a machine is paused, or was at any time since then.
func (w *World) pausedSince(name string, then time.Time) bool {
	r := w.ledger.machine(name)
	return r != nil && (!r.paused.IsZero() || r.resumed.After(then))
}

// resumed reports whether a machine, or its set, was paused until just now. Orders from before the
// pause are carried out when it is over.
func (w *World) resumed(m *machine.Machine) bool {
	r, s := w.ledger.records[m.UID], w.ledger.setRecords[ownerUID(m)]
	lately := func(t time.Time) bool { return !t.IsZero() && !w.longAgo(t) }
	return r != nil && lately(r.resumed) || s != nil && lately(s.resumed)
}
