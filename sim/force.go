package sim

import (
	"context"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// forceDue tells whether force may be used on a machine by now, by the manager's
// clock: its deletion is too old, or its node has been silent for too long. What
// is recorded is not enough to go by, since a cluster that does not answer
// cannot be told.
func (w *World) forceDue(m *machine.Machine) bool {
	if !m.Deleted() {
		return false
	}
	p, now := w.policy(), w.clock.now.Add(w.skew)
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

// noteForce takes down whether force is due before a node's readiness changes:
// caches may say for a while longer that it is.
func (w *World) noteForce(node string) {
	m, err := w.machines.Get(context.Background(), object.Key{Namespace: Namespace, Name: node})
	if err != nil {
		return
	}
	if known := w.ledger.lives[m.UID]; known != nil {
		known.forced = known.forced || w.forceDue(m)
	}
}
