package machines

import (
	"context"
	"errors"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/store"
)

// Drainer empties nodes before their VMs are deleted or updated in place. It is
// optional: without one, deletions and updates do not wait for pods and volumes.
//
// A call does what can be done now and answers; it does not wait for pods.
// While the answer is not Done, the machine asks again at the answer's At, when
// its node changes, and when its time is up. Both calls are made again after a
// crash, so what must survive is the implementation's to record on the node.
//
// An error counts as a failure of the drain and is tried again by the recovery
// table of package codes; store.ErrConflict has the pass begin again.
type Drainer interface {
	// Drain empties order.Node, which is m's.
	Drain(ctx context.Context, m *machine.Machine, order *machine.DrainNode) (machine.DrainAnswer, error)
	// Detach has the volumes detached that are still attached to order.Node
	// after a drain by force.
	Detach(ctx context.Context, m *machine.Machine, order *machine.DetachVolumes) (machine.DrainAnswer, error)
}

// drained makes one call of the drainer. A node that the drainer has written
// takes its place in the observation.
func (p *pass) drained(ctx context.Context, node *machine.Node, call func() (machine.DrainAnswer, error)) (*machine.DrainAnswer, error) {
	began := p.Now()
	answer, err := call()
	switch {
	case err == nil:
	case errors.Is(err, store.ErrConflict) || engine.Interrupted(ctx, err) != nil:
		return nil, err
	default:
		answer.Outcome = machine.Outcome{Code: codes.Of(err), Message: codes.Message(err)}
	}
	if answer.Node != nil && answer.Node.UID == node.UID {
		p.o.Node = &machine.NodeAnswer{Name: p.o.Node.Name, Node: answer.Node, Gone: p.o.Node.Gone, Read: p.Freshness(began, true)}
	}
	return &answer, nil
}
