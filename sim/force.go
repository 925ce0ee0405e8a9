package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// force says when force may be used on a machine.
type force struct {
	*managerClock
	*policies
	nodes *trackedStore[*machine.Node]
}

// forceDue reports whether force may be used on a machine now, by the manager's clock: the present
// stage of its deletion has worked for too long, or its node has been silent for too long. The
// record alone is not enough, because the manager cannot record on a cluster that does not answer.
func (f *force) forceDue(m *machine.Machine) bool {
	if !m.Deleted() {
		return false
	}
	p, now := f.machinePolicy(), f.managerNow()
	timeout := p.DrainTimeout
	if t := m.Spec.Config.DrainTimeout; t > 0 {
		timeout = t
	}
	if m.Status.LastOperation.Forced || f.forcedByHand(&m.Meta) || !now.Before(stageBegan(m).Add(timeout)) {
		return true
	}
	n, err := f.nodes.Get(context.Background(), object.Key{Name: m.Name})
	if err != nil {
		return false
	}
	c := object.FindCondition(n.Conditions, machine.NodeReady)
	return c != nil && c.Status != object.True && !now.Before(c.Since.Add(p.Unresponsive))
}

// stageBegan is when the present stage of a machine's deletion began its own work.
func stageBegan(m *machine.Machine) time.Time {
	if since := m.Status.StageSince; since.After(m.DeletedAt) {
		return since
	}
	return m.DeletedAt
}

// forcedByHand reports whether a person has forced the deletion of a machine.
func (p *policies) forcedByHand(m *object.Meta) bool {
	return m.Labels[p.machinePolicy().Keys.ForceDeletion] != ""
}
