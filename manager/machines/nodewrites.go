package machines

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// syncNode writes a node, or what the server accepts of it.
func (p *pass) syncNode(ctx context.Context, e *machine.SyncNode) (*machine.Outcome, error) {
	began, version := p.Now(), e.Node.Version
	node, err := p.writeNode(ctx, e, e.Node, &version)
	refusal := err
	for _, rest := range e.Rest {
		if code := engine.CodeOf(err); code != codes.InvalidArgument && code != codes.PermissionDenied {
			break
		}
		less := *rest
		less.Applied.Refused.Code = engine.CodeOf(refusal)
		less.Applied.Refused.Message, _ = codes.Bounded(codes.Message(refusal))
		node, err = p.writeNode(ctx, e, &less, &version)
	}
	if err == nil {
		p.wrote(p.o.NodeWrites.With(e, began))
	}
	return p.nodeWritten(ctx, node, began, err)
}

// wrote remembers what was written to the node.
func (p *pass) wrote(all machine.NodeWrites) {
	p.o.NodeWrites = all
	p.written.Change(p.Key, func(w *machine.NodeWrites) { *w = all })
}

// writeNode writes the halves of a node that differ: the record of what was
// applied last, so that it never says more than was done.
func (p *pass) writeNode(ctx context.Context, e *machine.SyncNode, node *machine.Node, version *string) (*machine.Node, error) {
	changed := *node // the store takes its own copy
	changed.Version = *version
	written := &changed
	var err error
	if e.Capacity {
		if written, err = p.Nodes.UpdateStatus(ctx, &changed); err != nil {
			return written, err
		}
		changed.Version, *version = written.Version, written.Version
	}
	if e.Spec {
		written, err = p.Nodes.Update(ctx, &changed)
	}
	return written, err
}

func (p *pass) markNode(ctx context.Context, e *machine.MarkNode) (*machine.Outcome, error) {
	changed := *e.Node // the store takes its own copy
	changed.Conditions = object.SetCondition(changed.Conditions, e.Condition)
	began := p.Now()
	node, err := p.Nodes.UpdateStatus(ctx, &changed)
	if err == nil {
		p.wrote(p.o.NodeWrites.Marked(e, began))
	}
	return p.nodeWritten(ctx, node, began, err)
}

// nodeWritten looks at the answer to a write of a node. Somebody else's write
// in between begins the pass again; what else goes wrong is the decision's matter.
func (p *pass) nodeWritten(ctx context.Context, node *machine.Node, began time.Time, err error) (*machine.Outcome, error) {
	switch {
	case err == nil:
		p.o.Node = &machine.NodeAnswer{Name: p.o.Node.Name, Node: node, Of: p.o.Node.Of, Gone: p.o.Node.Gone, Read: p.Freshness(began, true)}
		return &machine.Outcome{}, nil
	case errors.Is(err, store.ErrConflict) || engine.Interrupted(ctx, err) != nil:
		return nil, err
	case errors.Is(err, store.ErrNotFound):
		return nil, fmt.Errorf("node %s vanished: %w", p.o.Node.Name, store.ErrConflict)
	}
	return &machine.Outcome{Code: engine.CodeOf(err), Message: codes.Message(err)}, nil
}
