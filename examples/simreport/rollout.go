package main

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/history"
	"github.com/millwright-go/millwright/store"
)

// faults returns the faults of the simulated world.
func faults() sim.Faults {
	return sim.Faults{
		Latency: 2 * time.Second, CacheLag: 5 * time.Second, Repeat: 0.1, LostAnswer: 0.01,
		CallTime: 20 * time.Second, Call: 0.06, LostCall: 0.03, Eventually: 20 * time.Second,
		SlowBoot: 2 * time.Minute, DeadBoot: 0.06, Flap: 0.12, FlapForGood: 0.3,
		Kills: 3, KillWithin: 400, Restart: 2 * time.Minute, Late: 0.5, LateBy: time.Minute,
	}
}

// patience is how long the fleet may take to converge, in virtual time.
const patience = 24 * time.Hour

// simulate creates a fleet, rolls it to another class, and scales it up meanwhile. It returns the
// recorded history, also if the run failed. The history is nil if the run could not begin.
func (opts *options) simulate() (*history.History, error) {
	w, err := sim.New(sim.Options{Seed: opts.seed, Faults: faults(), Manager: manager.Options{Policies: manager.Policies{Safety: safety.DefaultPolicy()}}})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	recorder := w.Record("web")
	err = opts.rollOut(w)
	return recorder.History(), err
}

// rollOut creates the deployment, changes it, and waits until it is complete.
func (opts *options) rollOut(w *sim.World) error {
	if err := w.AddClass("large"); err != nil {
		return err
	}
	if _, err := w.Deployments().Create(context.Background(), opts.fleet()); err != nil {
		return err
	}
	complete := func() bool { return w.Complete("web") }
	steps := []struct {
		after  time.Duration // the previous step
		change func(*deployment.Spec)
	}{
		{5 * time.Minute, func(s *deployment.Spec) { s.Template.Spec.Class.Name = "large" }},
		{12 * time.Minute, func(s *deployment.Spec) { s.Replicas += s.Replicas/4 + 1 }},
	}
	if err := w.Until(complete, patience); err != nil {
		return err
	}
	for _, step := range steps {
		if err := w.Run(step.after); err != nil {
			return err
		}
		if err := edit(w, step.change); err != nil {
			return err
		}
	}
	w.After(90*time.Minute, w.StopFaults) // in case the fleet can't converge while there are faults
	if err := w.Until(complete, patience); err != nil {
		return err
	}
	if err := w.Run(10 * time.Minute); err != nil {
		return err
	}
	w.StopFaults()
	return w.Until(complete, patience)
}

// fleet returns the deployment. A rollout may have 25% more machines, and 10% may be unavailable.
func (opts *options) fleet() *deployment.Deployment {
	labels := map[string]string{"app": "web"}
	d := &deployment.Deployment{Meta: object.Meta{Key: object.Key{Namespace: sim.Namespace, Name: "web"}}}
	d.Spec.Replicas, d.Spec.Selector = int32(opts.machines), object.Selector{Labels: labels} //nolint:gosec // checked to be small
	d.Spec.Strategy = deployment.Rolling(rollout.IntOrPercent{Value: 25, Percent: true}, rollout.IntOrPercent{Value: 10, Percent: true})
	d.Spec.Template = machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}}
	return d
}

// edit changes the deployment, as a user would.
func edit(w *sim.World, change func(*deployment.Spec)) error {
	web := object.Key{Namespace: sim.Namespace, Name: "web"}
	_, err := store.Edit(context.Background(), w.Deployments(), web, func(d *deployment.Deployment) error {
		change(&d.Spec)
		return nil
	})
	return err
}
