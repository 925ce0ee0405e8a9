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
	"github.com/millwright-go/millwright/examples/quickstart/demo"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/store"
)

// These are the sizes of the pool: at first, after it was scaled up, and after it was scaled down.
const (
	first = 3
	grown = 5
	last  = 2
)

// steps returns the steps of the demo. NewProcesses counts agents only. A step may be repeated after an
// interrupted run; Choose then returns the same process.
func (d *poolDemo) steps() []demo.Step {
	return []demo.Step{
		{Headline: "A pool of 3 machines, and 6 tasks on them", NewProcesses: first, Do: d.create},
		{Headline: "Scaled to 5: the provider makes two more", NewProcesses: grown - first, Do: d.grow},
		{Headline: "A new version: the provider exchanges its machines, at most one down at a time", NewProcesses: grown, Do: d.roll},
		{Headline: "The process of one machine is killed; the provider puts another one in its place", NewProcesses: 1, Do: d.kill},
		{Headline: "The supervisor itself is killed; machines go on, and another one takes them over", Do: d.killSupervisor},
		{Headline: "The provider takes a machine out, once it is drained", NewProcesses: 1, Do: d.takeOut},
		{Headline: "Scaled to 2: three are chosen, drained, and removed by name", Do: d.shrink},
		{Headline: "The pool is deleted", Do: d.remove},
	}
}

func (d *poolDemo) create(ctx context.Context) error {
	if err := d.deploy(ctx, first); err != nil {
		return err
	}
	if err := d.settled(ctx, first, "v1"); err != nil {
		return err
	}
	d.workload.Scale(taskCount)
	return d.tasksServe(ctx)
}

func (d *poolDemo) grow(ctx context.Context) error {
	if err := d.edit(ctx, size(grown)); err != nil {
		return err
	}
	return d.settled(ctx, grown, "v1")
}

// size returns a change of the pool's size.
func size(n int32) func(*machinepool.Spec) {
	return func(s *machinepool.Spec) { s.Replicas = &n }
}

// roll changes the template, waits until the provider has replaced all agents (an agent is the process of a
// machine), and checks the counts taken meanwhile.
func (d *poolDemo) roll(ctx context.Context) error {
	d.counter.Begin()
	if err := d.edit(ctx, func(s *machinepool.Spec) { s.Template.Class.Name = "v2" }); err != nil {
		return err
	}
	if err := d.settled(ctx, grown, "v2"); err != nil {
		return err
	}
	n, err := d.CheckCounts(ctx, d.counter, grown-1)
	if err == nil && n.MaxActive > grown+1 {
		err = fmt.Errorf("%d agents were running at a time, %d are allowed", n.MaxActive, grown+1)
	}
	if err != nil {
		return err
	}
	d.Say("agents counted %d times: never fewer than %d serving, never more than %d running", n.Number, n.MinServing, n.MaxActive)
	return d.tasksServe(ctx)
}

// awaitEnd waits until a process has ended.
func (d *poolDemo) awaitEnd(ctx context.Context, e roster.Entry) error {
	return d.Await(ctx, func() string {
		if now, err := roster.Read(e.Path); err != nil || now.Alive {
			return fmt.Sprintf("the end of process %d, %s (%v)", e.PID, e.Name, err)
		}
		return ""
	})
}

// killProcess kills a process (SIGKILL), and waits until it has ended.
func (d *poolDemo) killProcess(ctx context.Context, victim roster.Entry) error {
	// An earlier, interrupted run may have killed it already.
	if err := victim.Signal(syscall.SIGKILL); err != nil && victim.Alive {
		return err
	}
	return d.awaitEnd(ctx, victim)
}

func (d *poolDemo) kill(ctx context.Context) error {
	victim, err := d.Choose(d.agents.Running())
	if err != nil {
		return err
	}
	if err := d.killProcess(ctx, victim); err != nil {
		return err
	}
	d.Say("killed process %d of machine %s, and its tasks with it", victim.PID, victim.Name)
	if err := d.settled(ctx, grown, "v2"); err != nil {
		return err
	}
	return d.tasksServe(ctx)
}

// killSupervisor kills the supervisor. The provider reports that it is gone. Revive, which stands for
// the provider's operator, starts another one.
func (d *poolDemo) killSupervisor(ctx context.Context) error {
	before, err := d.agents.Running()
	if err != nil {
		return err
	}
	victim, err := d.Choose(d.supervisors.Running())
	if err != nil {
		return err
	}
	if err := d.killProcess(ctx, victim); err != nil {
		return err
	}
	d.Say("killed the supervisor, process %d", victim.PID)
	err = d.Await(ctx, func() string {
		running, err := d.supervisors.Running()
		// An earlier, interrupted run may have started another supervisor already.
		if pool := d.pool(); err != nil || pool == nil || pool.Status.Phase != machinepool.PhaseFailed && len(running) == 0 {
			return "the provider's report that there is no supervisor"
		}
		return ""
	})
	if err != nil {
		return err
	}
	if err := d.provider.Revive(ctx); err != nil {
		return err
	}
	if err := d.settled(ctx, grown, "v2"); err != nil {
		return err
	}
	for _, e := range before {
		if now, err := roster.Read(e.Path); err != nil || !now.Alive {
			return fmt.Errorf("process %d of machine %s was lost with the supervisor (%w)", e.PID, e.Name, err)
		}
	}
	d.Say("another supervisor has the same %d agents", len(before))
	return nil
}

// takeOut makes the provider remove a machine once it is drained, as for a repair of its hardware.
func (d *poolDemo) takeOut(ctx context.Context) error {
	victim, err := d.Choose(d.agents.Running())
	if err != nil {
		return err
	}
	return d.losesNoTask(ctx, func() error {
		if err := d.provider.RequestDrain(ctx, procdriver.ProviderID(clusterName, victim.Name, victim.Instance)); err != nil {
			return err
		}
		d.Say("the provider wants to take machine %s out: it asks for its drain", victim.Name)
		return errors.Join(d.awaitEnd(ctx, victim), d.settled(ctx, grown, "v2"))
	})
}

func (d *poolDemo) shrink(ctx context.Context) error {
	return d.losesNoTask(ctx, func() error {
		if err := d.edit(ctx, size(last)); err != nil {
			return err
		}
		return d.settled(ctx, last, "v2")
	})
}

// losesNoTask calls the function do, and checks that each task that ended meanwhile was told to end. So
// no machine ended before its tasks did.
func (d *poolDemo) losesNoTask(ctx context.Context, do func() error) error {
	before, err := d.tasks.Running()
	if err != nil {
		return err
	}
	if err := errors.Join(do(), d.tasksServe(ctx)); err != nil {
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
	d.Say("%d of %d tasks were told to end and serve elsewhere; none was lost", moved, len(before))
	return nil
}

// remove ends the tasks, and then deletes the pool: the nodes of a deleted pool are not drained.
func (d *poolDemo) remove(ctx context.Context) error {
	d.workload.Scale(0)
	err := d.Await(ctx, func() string {
		if left := d.workload.Left(); left > 0 {
			return fmt.Sprintf("the end of %d tasks", left)
		}
		return ""
	})
	if err != nil {
		return err
	}
	if err := d.Store.Pools.Delete(ctx, poolKey, ""); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err // not found: an earlier, interrupted run may have deleted it already
	}
	return d.Await(ctx, d.leftover)
}

// leftover returns "" if all of the deleted pool is gone, or what is left, for Await.
func (d *poolDemo) leftover() string {
	nodes, err := d.Nodes.List(context.Background(), store.Query{})
	switch {
	case d.pool() != nil:
		return "the pool is left"
	case d.record() != nil:
		return "the group is left"
	case err != nil || len(nodes) > 0:
		return fmt.Sprintf("%d nodes are left (%v)", len(nodes), err)
	}
	return ""
}

// pool returns the stored pool, or nil.
func (d *poolDemo) pool() *machinepool.Pool {
	pool, err := d.Store.Pools.Get(context.Background(), poolKey)
	if err != nil {
		return nil
	}
	return pool
}

// record returns the provider's record of the group, or nil.
func (d *poolDemo) record() *group.Group {
	g, err := group.At(supervisor.Groups(d.In(groupsDir), clusterName)).Read(groupdriver.Name(poolKey))
	if err != nil {
		return nil
	}
	return g
}

// settled waits until the pool is Running with n machines of one version. There must be as many
// processes and nodes, and no others.
func (d *poolDemo) settled(ctx context.Context, n int, version string) error {
	return d.Await(ctx, func() string {
		pool, record := d.pool(), d.record()
		if pool == nil || record == nil {
			return "the pool and its group"
		}
		s := &pool.Status
		if s.Phase != machinepool.PhaseRunning || int(s.Ready) != n || int(s.Replicas) != n || s.Applied.Template.Class.Name != version {
			return fmt.Sprintf("%d of %d nodes, made from %q; the pool is %s", s.Ready, n, s.Applied.Template.Class.Name, s.Phase)
		}
		if !d.narrator.hasPrinted(s.Phase) {
			return "the report that the pool is " + string(s.Phase)
		}
		running, err := d.agents.Running()
		if err != nil || len(running) != n {
			return fmt.Sprintf("%d processes of %d (%v)", len(running), n, err)
		}
		for _, e := range running {
			if missing := unmatched(e, pool, record, version); missing != "" {
				return missing
			}
		}
		nodes, err := d.Nodes.List(ctx, store.Query{})
		if err != nil || len(nodes) != n {
			return fmt.Sprintf("%d nodes of %d (%v)", len(nodes), n, err)
		}
		return ""
	})
}

// unmatched returns "" if the pool and the provider know a process as an active machine of a version, or
// what is missing, for Await.
func unmatched(e roster.Entry, pool *machinepool.Pool, record *group.Group, version string) string {
	id := procdriver.ProviderID(clusterName, e.Name, e.Instance)
	if !slices.Contains(pool.Spec.ProviderIDs, id) {
		return "machine " + e.Name + " in the pool"
	}
	i := slices.IndexFunc(record.Members, func(m group.Member) bool { return m.ProviderID == id })
	if i < 0 || record.Members[i].Spec.Version != version || record.Members[i].Terminating {
		return fmt.Sprintf("machine %s of %s in the group, not terminating", e.Name, version)
	}
	return ""
}

// tasksServe waits until all tasks serve: the cluster says so, and as many processes run.
func (d *poolDemo) tasksServe(ctx context.Context) error {
	return d.Await(ctx, func() string {
		running, err := d.tasks.Running()
		if known := d.workload.Serving(); err != nil || known != taskCount || len(running) != taskCount {
			return fmt.Sprintf("%d of %d tasks serve, %d processes run (%v)", known, taskCount, len(running), err)
		}
		return ""
	})
}
