package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/examples/quickstart/demo"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/reachability"
	"github.com/millwright-go/millwright/store"
)

// steps returns the steps of the demo.
func (q *quickstart) steps() []demo.Step {
	return []demo.Step{
		{Headline: "A deployment of 6 machines, and 12 tasks on them", NewProcesses: replicas, Do: q.create},
		{Headline: "A new version is rolled out, with at most 2 machines more and never one less; tasks move within their budget", NewProcesses: replicas, Do: q.roll},
		{Headline: "The process of one machine is killed; a process runs that no manager knows of", NewProcesses: 1, Do: q.kill},
		{Headline: "The cluster does not answer for some seconds", Do: q.outage},
		{Headline: "The manager is stopped in the middle of a rollout, and another one takes over", NewProcesses: replicas, Do: q.restart},
		{Headline: "Scaled to 3", Do: q.scale},
		{Headline: "The deployment is deleted", Do: q.remove},
	}
}

func (q *quickstart) create(ctx context.Context) error {
	if err := q.deploy(ctx, surge); err != nil {
		return err
	}
	if err := q.settled(ctx, replicas, "v1"); err != nil {
		return err
	}
	q.workload.Scale(tasks)
	return q.tasksServe(ctx)
}

// roll changes the template, waits for the rollout, and checks the counts taken meanwhile.
func (q *quickstart) roll(ctx context.Context) error {
	if err := q.edit(ctx, useClass("v2")); err != nil {
		return err
	}
	return q.settledWithinBounds(ctx, replicas, "v2")
}

// useClass returns a change of the template's class.
func useClass(name string) func(*deployment.Spec) {
	return func(d *deployment.Spec) { d.Template.Spec.Class.Name = name }
}

// settledWithinBounds waits until n machines run a class and all tasks serve. It checks that since
// beginCounts never fewer than n machines served, never more than replicas+surge were active, and
// never fewer tasks served than their budget permits.
func (q *quickstart) settledWithinBounds(ctx context.Context, n int, class string) error {
	if err := q.settled(ctx, n, class); err != nil {
		return err
	}
	if err := q.tasksServe(ctx); err != nil {
		return err
	}
	counts, err := q.CheckCounts(ctx, q.machineCount, n)
	if err == nil && counts.MaxActive > replicas+surge {
		err = fmt.Errorf("%d machines were there at a time, %d are allowed", counts.MaxActive, replicas+surge)
	}
	if err != nil {
		return err
	}
	q.Say("machines counted %d times: never fewer than %d serving, never more than %d, besides those told to end",
		counts.Number, counts.MinServing, counts.MaxActive)
	const budget = tasks - maxUnavailable
	if counts, err = q.CheckCounts(ctx, q.taskCount, budget); err != nil {
		return err
	}
	q.Say("tasks counted %d times: never fewer than %d of %d serving (budget: %d)", counts.Number, counts.MinServing, tasks, budget)
	return nil
}

// kill kills the process of one machine, and waits until the manager has replaced the machine. It
// also starts a process without a machine, and waits until the manager has ended it as an orphan.
func (q *quickstart) kill(ctx context.Context) error {
	orphan, err := q.startOrphan(ctx)
	if err != nil {
		return err
	}
	victim, err := q.Choose(q.running("v2"))
	if err != nil {
		return err
	}
	// If an interrupted run has killed the process, there is nothing to signal.
	if err := victim.Signal(syscall.SIGKILL); err != nil && victim.Alive {
		return err
	}
	q.Say("killed process %d of machine %s, and its tasks with it", victim.PID, victim.Name)
	if err := q.Await(ctx, func() string { return survives(victim) }); err != nil {
		return err
	}
	if err := errors.Join(q.settled(ctx, replicas, "v2"), q.tasksServe(ctx)); err != nil {
		return err
	}
	if err := q.Await(ctx, func() string { return survives(orphan) }); err != nil {
		return err
	}
	q.Say("process %d, which had no machine, was ended", orphan.PID)
	return nil
}

// startOrphan starts a process without a machine, through the driver, unless an interrupted run that
// this one continues has chosen its victim already. The process joins no cluster. The manager looks
// for orphans after the loss of a machine.
func (q *quickstart) startOrphan(ctx context.Context) (found roster.Entry, err error) {
	if q.Done.Chosen == "" {
		_, err = q.driver.CreateMachine(ctx, &driver.CreateMachineRequest{
			Machine: &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: orphanName}}},
			Class:   newClass("v1"),
		})
	}
	if err != nil {
		return found, err
	}
	all, err := q.processes.Entries()
	for _, e := range all {
		if e.Name == orphanName && (e.Alive || found.PID == 0) {
			found = e
		}
	}
	return found, err
}

// survives returns "" if a process has ended, or a text for Await that says what is awaited.
func survives(e roster.Entry) string {
	if now, err := roster.Read(e.Path); err != nil || now.Alive {
		return fmt.Sprintf("the end of process %d, %s (%v)", e.PID, e.Name, err)
	}
	return ""
}

// outage disconnects the cluster, and connects it again. Meanwhile the manager sees no heartbeats. It
// must not conclude that the machines are broken.
func (q *quickstart) outage(ctx context.Context) error {
	before, err := q.running("v2")
	if err != nil {
		return err
	}
	q.beginCounts()
	q.stopCluster()
	if err := q.awaitEvents(ctx, reachability.ReasonUnreachable.String(), 1); err != nil {
		return err
	}
	q.Say("the cluster does not answer: nothing is created or given up")
	// The manager checks every second whether the cluster answers.
	if err := q.awaitEvents(ctx, "CheckTarget", 2); err != nil {
		return err
	}
	q.stopCluster = q.Go("the cluster", q.cluster.Run)
	if err := q.awaitEvents(ctx, reachability.ReasonReachable.String(), 1); err != nil {
		return err
	}
	if err := q.settledWithinBounds(ctx, replicas, "v2"); err != nil {
		return err
	}
	return q.checkStillRunning(before, "the cluster is back")
}

// checkStillRunning checks that these processes still run after an event, and prints that.
func (q *quickstart) checkStillRunning(before []roster.Entry, event string) error {
	for _, e := range before {
		if survives(e) == "" {
			return fmt.Errorf("%s, but process %d of machine %s was lost", event, e.PID, e.Name)
		}
	}
	q.Say("%s, with the same %d processes", event, len(before))
	return nil
}

// restart stops the manager in the middle of a rollout, and starts a new one, which knows only what
// is in the store. The processes run on.
func (q *quickstart) restart(ctx context.Context) error {
	if err := q.edit(ctx, useClass("v3")); err != nil {
		return err
	}
	var half []roster.Entry
	if err := q.Await(ctx, func() (lack string) {
		var err error
		if half, err = q.running("v3"); err != nil || len(half) < replicas/2 {
			return fmt.Sprintf("half of the processes of v3: there are %d (%v)", len(half), err)
		}
		return ""
	}); err != nil {
		return err
	}
	q.stopManager()
	q.Say("the manager is gone, with %d processes of v3; all the next one has is the store", len(half))
	if err := q.startManager(); err != nil {
		return err
	}
	if err := q.settledWithinBounds(ctx, replicas, "v3"); err != nil {
		return err
	}
	return q.checkStillRunning(half, "another manager has completed the rollout")
}

func (q *quickstart) scale(ctx context.Context) error {
	const fewer = 3
	if err := q.edit(ctx, func(d *deployment.Spec) { d.Replicas = fewer }); err != nil {
		return err
	}
	return q.settledWithinBounds(ctx, fewer, "v3")
}

// remove ends the tasks, and then deletes the deployment. While there were tasks, their budget would
// block the drain of the last machines: no other node could take the tasks.
func (q *quickstart) remove(ctx context.Context) error {
	q.workload.Scale(0)
	if err := q.Await(ctx, func() string {
		if left := q.workload.Left(); left > 0 {
			return fmt.Sprintf("the end of %d tasks", left)
		}
		return ""
	}); err != nil {
		return err
	}
	if err := q.Store.Deployments.Delete(ctx, deploymentKey, ""); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err // not found: an interrupted run has deleted it
	}
	if err := store.AwaitGone(ctx, q.Store.Deployments, deploymentKey); err != nil {
		return err
	}
	nodes, err := q.Nodes.List(ctx, store.Query{})
	if err == nil && len(nodes) > 0 {
		err = fmt.Errorf("%d nodes are left", len(nodes))
	}
	return err
}

// settled waits until the deployment is complete: n machines run, all of the same class, each with a
// node and a process, and there are no others.
func (q *quickstart) settled(ctx context.Context, n int, class string) error {
	return q.Await(ctx, func() string {
		d, err := q.Store.Deployments.Get(ctx, deploymentKey)
		if err != nil {
			return err.Error()
		}
		if missing := deployment.Missing(d); missing != "" {
			return missing
		}
		machines, err1 := q.Store.Machines.List(ctx, store.Query{})
		nodes, err2 := q.Nodes.List(ctx, store.Query{})
		running, err3 := q.running(class)
		if err := errors.Join(err1, err2, err3); err != nil || len(machines) != n || len(nodes) != n || len(running) != n {
			return fmt.Sprintf("%d machines, nodes and processes of %s: there are %d, %d and %d (%v)", n, class, len(machines), len(nodes), len(running), err)
		}
		return ""
	})
}

// running returns the serving processes of the machines of a class.
func (q *quickstart) running(class string) ([]roster.Entry, error) {
	alive, err := q.processes.Running()
	var found []roster.Entry
	for _, e := range alive {
		if m, err := q.machine(e.Name); err == nil && m.Spec.Class.Name == class && e.State == roster.Serving {
			found = append(found, e)
		}
	}
	return found, err
}

func (q *quickstart) machine(name string) (*machine.Machine, error) {
	return q.Store.Machines.Get(context.Background(), object.Key{Namespace: namespace, Name: name})
}

// tasksServe waits until all tasks serve: the cluster says so, and as many processes run.
func (q *quickstart) tasksServe(ctx context.Context) error {
	return q.Await(ctx, func() string {
		running, err := q.tasks.Running()
		if known := q.workload.Serving(); err != nil || known != tasks || len(running) != tasks {
			return fmt.Sprintf("%d of %d tasks serve, %d processes run (%v)", known, tasks, len(running), err)
		}
		return ""
	})
}
