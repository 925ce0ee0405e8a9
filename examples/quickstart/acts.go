package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/examples/quickstart/home"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/procid"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/store"
)

var acts = []stage.Act[*play]{
	{Headline: "A deployment of 6 machines, and 13 tasks on them", Creates: replicas, Do: (*play).create},
	{Headline: "A new version is rolled out, with at most 2 machines more and never one less; tasks move within their budget", Creates: replicas, Do: (*play).roll},
	{Headline: "The process of one machine is killed; two processes run that no manager knows of", Creates: 1, Do: (*play).kill},
	{Headline: "The cluster does not answer for some seconds", Creates: 0, Do: (*play).outage},
	{Headline: "The manager is stopped in the middle of a rollout, and another one takes over", Creates: replicas, Do: (*play).restart},
	{Headline: "Scaled to 3", Creates: 0, Do: (*play).scale},
	{Headline: "The deployment is deleted", Creates: 0, Do: (*play).remove},
}

func (p *play) create(ctx context.Context) error {
	strategy := deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: surge}} // and none unavailable
	if err := p.deploy(ctx, p.token, strategy); err != nil {
		return err
	}
	if err := p.settled(ctx, replicas, "v1"); err != nil {
		return err
	}
	return p.startTasks(ctx)
}

// roll changes the template, and counts processes meanwhile.
func (p *play) roll(ctx context.Context) error {
	if err := p.noteData(); err != nil {
		return err
	}
	p.beginCounts()
	if err := p.edit(ctx, useClass("v2")); err != nil {
		return err
	}
	if err := p.settled(ctx, replicas, "v2"); err != nil {
		return err
	}
	if err := p.checkRollout(ctx); err != nil {
		return err
	}
	return p.checkMoved(*p.Done.Chosen, p.Done.From)
}

// beginCounts forgets what was counted so far.
func (p *play) beginCounts() {
	p.census.Begin()
	p.tasks.Begin()
}

// counted waits for a count of each kind.
func (p *play) counted(ctx context.Context) error {
	return errors.Join(p.Await(ctx, p.census.Missing), p.Await(ctx, p.tasks.Missing))
}

// checkRollout checks a rollout against its bounds, those of machines and of tasks.
func (p *play) checkRollout(ctx context.Context) error {
	if err := p.tasksServe(ctx); err != nil {
		return err
	}
	if err := p.counted(ctx); err != nil {
		return err
	}
	if err := p.checkCensus(replicas, replicas+surge); err != nil {
		return err
	}
	return p.checkTasks()
}

func useClass(name string) func(*deployment.Spec) {
	return func(d *deployment.Spec) { d.Template.Spec.Class.Name = name }
}

// noteData records which process has the volume, and where, unless an earlier program has.
func (p *play) noteData() error {
	if p.Done.Chosen != nil {
		return nil
	}
	data, _ := p.data()
	from := p.workload.Where(dataTask)
	return p.Note(func(done *home.Progress) { done.Chosen, done.From = &data, from })
}

// kill ends a process in a way that no program can prepare for. The loss of a machine makes the
// manager look for orphan processes.
func (p *play) kill(ctx context.Context) (err error) {
	strangers, err := p.bringStrangers(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, strangers.close()) }()
	if p.Done.Chosen != nil {
		// With an earlier program a machine may be lost already, and no other one will be. A
		// manager that starts looks too.
		p.StopManager()
		if err := p.startManager(); err != nil {
			return err
		}
	}
	victim, err := p.Choose(p.withoutVolume)
	if err != nil {
		return err
	}
	start := time.Now()
	lost := p.workload.Tasks(victim.Machine)
	if err := victim.ID.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, procid.ErrGone) { // an earlier program's
		return err
	}
	p.Say("killed process %d of machine %s, and with it %d tasks", victim.ID.PID, victim.Machine, len(lost))
	noticed := func() string {
		if m := p.machine(victim.Machine); m != nil && m.Status.Phase == machine.PhaseRunning {
			return "machine " + victim.Machine + " still counts as Running"
		}
		return ""
	}
	if err := p.Await(ctx, noticed); err != nil {
		return err
	}
	after := time.Since(start)
	if err := p.settled(ctx, replicas, "v2"); err != nil {
		return err
	}
	if err := p.tasksServe(ctx); err != nil {
		return err
	}
	p.Say("noticed %.1f s after the kill, replaced after %.1f s", after.Seconds(), time.Since(start).Seconds())
	return p.checkStrangers(ctx, strangers)
}

// withoutVolume returns the processes of which one may be killed: a volume of a lost machine
// comes back only when the loss is certain.
func (p *play) withoutVolume() ([]ledger.Life, error) {
	alive, err := p.processes("v2")
	return slices.DeleteFunc(alive, func(l ledger.Life) bool { return l.Machine == p.workload.Where(dataTask) }), err
}

// restart loses a manager with all it knew. The machines don't notice.
func (p *play) restart(ctx context.Context) error {
	p.beginCounts()
	if err := p.edit(ctx, useClass("v3")); err != nil {
		return err
	}
	halfWay := func() string {
		if made, err := p.processes("v3"); err != nil || len(made) < replicas/2 {
			return fmt.Sprintf("half of the processes of v3: there are %d (%v)", len(made), err)
		}
		return ""
	}
	if err := p.Await(ctx, halfWay); err != nil {
		return err
	}
	p.StopManager()
	kept, err := p.processes("v3")
	if err != nil {
		return err
	}
	p.Say("the manager is gone; of %d processes of v3 it knew %d to run", len(kept), p.running("v3"))
	if err := p.Await(ctx, p.unjoined); err != nil {
		return err
	}
	p.Say("without a manager, every process has booted and joined the cluster")
	if err := p.startManager(); err != nil {
		return err
	}
	p.Say("another manager begins; all it has is the store")
	if err := p.settled(ctx, replicas, "v3"); err != nil {
		return err
	}
	for _, life := range kept {
		if !life.ID.Alive() {
			return fmt.Errorf("process %d of machine %s was lost between the managers", life.ID.PID, life.Machine)
		}
	}
	p.Say("of %d processes of v3, %d are the first manager's", replicas, len(kept))
	return p.checkRollout(ctx)
}

// processes returns those that run and belong to a machine of a class.
func (p *play) processes(class string) ([]ledger.Life, error) {
	alive, err := p.Book.Alive()
	var of []ledger.Life
	for _, life := range alive {
		m := p.machine(life.Machine)
		if m != nil && m.Spec.Class.Name == class {
			of = append(of, life)
		}
	}
	return of, err
}

func (p *play) scale(ctx context.Context) error {
	const fewer = 3
	p.beginCounts()
	if err := p.edit(ctx, func(d *deployment.Spec) { d.Replicas = fewer }); err != nil {
		return err
	}
	if err := p.settled(ctx, fewer, "v3"); err != nil {
		return err
	}
	if err := p.tasksServe(ctx); err != nil {
		return err
	}
	if err := p.counted(ctx); err != nil {
		return err
	}
	return p.checkTasks()
}

// remove ends the tasks first, because a budget would hold the last machines permanently: their
// tasks have no other node.
func (p *play) remove(ctx context.Context) error {
	if err := p.stopTasks(ctx); err != nil {
		return err
	}
	if err := p.Store.Deployments.Delete(ctx, deploymentKey, ""); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err // not found: an earlier program has got that far
	}
	return p.Await(ctx, p.left)
}
