package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/millwright-go/millwright/examples/pool/group"
	"github.com/millwright-go/millwright/examples/pool/groupdriver"
	"github.com/millwright-go/millwright/examples/pool/supervisor"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/store"
)

// These are the sizes of the pool.
const (
	first = 3
	grown = 5
	last  = 2
)

func (p *play) acts() []stage.Act {
	return []stage.Act{
		{Headline: "A pool of 3 machines, and 6 tasks on them", Creates: first, Do: p.create},
		{Headline: "Scaled to 5: the provider makes two more", Creates: grown - first, Do: p.grow},
		{Headline: "A new version: the provider exchanges its machines, at most one down at a time", Creates: grown, Do: p.roll},
		{Headline: "The process of one machine is killed; the provider puts another one in its place", Creates: 1, Do: p.kill},
		{Headline: "The supervisor itself is killed; machines go on, and another one takes them over", Do: p.killSupervisor},
		{Headline: "The provider takes a machine out, once it is drained", Creates: 1, Do: p.takeOut},
		{Headline: "Scaled to 2: three are chosen, drained, and removed by name", Do: p.shrink},
		{Headline: "The pool is deleted", Do: p.remove},
	}
}

func (p *play) create(ctx context.Context) error {
	if err := p.deploy(ctx, first); err != nil {
		return err
	}
	if err := p.settled(ctx, first, "v1"); err != nil {
		return err
	}
	p.workload.Scale(taskCount)
	return p.tasksServe(ctx)
}

func (p *play) grow(ctx context.Context) error {
	if err := p.edit(ctx, size(grown)); err != nil {
		return err
	}
	return p.settled(ctx, grown, "v1")
}

func size(n int32) func(*machinepool.Spec) {
	return func(s *machinepool.Spec) { s.Replicas = &n }
}

// roll passes a new template to the provider, and counts processes meanwhile.
func (p *play) roll(ctx context.Context) error {
	p.counter.Begin()
	if err := p.edit(ctx, func(s *machinepool.Spec) { s.Template.Class.Name = "v2" }); err != nil {
		return err
	}
	if err := p.settled(ctx, grown, "v2"); err != nil {
		return err
	}
	n, err := p.Counts(ctx, p.counter, grown-1)
	if err == nil && n.MostStaying > grown+1 {
		err = fmt.Errorf("%d agents were running at a time, %d are allowed", n.MostStaying, grown+1)
	}
	if err != nil {
		return err
	}
	p.Say("agents counted %d times: never fewer than %d serving, never more than %d running", n.Number, n.LeastServing, n.MostStaying)
	return p.tasksServe(ctx)
}

// endOf waits until a process is gone.
func (p *play) endOf(ctx context.Context, e roster.Entry) error {
	return p.Await(ctx, func() string {
		if now, err := roster.Read(e.Path); err != nil || now.Alive {
			return fmt.Sprintf("the end of process %d, %s (%v)", e.PID, e.Name, err)
		}
		return ""
	})
}

// killOne kills a process in a way that no program can prepare for.
func (p *play) killOne(ctx context.Context, victim roster.Entry) error {
	if err := victim.Signal(syscall.SIGKILL); err != nil && victim.Alive { // not an earlier program's
		return err
	}
	return p.endOf(ctx, victim)
}

func (p *play) kill(ctx context.Context) error {
	victim, err := p.Choose(p.agents.Running())
	if err != nil {
		return err
	}
	if err := p.killOne(ctx, victim); err != nil {
		return err
	}
	p.Say("killed process %d of machine %s, and its tasks with it", victim.PID, victim.Name)
	if err := p.settled(ctx, grown, "v2"); err != nil {
		return err
	}
	return p.tasksServe(ctx)
}

// killSupervisor kills the process that would heal the pool. The provider reports that, and its
// operator has to start another one.
func (p *play) killSupervisor(ctx context.Context) error {
	before, err := p.agents.Running()
	if err != nil {
		return err
	}
	victim, err := p.Choose(p.supervisors.Running())
	if err != nil {
		return err
	}
	if err := p.killOne(ctx, victim); err != nil {
		return err
	}
	p.Say("killed the supervisor, process %d", victim.PID)
	err = p.Await(ctx, func() string {
		running, err := p.supervisors.Running()
		if pool := p.pool(); err != nil || pool == nil || pool.Status.Phase != machinepool.PhaseFailed && len(running) == 0 { // or an earlier program got further
			return "the provider's word that there is no supervisor"
		}
		return ""
	})
	if err != nil {
		return err
	}
	if err := p.provider.Revive(ctx); err != nil {
		return err
	}
	if err := p.settled(ctx, grown, "v2"); err != nil {
		return err
	}
	for _, e := range before {
		if now, err := roster.Read(e.Path); err != nil || !now.Alive {
			return fmt.Errorf("process %d of machine %s was lost with the supervisor (%w)", e.PID, e.Name, err)
		}
	}
	p.Say("another supervisor has the same %d agents", len(before))
	return nil
}

// takeOut makes the provider ask for a machine, as it does to repair the hardware below it.
func (p *play) takeOut(ctx context.Context) error {
	victim, err := p.Choose(p.agents.Running())
	if err != nil {
		return err
	}
	return p.drained(ctx, func() error {
		if err := p.provider.Ask(ctx, procdriver.ProviderID(clusterName, victim.Name, victim.Instance)); err != nil {
			return err
		}
		p.Say("the provider asks for machine %s", victim.Name)
		return errors.Join(p.endOf(ctx, victim), p.settled(ctx, grown, "v2"))
	})
}

func (p *play) shrink(ctx context.Context) error {
	return p.drained(ctx, func() error {
		if err := p.edit(ctx, size(last)); err != nil {
			return err
		}
		return p.settled(ctx, last, "v2")
	})
}

// drained requires that no task is lost while do runs: each task that ends was told to, so that its
// machine was empty before it ended.
func (p *play) drained(ctx context.Context, do func() error) error {
	before, err := p.tasks.Running()
	if err != nil {
		return err
	}
	if err := errors.Join(do(), p.tasksServe(ctx)); err != nil {
		return err
	}
	moved := 0
	for _, was := range before {
		switch now, err := roster.Read(was.Path); {
		case err != nil:
			return err
		case now.Alive:
		case now.State != roster.Leaving:
			return fmt.Errorf("process %d of task %s was lost with its machine", was.PID, was.Name)
		default:
			moved++
		}
	}
	p.Say("%d of %d tasks were told to end and serve elsewhere; none was lost", moved, len(before))
	return nil
}

// remove ends the tasks first, because the nodes of a pool that is deleted are not drained.
func (p *play) remove(ctx context.Context) error {
	p.workload.Scale(0)
	err := p.Await(ctx, func() string {
		if left := p.workload.Left(); left > 0 {
			return fmt.Sprintf("the end of %d tasks", left)
		}
		return ""
	})
	if err != nil {
		return err
	}
	if err := p.Store.Pools.Delete(ctx, poolKey, ""); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err // not found: an earlier program has got that far
	}
	return p.Await(ctx, p.left)
}

// left names what still exists though the pool was deleted.
func (p *play) left() string {
	nodes, err := p.Nodes.List(context.Background(), store.Query{})
	switch {
	case p.pool() != nil:
		return "the pool is left"
	case p.record() != nil:
		return "the group is left"
	case err != nil || len(nodes) > 0:
		return fmt.Sprintf("%d nodes are left (%v)", len(nodes), err)
	}
	return ""
}

// pool returns the pool as it is stored, or nil.
func (p *play) pool() *machinepool.Pool {
	pool, err := p.Store.Pools.Get(context.Background(), poolKey)
	if err != nil {
		return nil
	}
	return pool
}

// record returns the group as the provider has it, or nil.
func (p *play) record() *group.Group {
	g, err := group.At(supervisor.Groups(p.In(groupsDir), clusterName)).Read(groupdriver.Name(poolKey))
	if err != nil {
		return nil
	}
	return g
}

// settled waits until the pool runs with n machines of one version. They must be exactly the
// processes in the roster and the nodes in the cluster.
func (p *play) settled(ctx context.Context, n int, version string) error {
	return p.Await(ctx, func() string {
		pool, record := p.pool(), p.record()
		if pool == nil || record == nil {
			return "the pool and its group"
		}
		s := &pool.Status
		if s.Phase != machinepool.PhaseRunning || int(s.Ready) != n || int(s.Replicas) != n || s.Applied.Template.Class.Name != version {
			return fmt.Sprintf("%d of %d nodes, made from %q; the pool is %s", s.Ready, n, s.Applied.Template.Class.Name, s.Phase)
		}
		if p.narrator.behind(s.Phase) {
			return "that it is told that the pool is " + string(s.Phase)
		}
		running, err := p.agents.Running()
		if err != nil || len(running) != n {
			return fmt.Sprintf("%d processes of %d (%v)", len(running), n, err)
		}
		for _, e := range running {
			if lack := unmatched(e, pool, record, version); lack != "" {
				return lack
			}
		}
		nodes, err := p.Nodes.List(ctx, store.Query{})
		if err != nil || len(nodes) != n {
			return fmt.Sprintf("%d nodes of %d (%v)", len(nodes), n, err)
		}
		return ""
	})
}

// unmatched returns what pool or provider does not know of a process that stays. It returns nothing
// if both know it as one of that version.
func unmatched(e roster.Entry, pool *machinepool.Pool, record *group.Group, version string) string {
	id := procdriver.ProviderID(clusterName, e.Name, e.Instance)
	if !slices.Contains(pool.Spec.ProviderIDs, id) {
		return "that the pool knows machine " + e.Name
	}
	i := slices.IndexFunc(record.Members, func(m group.Member) bool { return m.ProviderID == id })
	if i < 0 || record.Members[i].Spec.Version != version || record.Members[i].Going {
		return fmt.Sprintf("that machine %s runs %s and stays", e.Name, version)
	}
	return ""
}

// tasksServe waits until every task serves, by the cluster and by the processes.
func (p *play) tasksServe(ctx context.Context) error {
	return p.Await(ctx, func() string {
		running, err := p.tasks.Running()
		if known := p.workload.Serving(); err != nil || known != taskCount || len(running) != taskCount {
			return fmt.Sprintf("%d of %d tasks serve, %d processes run (%v)", known, taskCount, len(running), err)
		}
		return ""
	})
}
