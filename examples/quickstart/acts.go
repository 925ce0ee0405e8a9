package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/reachability"
	"github.com/millwright-go/millwright/store"
)

func (p *play) acts() []stage.Act {
	return []stage.Act{
		{Headline: "A deployment of 6 machines, and 12 tasks on them", Creates: replicas, Do: p.create},
		{Headline: "A new version is rolled out, with at most 2 machines more and never one less; tasks move within their budget", Creates: replicas, Do: p.roll},
		{Headline: "The process of one machine is killed; a process runs that no manager knows of", Creates: 1, Do: p.kill},
		{Headline: "The cluster does not answer for some seconds", Do: p.outage},
		{Headline: "The manager is stopped in the middle of a rollout, and another one takes over", Creates: replicas, Do: p.restart},
		{Headline: "Scaled to 3", Do: p.scale},
		{Headline: "The deployment is deleted", Do: p.remove},
	}
}

func (p *play) create(ctx context.Context) error {
	if err := p.deploy(ctx, surge); err != nil {
		return err
	}
	if err := p.settled(ctx, replicas, "v1"); err != nil {
		return err
	}
	p.workload.Scale(tasks)
	return p.tasksServe(ctx)
}

// roll changes the template, and counts processes meanwhile.
func (p *play) roll(ctx context.Context) error {
	if err := p.edit(ctx, useClass("v2")); err != nil {
		return err
	}
	return p.kept(ctx, replicas, "v2")
}

func useClass(name string) func(*deployment.Spec) {
	return func(d *deployment.Spec) { d.Template.Spec.Class.Name = name }
}

// kept waits until n machines run a class and all tasks serve. It checks that at least so many
// machines served meanwhile, and as many tasks as their budget says.
func (p *play) kept(ctx context.Context, n int, class string) error {
	if err := p.settled(ctx, n, class); err != nil {
		return err
	}
	if err := p.tasksServe(ctx); err != nil {
		return err
	}
	counts, err := p.Counts(ctx, p.machineCount, n)
	if err == nil && counts.MostStaying > replicas+surge {
		err = fmt.Errorf("%d machines were there at a time, %d are allowed", counts.MostStaying, replicas+surge)
	}
	if err != nil {
		return err
	}
	p.Say("machines counted %d times: never fewer than %d serving, never more than %d, besides those told to end",
		counts.Number, counts.LeastServing, counts.MostStaying)
	const budget = tasks - maxUnavailable
	if counts, err = p.Counts(ctx, p.taskCount, budget); err != nil {
		return err
	}
	p.Say("tasks counted %d times: never fewer than %d of %d serving (budget: %d)", counts.Number, counts.LeastServing, tasks, budget)
	return nil
}

// kill ends a process in a way that no program can prepare for, beside one that is an orphan.
func (p *play) kill(ctx context.Context) error {
	orphan, err := p.bringStray(ctx)
	if err != nil {
		return err
	}
	victim, err := p.Choose(p.running("v2"))
	if err != nil {
		return err
	}
	if err := victim.Signal(syscall.SIGKILL); err != nil && victim.Alive { // not an earlier program's
		return err
	}
	p.Say("killed process %d of machine %s, and its tasks with it", victim.PID, victim.Name)
	if err := p.Await(ctx, func() string { return survives(victim) }); err != nil {
		return err
	}
	if err := errors.Join(p.settled(ctx, replicas, "v2"), p.tasksServe(ctx)); err != nil {
		return err
	}
	if err := p.Await(ctx, func() string { return survives(orphan) }); err != nil {
		return err
	}
	p.Say("process %d, which had no machine, was ended", orphan.PID)
	return nil
}

// bringStray starts a process that no manager knows, through the driver, unless an earlier program
// has got further. It joins no cluster. The loss of a machine makes the manager look for orphans.
func (p *play) bringStray(ctx context.Context) (found roster.Entry, err error) {
	if p.Done.Chosen == "" {
		_, err = p.driver.CreateMachine(ctx, &driver.CreateMachineRequest{
			Machine: &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: stray}}},
			Class:   newClass("v1"),
		})
	}
	if err != nil {
		return found, err
	}
	all, err := p.processes.Entries()
	for _, e := range all {
		if e.Name == stray && (e.Alive || found.PID == 0) {
			found = e
		}
	}
	return found, err
}

// survives names a process that still runs.
func survives(e roster.Entry) string {
	if now, err := roster.Read(e.Path); err != nil || now.Alive {
		return fmt.Sprintf("the end of process %d, %s (%v)", e.PID, e.Name, err)
	}
	return ""
}

// outage disconnects the cluster, and connects it again. Meanwhile there are no heartbeats, which
// says nothing about the machines.
func (p *play) outage(ctx context.Context) error {
	before, err := p.running("v2")
	if err != nil {
		return err
	}
	p.beginCounts()
	p.stopCluster()
	if err := p.hears(ctx, reachability.ReasonUnreachable.String(), 1); err != nil {
		return err
	}
	p.Say("the cluster does not answer: nothing is created or given up")
	if err := p.hears(ctx, "CheckTarget", 2); err != nil { // the manager asks every second
		return err
	}
	p.stopCluster = p.Go("the cluster", p.cluster.Run)
	if err := p.hears(ctx, reachability.ReasonReachable.String(), 1); err != nil {
		return err
	}
	if err := p.kept(ctx, replicas, "v2"); err != nil {
		return err
	}
	return p.sameStill(before, "the cluster is back")
}

// sameStill checks that processes still run.
func (p *play) sameStill(before []roster.Entry, since string) error {
	for _, e := range before {
		if survives(e) == "" {
			return fmt.Errorf("process %d of machine %s was lost until %s", e.PID, e.Name, since)
		}
	}
	p.Say("%s, with the same %d processes", since, len(before))
	return nil
}

// restart loses a manager with all it knew. The machines don't notice.
func (p *play) restart(ctx context.Context) error {
	if err := p.edit(ctx, useClass("v3")); err != nil {
		return err
	}
	var half []roster.Entry
	if err := p.Await(ctx, func() (lack string) {
		var err error
		if half, err = p.running("v3"); err != nil || len(half) < replicas/2 {
			return fmt.Sprintf("half of the processes of v3: there are %d (%v)", len(half), err)
		}
		return ""
	}); err != nil {
		return err
	}
	p.stopManager()
	p.Say("the manager is gone, with %d processes of v3; all the next one has is the store", len(half))
	if err := p.startManager(); err != nil {
		return err
	}
	if err := p.kept(ctx, replicas, "v3"); err != nil {
		return err
	}
	return p.sameStill(half, "another manager has completed the rollout")
}

func (p *play) scale(ctx context.Context) error {
	const fewer = 3
	if err := p.edit(ctx, func(d *deployment.Spec) { d.Replicas = fewer }); err != nil {
		return err
	}
	return p.kept(ctx, fewer, "v3")
}

// remove ends the tasks first, because a budget would hold the last machines permanently: their
// tasks have no other node.
func (p *play) remove(ctx context.Context) error {
	p.workload.Scale(0)
	if err := p.Await(ctx, func() string {
		if left := p.workload.Left(); left > 0 {
			return fmt.Sprintf("the end of %d tasks", left)
		}
		return ""
	}); err != nil {
		return err
	}
	if err := p.Store.Deployments.Delete(ctx, deploymentKey, ""); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err // not found: an earlier program has got that far
	}
	if err := store.AwaitGone(ctx, p.Store.Deployments, deploymentKey); err != nil {
		return err
	}
	nodes, err := p.Nodes.List(ctx, store.Query{})
	if err == nil && len(nodes) > 0 {
		err = fmt.Errorf("%d nodes are left", len(nodes))
	}
	return err
}

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
		machines, err1 := p.Store.Machines.List(ctx, store.Query{})
		nodes, err2 := p.Nodes.List(ctx, store.Query{})
		running, err3 := p.running(class)
		if err := errors.Join(err1, err2, err3); err != nil || len(machines) != n || len(nodes) != n || len(running) != n {
			return fmt.Sprintf("%d machines, nodes and processes of %s: there are %d, %d and %d (%v)", n, class, len(machines), len(nodes), len(running), err)
		}
		return ""
	})
}

// running returns the processes that serve and belong to a machine of a class.
func (p *play) running(class string) ([]roster.Entry, error) {
	alive, err := p.processes.Running()
	var of []roster.Entry
	for _, e := range alive {
		if m, err := p.machine(e.Name); err == nil && m.Spec.Class.Name == class && e.State == roster.Serving {
			of = append(of, e)
		}
	}
	return of, err
}

func (p *play) machine(name string) (*machine.Machine, error) {
	return p.Store.Machines.Get(context.Background(), object.Key{Namespace: namespace, Name: name})
}

// tasksServe waits until every task serves, by the cluster and by the processes.
func (p *play) tasksServe(ctx context.Context) error {
	return p.Await(ctx, func() string {
		running, err := p.tasks.Running()
		if known := p.workload.Serving(); err != nil || known != tasks || len(running) != tasks {
			return fmt.Sprintf("%d of %d tasks serve, %d processes run (%v)", known, tasks, len(running), err)
		}
		return ""
	})
}
