package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/machine"
)

// act is one part of the play. It returns once what it promises has come true.
type act struct {
	headline string
	creates  int // how many processes it needs, and so how many there must be
	do       func(*play, context.Context) error
}

var acts = []act{
	{"A deployment of 6 machines", replicas, (*play).create},
	{"A new version is rolled out, with at most 2 machines more and never one less", replicas, (*play).roll},
	{"The process of one machine is killed", 1, (*play).kill},
	{"The manager is stopped in the middle of a rollout, and another one takes over", replicas, (*play).restart},
	{"Scaled to 3", 0, (*play).scale},
	{"The deployment is deleted", 0, (*play).remove},
}

// patience is how long an act waits for anything.
const patience = 40 * time.Second

func (p *play) create(ctx context.Context) error {
	strategy := deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: surge}} // and none unavailable
	if err := p.deploy(ctx, p.token, strategy); err != nil {
		return err
	}
	return p.settled(ctx, replicas, "v1")
}

// roll changes the template, and counts processes all the while.
func (p *play) roll(ctx context.Context) error {
	p.census.begin()
	if err := p.edit(ctx, useClass("v2")); err != nil {
		return err
	}
	if err := p.settled(ctx, replicas, "v2"); err != nil {
		return err
	}
	return p.checkCensus(replicas, replicas+surge)
}

func useClass(name string) func(*deployment.Spec) {
	return func(d *deployment.Spec) { d.Template.Spec.Class.Name = name }
}

// kill ends a process the way no program can prepare for.
func (p *play) kill(ctx context.Context) error {
	alive, err := p.processes("v2")
	if err != nil {
		return err
	}
	if len(alive) == 0 {
		return errors.New("there is no process to kill")
	}
	victim, start := alive[0], time.Now()
	if err := victim.ID.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	p.say("killed process %d of machine %s", victim.ID.PID, victim.Machine)
	noticed := func() string {
		if m := p.machine(victim.Machine); m != nil && m.Status.Phase == machine.PhaseRunning {
			return "machine " + victim.Machine + " still counts as Running"
		}
		return ""
	}
	if err := p.await(ctx, noticed); err != nil {
		return err
	}
	after := time.Since(start)
	if err := p.settled(ctx, replicas, "v2"); err != nil {
		return err
	}
	p.say("noticed %.1f s after the kill, replaced after %.1f s", after.Seconds(), time.Since(start).Seconds())
	return nil
}

// restart loses a manager with all it knew. Machines don't notice.
func (p *play) restart(ctx context.Context) error {
	p.census.begin()
	if err := p.edit(ctx, useClass("v3")); err != nil {
		return err
	}
	halfWay := func() string {
		if made, err := p.processes("v3"); err != nil || len(made) < replicas/2 {
			return fmt.Sprintf("half of the processes of v3: there are %d (%v)", len(made), err)
		}
		return ""
	}
	if err := p.await(ctx, halfWay); err != nil {
		return err
	}
	p.stopManager()
	kept, err := p.processes("v3")
	if err != nil {
		return err
	}
	p.say("the manager is gone; of %d processes of v3 it knew %d to run", len(kept), p.running("v3"))
	if err := p.await(ctx, p.unjoined); err != nil {
		return err
	}
	p.say("without a manager, every process has booted and joined the cluster")
	if err := p.startManager(); err != nil {
		return err
	}
	p.say("another manager begins; all it has is the store")
	if err := p.settled(ctx, replicas, "v3"); err != nil {
		return err
	}
	for _, life := range kept {
		if !life.ID.Alive() {
			return fmt.Errorf("process %d of machine %s was lost between the managers", life.ID.PID, life.Machine)
		}
	}
	p.say("of %d processes of v3, %d are the first manager's", replicas, len(kept))
	return p.checkCensus(replicas, replicas+surge)
}

// processes returns those that run and belong to a machine of a class.
func (p *play) processes(class string) ([]ledger.Life, error) {
	alive, err := p.book.Alive()
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
	if err := p.edit(ctx, func(d *deployment.Spec) { d.Replicas = fewer }); err != nil {
		return err
	}
	return p.settled(ctx, fewer, "v3")
}

func (p *play) remove(ctx context.Context) error {
	if err := p.deployments.Delete(ctx, deploymentKey, ""); err != nil {
		return err
	}
	return p.await(ctx, p.left)
}
