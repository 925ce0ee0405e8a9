package sim

import (
	"context"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// forceDue reports whether force may be used on a machine now, by the manager's clock: its deletion
// is too old, or its node has been silent for too long. The record alone is not enough, because the
// manager cannot record on a cluster that does not answer.
func (w *World) forceDue(m *machine.Machine) bool {
	if !m.Deleted() {
		return false
	}
	p, now := w.machinePolicy(), w.clock.now.Add(w.skew)
	timeout := p.DrainTimeout
	if t := m.Spec.Config.DrainTimeout; t > 0 {
		timeout = t
	}
	if m.Status.LastOperation.Forced || !now.Before(m.DeletedAt.Add(timeout)) {
		return true
	}
	n, err := w.nodes.Get(context.Background(), object.Key{Name: m.Name})
	if err != nil {
		return false
	}
	c := object.FindCondition(n.Conditions, machine.NodeReady)
	return c != nil && c.Status != object.True && !now.Before(c.Since.Add(p.Unresponsive))
}

// noteForce records whether force is due before a node's readiness changes, because caches may show
// the old state for a while longer.
func (w *World) noteForce(node string) {
	m, err := w.machines.Get(context.Background(), object.Key{Namespace: Namespace, Name: node})
	if err != nil {
		return
	}
	if known := w.past.lives[m.UID]; known != nil {
		known.forced = known.forced || w.forceDue(m)
	}
}
