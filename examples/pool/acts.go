package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/millwright-go/millwright/examples/pool/group"
	"github.com/millwright-go/millwright/examples/pool/groupdriver"
	"github.com/millwright-go/millwright/examples/pool/supervisor"
	"github.com/millwright-go/millwright/examples/quickstart/home"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/procid"
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

var acts = []stage.Act[*play]{
	{Headline: "A pool of 3 machines, and 6 tasks on them", Creates: first, Do: (*play).create},
	{Headline: "Scaled to 5: the provider makes two more", Creates: grown - first, Do: (*play).grow},
	{Headline: "A new version: the provider exchanges its machines, at most one down at a time", Creates: grown, Do: (*play).roll},
	{Headline: "The process of one machine is killed; the provider puts another one in its place", Creates: 1, Do: (*play).kill},
	{Headline: "The supervisor itself is killed; machines go on, and another one takes them over", Creates: 0, Do: (*play).killSupervisor},
	{Headline: "The provider takes a machine out, once it is drained", Creates: 1, Do: (*play).takeOut},
	{Headline: "Scaled to 2: three are chosen, drained, and removed by name", Creates: 0, Do: (*play).shrink},
	{Headline: "The pool is deleted", Creates: 0, Do: (*play).remove},
}

func (p *play) create(ctx context.Context) error {
	if err := p.deploy(ctx, p.token, first); err != nil {
		return err
	}
	if err := p.settled(ctx, first, "v1"); err != nil {
		return err
	}
	if err := p.Note(func(done *home.Progress) { done.Tasks = true }); err != nil {
		return err
	}
	return errors.Join(p.setTasks(taskCount), p.tasksServe(ctx))
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
	p.census.Begin()
	if err := p.edit(ctx, func(s *machinepool.Spec) { s.Template.Class.Name = "v2" }); err != nil {
		return err
	}
	if err := p.settled(ctx, grown, "v2"); err != nil {
		return err
	}
	if err := p.Await(ctx, p.census.Missing); err != nil {
		return err
	}
	report, err := p.census.check(grown-1, grown+1)
	if err != nil {
		return err
	}
	p.Say("%s", report)
	return p.tasksServe(ctx)
}

// endOf kills a process by its own ID, and waits until it is gone.
func (p *play) endOf(ctx context.Context, victim *ledger.Life) error {
	if err := victim.ID.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, procid.ErrGone) { // an earlier program's
		return err
	}
	return p.Await(ctx, func() string {
		if victim.ID.Alive() {
			return fmt.Sprintf("the end of process %d", victim.ID.PID)
		}
		return ""
	})
}

// kill ends an agent in a way that no program can prepare for.
func (p *play) kill(ctx context.Context) error {
	victim, err := p.Choose(p.Book.Alive)
	if err != nil {
		return err
	}
	lost := len(p.workload.Tasks(victim.Machine))
	if err := p.endOf(ctx, victim); err != nil {
		return err
	}
	p.Say("killed process %d of machine %s, and with it %d tasks", victim.ID.PID, victim.Machine, lost)
	if err := p.settled(ctx, grown, "v2"); err != nil {
		return err
	}
	return p.tasksServe(ctx)
}

// killSupervisor kills the process that would heal the pool. The provider reports that, and its
// operator has to start another one.
func (p *play) killSupervisor(ctx context.Context) error {
	before, err := p.Book.Alive()
	if err != nil {
		return err
	}
	victim, err := p.Choose(p.keepers.Alive)
	if err != nil {
		return err
	}
	if err := p.endOf(ctx, victim); err != nil {
		return err
	}
	p.Say("killed the supervisor, process %d", victim.ID.PID)
	err = p.Await(ctx, func() string {
		if pool, record := p.pool(), p.record(); pool == nil || record == nil ||
			pool.Status.Phase != machinepool.PhaseFailed && !record.Supervisor.Alive() { // or an earlier program got further
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
	for _, life := range before {
		if !life.ID.Alive() {
			return fmt.Errorf("process %d of machine %s was lost with the supervisor", life.ID.PID, life.Machine)
		}
	}
	p.Say("another supervisor, process %d, has the same %d agents", p.record().Supervisor.PID, len(before))
	return nil
}

// takeOut makes the provider ask for a machine, as it does to repair the hardware below it.
func (p *play) takeOut(ctx context.Context) error {
	victim, err := p.Choose(p.Book.Alive)
	if err != nil {
		return err
	}
	return p.drained(ctx, func() error {
		if err := p.provider.Ask(ctx, procdriver.ProviderID(clusterName, victim.Machine, victim.Instance)); err != nil {
			return err
		}
		p.Say("the provider asks for machine %s", victim.Machine)
		err := p.Await(ctx, func() string {
			if victim.ID.Alive() {
				return "the end of machine " + victim.Machine
			}
			return ""
		})
		return errors.Join(err, p.settled(ctx, grown, "v2"))
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
	before, err := p.jobs.Alive()
	if err != nil {
		return err
	}
	if err := errors.Join(do(), p.tasksServe(ctx)); err != nil {
		return err
	}
	lives, err := p.jobs.Lives()
	if err != nil {
		return err
	}
	moved := 0
	for _, was := range before {
		i := slices.IndexFunc(lives, func(l ledger.Life) bool { return l.Instance == was.Instance })
		switch {
		case lives[i].ID.Alive():
		case !lives[i].Leaving:
			return fmt.Errorf("process %d of task %s was lost with its machine", was.ID.PID, was.Machine)
		default:
			moved++
		}
	}
	p.Say("%d of %d tasks were told to end and serve elsewhere now; none was lost", moved, len(before))
	return nil
}

// remove ends the tasks first, because the nodes of a pool that is deleted are not drained.
func (p *play) remove(ctx context.Context) error {
	if err := p.Note(func(done *home.Progress) { done.Tasks = false }); err != nil {
		return err
	}
	if err := p.setTasks(0); err != nil {
		return err
	}
	err := p.Await(ctx, func() string {
		running, err := p.jobs.Survivors()
		if left := p.workload.Left(); err != nil || left > 0 || len(running) > 0 {
			return fmt.Sprintf("the end of %d tasks, %d of them processes (%v)", left, len(running), err)
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
	g, err := group.At(supervisor.Groups(p.groups(), clusterName)).Read(groupdriver.Name(poolKey))
	if err != nil {
		return nil
	}
	return g
}

// settled waits until the pool runs with n machines of one version. They must be exactly the
// processes in the ledger and the nodes in the cluster.
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
		alive, err := p.Book.Alive()
		if err != nil || len(alive) != n {
			return fmt.Sprintf("%d processes of %d (%v)", len(alive), n, err)
		}
		for _, life := range alive {
			if lack := unmatched(life, pool, record, version); lack != "" {
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
func unmatched(life ledger.Life, pool *machinepool.Pool, record *group.Group, version string) string {
	id := procdriver.ProviderID(clusterName, life.Machine, life.Instance)
	if !slices.Contains(pool.Spec.ProviderIDs, id) {
		return "that the pool knows machine " + life.Machine
	}
	i := slices.IndexFunc(record.Members, func(m group.Member) bool { return m.ProviderID == id })
	if i < 0 || record.Members[i].Spec.Version != version || record.Members[i].Going {
		return fmt.Sprintf("that machine %s runs %s and stays", life.Machine, version)
	}
	return ""
}

// tasksServe waits until every task serves, by the cluster and by the processes.
func (p *play) tasksServe(ctx context.Context) error {
	return p.Await(ctx, func() string {
		running, err := p.jobs.Alive()
		serving := 0
		for _, life := range running {
			if life.Serving && !life.Leaving && strings.HasPrefix(life.Machine, app+"-") {
				serving++
			}
		}
		if err != nil || serving != taskCount || len(running) != taskCount || p.workload.Serving(app) != taskCount {
			return fmt.Sprintf("%d of %d tasks serve (%v)", serving, taskCount, err)
		}
		return ""
	})
}
