package main

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// settled waits until the deployment is complete: n machines run, all of them of one class, with a
// node and a process each, and nothing else is there.
func (p *play) settled(ctx context.Context, n int, class string) error {
	return p.Await(ctx, func() string {
		d, err := p.Store.Deployments.Get(ctx, deploymentKey)
		if err != nil {
			return err.Error()
		}
		if missing := deployment.Missing(d); missing != "" {
			return missing
		}
		if ready := p.running(class); ready != n {
			return fmt.Sprintf("%d of %d machines run %s", ready, n, class)
		}
		if all := count(p.Store.Machines.List(ctx, store.Query{})); all != n {
			return fmt.Sprintf("%d machines that are not to stay", all-n)
		}
		if nodes := count(p.Nodes.List(ctx, store.Query{})); nodes != n {
			return fmt.Sprintf("%d nodes of %d", nodes, n)
		}
		alive, err := p.Book.Alive()
		if err != nil || len(alive) != n {
			return fmt.Sprintf("%d processes of %d (%v)", len(alive), n, err)
		}
		return ""
	})
}

// running counts the machines of a class that run.
func (p *play) running(class string) int {
	machines, _ := p.Store.Machines.List(context.Background(), store.Query{})
	n := 0
	for _, m := range machines {
		if m.Spec.Class.Name == class && m.Status.Phase == machine.PhaseRunning && !m.Deleted() {
			n++
		}
	}
	return n
}

// machine returns the object of that name, or nil.
func (p *play) machine(name string) *machine.Machine {
	m, err := p.Store.Machines.Get(context.Background(), object.Key{Namespace: namespace, Name: name})
	if err != nil {
		return nil
	}
	return m
}

// unjoined names a process that runs and is no ready node yet.
func (p *play) unjoined() string {
	alive, err := p.Book.Alive()
	if err != nil {
		return err.Error()
	}
	for _, life := range alive {
		if !p.ready(life.Machine) {
			return fmt.Sprintf("the node of process %d, machine %s", life.ID.PID, life.Machine)
		}
	}
	return ""
}

// ready reports whether there is a node of that name that is Ready.
func (p *play) ready(node string) bool {
	n, err := p.Nodes.Get(context.Background(), object.Key{Name: node})
	if err != nil {
		return false
	}
	c := object.FindCondition(n.Conditions, machine.NodeReady)
	return c != nil && c.Status == object.True
}

func count[T any](list []T, _ error) int { return len(list) }

// left names what still exists though everything was deleted.
func (p *play) left() string {
	ctx := context.Background()
	objects := []struct {
		kind string
		n    int
	}{
		{"deployments", count(p.Store.Deployments.List(ctx, store.Query{}))},
		{"sets", count(p.Store.Sets.List(ctx, store.Query{}))},
		{"machines", count(p.Store.Machines.List(ctx, store.Query{}))},
		{"nodes", count(p.Nodes.List(ctx, store.Query{}))},
	}
	for _, o := range objects {
		if o.n > 0 {
			return fmt.Sprintf("%d %s are left", o.n, o.kind)
		}
	}
	return ""
}
