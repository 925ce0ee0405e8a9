package manager

import (
	"context"
	"errors"
	"slices"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// unmanaged lets nodes go that no machine owns.
type unmanaged struct {
	*shell
	memo memo
}

func newUnmanaged(s *shell) *unmanaged { return &unmanaged{shell: s} }

// Kind implements Reconciler.
func (r *unmanaged) Kind() Kind { return KindUnmanaged }

// Reconcile implements Reconciler.
func (r *unmanaged) Reconcile(ctx context.Context, key object.Key) (Result, error) {
	return r.reconcile(ctx, KindUnmanaged, key, &r.memo, func(*engine.Pass) pass { return &unmanagedPass{unmanaged: r, key: key} })
}

// unmanagedPass is one pass over all nodes.
type unmanagedPass struct {
	*unmanaged
	key object.Key
	o   safety.NodesObservation
}

// observe reads the nodes, then the machines, from the caches: what these make
// one do is looked at live first.
func (p *unmanagedPass) observe(ctx context.Context, _ bool) error {
	nodes, err := p.Cluster.Nodes().List(ctx, store.Query{})
	if err != nil {
		return err
	}
	instances, err := p.instances(ctx)
	if err != nil {
		return err
	}
	machines, err := p.Machines.List(ctx, store.Query{})
	p.o = safety.NodesObservation{Nodes: slices.Clone(nodes), Machines: machines, Instances: instances, Refused: make(map[string]bool)}
	return err
}

func (p *unmanagedPass) step(ctx context.Context) (Result, bool, error) {
	p.o.Frozen = p.frozen()
	plan, err := safety.DecideNodes(&p.o, p.SafetyPolicy, p.Now())
	if err != nil {
		return Result{}, false, err
	}
	for _, why := range plan.Warn {
		p.tell(ctx, &p.memo, KindUnmanaged, p.key, Warning, why)
	}
	switch {
	case plan.ReadMachines:
		err = p.readMachines(ctx)
	case len(plan.Write) > 0:
		err = p.write(ctx, plan.Write)
	default:
		return p.lookFor(p.o.Frozen, plan.At, plan.Why), true, nil
	}
	return Result{}, false, err
}

func (p *unmanagedPass) readMachines(ctx context.Context) error {
	return p.timed(KindUnmanaged, p.key, "ReadMachines", func() (err error) {
		began := p.Now()
		if p.o.Machines, err = p.Machines.Live().List(ctx, store.Query{}); err == nil {
			p.o.Read = p.since(began)
		}
		return err
	})
}

// write writes nodes. What is stored takes the place of those observed; one
// that can't be written, or was written by somebody else, waits for the next pass.
func (p *unmanagedPass) write(ctx context.Context, orders []safety.WriteNode) error {
	after, failed := make([]*machine.Node, len(orders)), make([]error, len(orders))
	p.Each(ctx, len(orders), func(i int) {
		failed[i] = p.timed(KindUnmanaged, p.key, "WriteNode", func() (err error) {
			orderedFor(ctx, p.shell, orders[i].Node.Key, orders[i].Why)
			after[i], err = p.Cluster.Nodes().Update(ctx, orders[i].Node)
			return err
		})
	})
	if err := engine.Interrupted(ctx, errors.Join(failed...)); err != nil {
		return err
	}
	written := make(map[string]*machine.Node, len(orders))
	for i := range orders {
		name := orders[i].Node.Name
		switch err := failed[i]; {
		case err == nil:
			written[name] = after[i]
			p.tell(ctx, nil, KindUnmanaged, p.key, Normal, orders[i].Why)
		case errors.Is(err, store.ErrNotFound):
			written[name] = nil
		default:
			p.o.Refused[name] = true
			p.tell(ctx, &p.memo, KindUnmanaged, p.key, Warning, decision.Why{Reason: reasonNodeNotWritten, Name: name})
		}
	}
	left := p.o.Nodes[:0]
	for _, n := range p.o.Nodes {
		if now, changed := written[n.Name]; changed {
			n = now
		}
		if n != nil {
			left = append(left, n)
		}
	}
	p.o.Nodes = left
	return nil
}
