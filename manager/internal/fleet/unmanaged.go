package fleet

import (
	"context"
	"errors"
	"slices"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/safety/unmanaged"
	"github.com/millwright-go/millwright/store"
)

var reasonNodeNotWritten = decision.NewReason("NodeNotWritten", "node {name} could not be written")

// NewUnmanaged returns a reconciler that marks nodes that no machine owns, and removes their finalizer.
func NewUnmanaged(e *engine.Engine, c Config) *engine.Reconciler {
	return e.Reconciler(engine.Kind{
		Name: "unmanaged", Delay: c.Reach.Delay,
		Begin: func(p *engine.Pass) engine.Steps { return &unmanagedPass{Pass: p, Config: &c} },
	})
}

// unmanagedPass is one pass over all nodes.
type unmanagedPass struct {
	*engine.Pass
	*Config
	o    unmanaged.Observation
	plan unmanaged.Plan
}

// Read implements engine.Steps. It reads the nodes, then the machines. A live read of the machines follows
// before any node is written.
func (p *unmanagedPass) Read(ctx context.Context, live bool) error {
	reader, began := store.Reader[*machine.Node](p.Nodes), p.Now()
	owners := store.Reader[*machine.Machine](p.Machines)
	if live && p.DryRun {
		reader, owners = p.Nodes.Live(), p.Machines.Live()
	}
	nodes, err := reader.List(ctx, store.Query{})
	if err != nil {
		return err
	}
	instances, err := p.instances(ctx)
	if err != nil {
		return err
	}
	machines, err := owners.List(ctx, store.Query{})
	p.o = unmanaged.Observation{Nodes: slices.Clone(nodes), Machines: machines, Instances: instances, Refused: make(map[string]bool)}
	p.o.Read = p.Freshness(began, live && p.DryRun)
	return err
}

// Decide implements engine.Steps.
func (p *unmanagedPass) Decide(ctx context.Context) (engine.Step, error) {
	p.o.Frozen = p.Reach.Frozen()
	var err error
	if p.plan, err = unmanaged.Decide(&p.o, p.Policy, p.Now()); err != nil {
		return engine.Step{}, err
	}
	for _, why := range p.plan.Warn {
		p.EmitOnce(ctx, engine.Warning, why)
	}
	switch {
	case p.plan.ReadMachines:
		return engine.Step{Verb: engine.Read}, nil
	case len(p.plan.Write) > 0:
		return engine.Step{Verb: engine.Mutate, Why: p.plan.Why}, nil
	}
	return p.wait(p.o.Frozen, p.plan.At, p.plan.Why), nil
}

// Execute implements engine.Steps.
func (p *unmanagedPass) Execute(ctx context.Context) error {
	if p.plan.ReadMachines {
		return p.readMachines(ctx)
	}
	return p.write(ctx, p.plan.Write)
}

// Changes implements engine.Steps.
func (p *unmanagedPass) Changes() []engine.Change {
	changes := make([]engine.Change, len(p.plan.Write))
	for i, order := range p.plan.Write {
		changes[i] = engine.Change{What: "update node " + order.Node.Key.String(), Why: order.Why}
	}
	return changes
}

func (p *unmanagedPass) readMachines(ctx context.Context) error {
	return p.Timed("ReadMachines", func() (err error) {
		began := p.Now()
		if p.o.Machines, err = p.Machines.Live().List(ctx, store.Query{}); err == nil {
			p.o.Read = p.Freshness(began, true)
		}
		return err
	})
}

// write writes nodes, and observes them as they were stored. A node
// that can't be written, or was written by somebody else, waits for the next pass.
func (p *unmanagedPass) write(ctx context.Context, orders []unmanaged.WriteNode) error {
	after, failed := make([]*machine.Node, len(orders)), make([]error, len(orders))
	p.Each(ctx, len(orders), func(i int) {
		failed[i] = p.Timed("WriteNode", func() (err error) {
			after[i], err = p.Nodes.Update(ctx, orders[i].Node)
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
			p.Emit(ctx, engine.Normal, orders[i].Why)
		case errors.Is(err, store.ErrNotFound):
			written[name] = nil
		default:
			p.o.Refused[name] = true
			p.EmitOnce(ctx, engine.Warning, decision.Why{Reason: reasonNodeNotWritten, Name: name})
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
