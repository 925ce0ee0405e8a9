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
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// storeFile is the store of a fleet that lasts. taskRoster is the roster of tasks; that of machines
// has the cluster's name.
const (
	storeFile  = "fleet.db"
	taskRoster = "tasks"
)

// stray is the name of a process that no manager has made. It does not count.
const stray = "stray"

// clock is the clock of objects and the manager. Tests start programs whose clock is behind, so
// that what they leave is as old as if time had passed.
var clock = time.Now

// play is a fleet with an audience: it shows what happens, and counts processes without the
// library.
type play struct {
	*fleet
	machineCount, taskCount                                *stage.Counter
	stopManager, stopCluster, stopWorkload, stopEverything func()

	mu      sync.Mutex
	heard   map[string]int  // how often there was an event of each reason, or a call of each kind
	orphans map[string]bool // instances that ran without a machine, or were left in the end
}

// perform plays all acts, in that directory or a temporary one. An error says which promise was not
// kept.
func perform(ctx context.Context, out io.Writer, state string) error {
	p, err := newPlay(ctx, out, state)
	if err != nil {
		return err
	}
	if err = p.begin(); err == nil {
		err = p.Play(ctx, p.acts(), p.created)
	}
	return p.close(ctx, err)
}

func newPlay(ctx context.Context, out io.Writer, state string) (*play, error) {
	place, err := stage.NewPlace(state, storeFile, clusterName, taskRoster)
	if err != nil {
		return nil, err
	}
	s, err := stage.New(ctx, out, place, clock)
	if err != nil {
		return nil, err
	}
	p := &play{heard: make(map[string]int), orphans: make(map[string]bool)}
	if p.fleet, err = newFleet(s); err != nil {
		return nil, errors.Join(err, s.Release())
	}
	p.machineCount = stage.NewCounter(p.processes, p.stays)
	p.taskCount = stage.NewCounter(p.tasks, func(e roster.Entry) bool { return e.State != roster.Leaving })
	return p, nil
}

// begin starts what goes on all the while: the cluster and its workload, the counts, and at first
// one manager.
func (p *play) begin() error {
	if 0 < p.Done.Act && p.Done.Act < len(p.acts())-1 {
		p.workload.Scale(tasks)
	}
	p.stopWorkload = p.Go("the workload", p.workload.Run)
	stopMachines := p.Go("the count of machines", p.machineCount.Run)
	stopTasks := p.Go("the count of tasks", p.taskCount.Run)
	p.stopManager, p.stopCluster = func() {}, p.Go("the cluster", p.cluster.Run)
	p.stopEverything = func() {
		for _, stop := range []func(){p.stopManager, p.stopCluster, p.stopWorkload, stopMachines, stopTasks} {
			stop()
		}
	}
	return p.startManager()
}

// startManager makes a manager and runs it.
func (p *play) startManager() error {
	m, err := p.newManager(manager.Hooks{
		Event: p.event, Transition: p.transition,
		Effect: func(_ manager.Kind, _ object.Key, call string, _ time.Duration, _ error) { p.hear(call) },
	})
	if err == nil {
		p.stopManager = p.Go("the manager", m.Run)
	}
	return err
}

// edit changes the deployment, as its owner would, and begins the counts.
func (p *play) edit(ctx context.Context, change func(*deployment.Spec)) error {
	p.beginCounts()
	_, err := store.Edit(ctx, p.Store.Deployments, deploymentKey, func(d *deployment.Deployment) error {
		change(&d.Spec)
		return nil
	})
	return err
}

func (p *play) beginCounts() {
	p.machineCount.Begin()
	p.taskCount.Begin()
}

// close ends everything, in any state, and reports what it found. If the play was interrupted and
// can go on, it leaves the processes alone.
func (p *play) close(ctx context.Context, failed error) error {
	p.stopEverything()
	if p.Interrupted(ctx) {
		return errors.Join(failed, p.Close(ctx))
	}
	for _, of := range []*roster.Roster{p.processes, p.tasks} {
		killed, err := of.End(context.Background())
		failed = errors.Join(failed, err)
		for _, e := range killed {
			p.orphans[e.Instance] = true // it survived all machines
		}
	}
	if failed == nil {
		failed = p.settle()
	}
	return errors.Join(failed, p.Close(ctx))
}

// settle reports how many processes there were. All have ended.
func (p *play) settle() error {
	n, err := p.created()
	if err != nil {
		return err
	}
	duplicates := p.machineCount.Duplicates() + p.taskCount.Duplicates()
	p.Text(fmt.Sprintf("\nsettled: %d created, %d deleted, %d orphans, %d duplicates", n, n, len(p.orphans), duplicates))
	if len(p.orphans) > 0 || duplicates > 0 {
		return fmt.Errorf("%d orphans and %d duplicates", len(p.orphans), duplicates)
	}
	return nil
}

// created returns how many processes of machines there have been.
func (p *play) created() (n int, err error) {
	all, err := p.processes.Entries()
	for _, e := range all {
		if e.Name != stray && e.PID != 0 {
			n++
		}
	}
	return n, err
}

// stays reports whether the machine of a process is not to be deleted. A process without a machine
// is an orphan. The machine is read after the process, and that favours the counts: a process that
// runs while its machine is not being deleted was one too many at some moment.
func (p *play) stays(e roster.Entry) bool {
	if e.Name == stray {
		return false
	}
	m, err := p.machine(e.Name)
	if errors.Is(err, store.ErrNotFound) {
		if now, err := roster.Read(e.Path); err == nil && now.Alive { // it outlived its machine's record
			p.mu.Lock()
			defer p.mu.Unlock()
			p.orphans[e.Instance] = true
		}
	}
	return err == nil && !m.Deleted()
}

// event is a hook. It reports what sets and deployments do, and what is wrong with machines.
func (p *play) event(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
	p.hear(reason)
	if typ == manager.Warning || kind != manager.KindMachine {
		p.Say("%s %s: %s: %s", kind, key.Name, reason, why)
	}
}

// transition is a hook. It reports a machine's phases, and its end.
func (p *play) transition(key object.Key, move machine.Move, why decision.Why) {
	switch {
	case move.Table == machine.PhaseTable().Name && move.From != move.To:
		p.Say("machine %s: %s -> %s: %s", key.Name, cmp.Or(move.From, "new"), move.To, why)
	case move.Table == machine.DeletionTable().Name && move.To == string(machine.StageGone):
		p.Say("machine %s: gone: %s", key.Name, why)
	}
}

func (p *play) hear(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard[what]++
}

// hears waits until there were n more events of a reason, or calls of a kind.
func (p *play) hears(ctx context.Context, what string, n int) error {
	times := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.heard[what]
	}
	until := times() + n
	return p.Await(ctx, func() string {
		if now := times(); now < until {
			return fmt.Sprintf("%d times %s", until-now, what)
		}
		return ""
	})
}
