package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/demo"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/manager"
)

// These are names in the demo's directory. groupsDir has the rosters of supervisors and agents.
const (
	storeFile  = "pool.db"
	groupsDir  = "groups"
	taskRoster = "tasks"
)

// poolDemo is the demo of a pool. It prints what happens, and counts processes without the library and
// the provider.
type poolDemo struct {
	*fleet
	narrator *narrator
	counter  *demo.Counter
	stop     func() // stops the manager, and then the other background work
}

// run runs the demo in the directory state, or in a temporary one. An error says which promise was
// not kept.
func run(ctx context.Context, out io.Writer, state string) error {
	d, err := newPoolDemo(ctx, out, state)
	if err != nil {
		return err
	}
	if err = d.start(ctx); err == nil {
		err = d.Run(ctx, d.steps(), d.created)
	}
	return d.close(ctx, err)
}

func newPoolDemo(ctx context.Context, out io.Writer, state string) (*poolDemo, error) {
	dir, err := demo.NewDir(state, storeFile, groupsDir+"/supervisors", groupsDir+"/agents/"+clusterName, taskRoster)
	if err != nil {
		return nil, err
	}
	base, err := demo.New(ctx, out, dir, time.Now)
	if err != nil {
		return nil, err
	}
	d := &poolDemo{stop: func() {}}
	if d.fleet, err = newFleet(base); err != nil {
		return nil, errors.Join(err, base.Release())
	}
	d.narrator = newNarrator(base, d.Store.Pools)
	d.counter = demo.NewCounter(d.agents, func(roster.Entry) bool { return true })
	return d, nil
}

// start starts the background work.
func (d *poolDemo) start(ctx context.Context) error {
	if 0 < d.Done.Step && d.Done.Step < len(d.steps())-1 { // an interrupted run had tasks
		d.workload.Scale(taskCount)
	}
	m, err := d.newManager(manager.Hooks{Event: d.narrator.event, Transition: d.narrator.transition})
	if err != nil {
		return err
	}
	stops := []func(){
		d.Go("the manager", m.Run),
		d.Go("the cluster", d.cluster.Run),
		d.Go("the workload", d.workload.Run),
		d.Go("the count of agents", d.counter.Run),
		d.Go("the narrator", d.narrator.follow),
		d.Go("the sweep of nodes", func(ctx context.Context) error {
			return roster.Every(ctx, 100*time.Millisecond, d.sweepNodes)
		}),
	}
	d.stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
	return d.provider.Revive(ctx)
}

// close ends everything, in any state, and prints the numbers. failed is the error of the run. If the
// demo was interrupted and can be continued, close leaves the processes alone.
func (d *poolDemo) close(ctx context.Context, failed error) error {
	d.stop()
	if d.Interrupted(ctx) {
		return errors.Join(failed, d.Close(ctx))
	}
	left := 0
	for _, r := range []*roster.Roster{d.supervisors, d.agents, d.tasks} {
		killed, err := r.End(context.Background())
		failed = errors.Join(failed, err)
		left += len(killed)
	}
	if failed == nil {
		failed = d.printTotals(left)
	}
	return errors.Join(failed, d.Close(ctx))
}

// printTotals prints how many processes there were. left is how many were left running in the end.
func (d *poolDemo) printTotals(left int) error {
	n, err := d.created()
	if err != nil {
		return err
	}
	supervisors, err := joined(d.supervisors)
	if err != nil {
		return err
	}
	duplicates := d.counter.Duplicates()
	d.Text(fmt.Sprintf("\nsupervisors: %d created, %d ended", supervisors, supervisors))
	d.Text(fmt.Sprintf("settled: %d created, %d deleted, %d left, %d duplicates", n, n, left, duplicates))
	if left > 0 || duplicates > 0 {
		return fmt.Errorf("%d processes were left, and %d ran twice", left, duplicates)
	}
	return nil
}

// created returns how many agents there have been.
func (d *poolDemo) created() (int, error) { return joined(d.agents) }

// joined returns how many processes of a roster have joined so far.
func joined(r *roster.Roster) (n int, err error) {
	all, err := r.Entries()
	for _, e := range all {
		if e.PID != 0 {
			n++
		}
	}
	return n, err
}
