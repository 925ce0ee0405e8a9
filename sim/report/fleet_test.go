package report_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/preview"
)

var startTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// plan is a rollout to be previewed, from so many machines to replicas.
type plan struct {
	replicas, from     int32 // if from is 0, there is no set yet
	surge, unavailable string
	scaleOnly          bool
	minReady           time.Duration
	model              preview.Model
	change             func(*deployment.Deployment, []deployment.Children)
}

// timeline previews a plan.
func (p plan) timeline(t require.TestingT) *preview.Timeline {
	d := &deployment.Deployment{}
	d.Namespace, d.Name, d.UID, d.CreatedAt = "fleet", "web", "web", startTime
	d.Spec.Replicas, d.Spec.MinReady = p.from, p.minReady
	d.Spec.Strategy = deployment.Strategy{Kind: deployment.RollingUpdate, MaxSurge: share(t, p.surge), MaxUnavailable: share(t, p.unavailable)}
	d.Spec.Selector.Labels = map[string]string{"app": "web"}
	d.Spec.Template.Labels = map[string]string{"app": "web"}
	d.Spec.Template.Spec.Class.Name = "small"
	var sets []deployment.Children
	if p.from > 0 {
		sets = append(sets, setWithMachines(d))
	}
	d.Spec.Replicas = p.replicas
	if !p.scaleOnly {
		d.Spec.Template.Spec.Class.Name = "large"
	}
	if p.change != nil {
		p.change(d, sets)
	}
	if p.model.Start.IsZero() {
		p.model.Start = startTime.Add(time.Hour)
	}
	line, err := sim.Preview(context.Background(), d, sets, p.model)
	require.NoError(t, err)
	return &line
}

func share(t require.TestingT, text string) rollout.IntOrPercent {
	if text == "" {
		return rollout.IntOrPercent{}
	}
	v, err := rollout.Parse(text)
	require.NoError(t, err)
	return v
}

// setWithMachines returns a set of d that has as many running machines as d wants.
func setWithMachines(d *deployment.Deployment) deployment.Children {
	s := &machineset.Set{Meta: object.Meta{
		Key: object.Key{Namespace: d.Namespace, Name: "web-old"}, UID: "web-old", CreatedAt: startTime,
		Labels: d.Spec.Template.Labels, Finalizers: []string{machineset.Finalizer},
		Owner: &object.Owner{Kind: deployment.OwnerKind, Name: d.Name, UID: d.UID},
	}}
	s.Spec = machineset.Spec{
		Replicas: d.Spec.Replicas, Selector: d.Spec.Selector.Clone(), Template: d.Spec.Template.Clone(), MinReady: d.Spec.MinReady,
	}
	c := deployment.Children{Set: s}
	for i := range d.Spec.Replicas {
		m := &machine.Machine{Spec: s.Spec.Template.Spec, Status: machine.Status{Phase: machine.PhaseRunning, Since: startTime}}
		m.Key = object.Key{Namespace: d.Namespace, Name: fmt.Sprint("m", i)}
		m.UID, m.CreatedAt, m.Labels = fmt.Sprint("m", i), startTime, s.Spec.Template.Labels
		m.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: s.Name, UID: s.UID}
		c.Machines = append(c.Machines, m)
	}
	return c
}

// modelFailing returns a model in which so many creations fail.
func modelFailing(t require.TestingT, fail string) preview.Model {
	return preview.Model{Create: 90 * time.Second, Delete: 30 * time.Second, Fail: share(t, fail)}
}
