package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/examples/quickstart/demo"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// These are names in the demo's directory. The roster of machines has the name of the cluster.
const (
	storeFile  = "fleet.db"
	taskRoster = "tasks"
)

// orphanName is the name of the process that this demo starts without a machine. It is not counted.
const orphanName = "stray"

// clock is the clock of objects and the manager. Tests start programs whose clock is behind: to the
// next program, what these leave looks as if time had passed.
var clock = time.Now

// quickstart is the demo of a fleet. It prints what happens, and counts processes without the
// library.
type quickstart struct {
	*fleet
	machineCount, taskCount                                *demo.Counter
	stopManager, stopCluster, stopWorkload, stopEverything func()

	mu      sync.Mutex
	events  map[string]int  // number of events, by reason, and of calls, by method
	orphans map[string]bool // instances that ran without a machine, or were left at the end
}

// run runs the demo in the directory state, or in a temporary one. An error says which promise was
// not kept.
func run(ctx context.Context, out io.Writer, state string) error {
	q, err := newQuickstart(ctx, out, state)
	if err != nil {
		return err
	}
	if err = q.start(); err == nil {
		err = q.Run(ctx, q.steps(), q.created)
	}
	return q.close(ctx, err)
}

func newQuickstart(ctx context.Context, out io.Writer, state string) (*quickstart, error) {
	dir, err := demo.NewDir(state, storeFile, clusterName, taskRoster)
	if err != nil {
		return nil, err
	}
	d, err := demo.New(ctx, out, dir, clock)
	if err != nil {
		return nil, err
	}
	q := &quickstart{events: make(map[string]int), orphans: make(map[string]bool)}
	if q.fleet, err = newFleet(d); err != nil {
		return nil, errors.Join(err, d.Release())
	}
	q.machineCount = demo.NewCounter(q.processes, q.active)
	q.taskCount = demo.NewCounter(q.tasks, func(e roster.Entry) bool { return e.State != roster.Leaving })
	return q, nil
}

// start starts the background work: the cluster and its workload, the counters, and the first manager.
func (q *quickstart) start() error {
	if 0 < q.Done.Step && q.Done.Step < len(q.steps())-1 { // an interrupted run had tasks
		q.workload.Scale(tasks)
	}
	q.stopWorkload = q.Go("the workload", q.workload.Run)
	stopMachines := q.Go("the count of machines", q.machineCount.Run)
	stopTasks := q.Go("the count of tasks", q.taskCount.Run)
	q.stopManager, q.stopCluster = func() {}, q.Go("the cluster", q.cluster.Run)
	q.stopEverything = func() {
		for _, stop := range []func(){q.stopManager, q.stopCluster, q.stopWorkload, stopMachines, stopTasks} {
			stop()
		}
	}
	return q.startManager()
}

// startManager makes a manager and runs it.
func (q *quickstart) startManager() error {
	m, err := q.newManager(manager.Hooks{
		Event: q.event, Transition: q.transition,
		Effect: func(_ manager.Kind, _ object.Key, call string, _ time.Duration, _ error) { q.countEvent(call) },
	})
	if err == nil {
		q.stopManager = q.Go("the manager", m.Run)
	}
	return err
}

// edit changes the deployment, as a user would, and restarts the counts.
func (q *quickstart) edit(ctx context.Context, change func(*deployment.Spec)) error {
	q.beginCounts()
	_, err := store.Edit(ctx, q.Store.Deployments, deploymentKey, func(d *deployment.Deployment) error {
		change(&d.Spec)
		return nil
	})
	return err
}

// beginCounts forgets the counts so far.
func (q *quickstart) beginCounts() {
	q.machineCount.Begin()
	q.taskCount.Begin()
}

// close ends everything, in any state, and prints the numbers. failed is the error of the run. If the
// demo was interrupted and can be continued, close leaves the processes alone.
func (q *quickstart) close(ctx context.Context, failed error) error {
	q.stopEverything()
	if q.Interrupted(ctx) {
		return errors.Join(failed, q.Close(ctx))
	}
	for _, r := range []*roster.Roster{q.processes, q.tasks} {
		killed, err := r.End(context.Background())
		failed = errors.Join(failed, err)
		for _, e := range killed {
			q.orphans[e.Instance] = true // still running although all machines are gone
		}
	}
	if failed == nil {
		failed = q.printTotals()
	}
	return errors.Join(failed, q.Close(ctx))
}

// printTotals prints how many processes there were. All have ended.
func (q *quickstart) printTotals() error {
	n, err := q.created()
	if err != nil {
		return err
	}
	duplicates := q.machineCount.Duplicates() + q.taskCount.Duplicates()
	q.Text(fmt.Sprintf("\nsettled: %d created, %d deleted, %d orphans, %d duplicates", n, n, len(q.orphans), duplicates))
	if len(q.orphans) > 0 || duplicates > 0 {
		return fmt.Errorf("%d orphans and %d duplicates", len(q.orphans), duplicates)
	}
	return nil
}

// created returns how many processes of machines there have been.
func (q *quickstart) created() (n int, err error) {
	all, err := q.processes.Entries()
	for _, e := range all {
		if e.Name != orphanName && e.PID != 0 {
			n++
		}
	}
	return n, err
}

// active reports whether a running process has a machine that is not being deleted. It records a
// process without a machine as an orphan. The machine is read after the process was seen: if the
// machine is not being deleted now, it was not when the process was seen either.
func (q *quickstart) active(e roster.Entry) bool {
	if e.Name == orphanName {
		return false
	}
	m, err := q.machine(e.Name)
	if errors.Is(err, store.ErrNotFound) {
		if now, err := roster.Read(e.Path); err == nil && now.Alive { // still running, without a machine
			q.mu.Lock()
			defer q.mu.Unlock()
			q.orphans[e.Instance] = true
		}
	}
	return err == nil && !m.Deleted()
}

// event is a hook. It prints the events of sets and deployments, and the warnings about machines.
func (q *quickstart) event(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
	q.countEvent(reason)
	if typ == manager.Warning || kind != manager.KindMachine {
		q.Say("%s %s: %s: %s", kind, key.Name, reason, why)
	}
}

// transition is a hook. It prints when a machine changes its phase, and when it is gone.
func (q *quickstart) transition(key object.Key, move machine.Move, why decision.Why) {
	switch {
	case move.Table == machine.PhaseTable().Name && move.From != move.To:
		q.Say("machine %s: %s -> %s: %s", key.Name, cmp.Or(move.From, "new"), move.To, why)
	case move.Table == machine.DeletionTable().Name && move.To == string(machine.StageGone):
		q.Say("machine %s: gone: %s", key.Name, why)
	}
}

// countEvent counts an event, by its reason, or a call of the manager, by its method.
func (q *quickstart) countEvent(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events[name]++
}

// eventCount returns how many events of this reason, or calls of this method, there were.
func (q *quickstart) eventCount(name string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.events[name]
}

// awaitEvents waits for n more events of this reason, or calls of this method.
func (q *quickstart) awaitEvents(ctx context.Context, name string, n int) error {
	until := q.eventCount(name) + n
	return q.Await(ctx, func() string {
		if now := q.eventCount(name); now < until {
			return fmt.Sprintf("%d times %s", until-now, name)
		}
		return ""
	})
}
