package preview_test

import (
	"maps"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

const (
	namespace = "fleet"
	hashLabel = "machine-template-hash"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// web is the deployment of the tests: a machine more or less at a time.
func web(replicas int32) *deployment.Deployment {
	labels := map[string]string{"app": "web"}
	d := &deployment.Deployment{Spec: deployment.Spec{
		Replicas: replicas,
		Selector: object.Selector{Labels: map[string]string{"app": "web"}},
		Template: machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}},
		Strategy: deployment.Strategy{Kind: deployment.RollingUpdate, MaxSurge: rollout.IntOrPercent{Value: 1}},
	}}
	d.Namespace, d.Name = namespace, "web"
	return d
}

// class changes the template, which begins a rollout.
func class(name string) func(*deployment.Spec) {
	return func(s *deployment.Spec) { s.Template.Spec.Class.Name = name }
}

// stored is a deployment as a store holds it, settled but for its sets.
func stored(replicas int32) *deployment.Deployment {
	d := web(replicas)
	d.UID, d.Version, d.Generation, d.CreatedAt = "web-uid", "v1", 1, begin
	d.Revision = 1
	d.Finalizers = []string{deployment.Finalizer}
	return d
}

// ownSet is a set of d's template, made at begin.
func ownSet(d *deployment.Deployment, name string, n int) deployment.Children {
	s := &machineset.Set{}
	s.Namespace, s.Name, s.UID, s.Version, s.CreatedAt = d.Namespace, name, "uid-"+name, "v1", begin
	s.Labels = map[string]string{"app": "web", hashLabel: name}
	s.Owner = &object.Owner{Kind: deployment.OwnerKind, Name: d.Name, UID: d.UID}
	s.Spec = machineset.Spec{Replicas: int32(n), Template: d.Spec.Template.Clone(), MinReady: d.Spec.MinReady}
	s.Spec.Selector.Labels = maps.Clone(s.Labels)
	s.Spec.Template.Labels = maps.Clone(d.Spec.Template.Labels)
	s.Spec.Template.Labels[hashLabel] = name
	s.Revision = 1
	c := deployment.Children{Set: s}
	for i := range n {
		m := &machine.Machine{Status: machine.Status{Phase: machine.PhaseRunning, Since: begin}}
		m.Namespace, m.Name, m.UID = d.Namespace, s.MachineName(int64(i+1)), s.MachineName(int64(i+1))
		m.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: s.Name, UID: s.UID}
		c.Machines = append(c.Machines, m)
	}
	return c
}

func drawStrategy(t *rapid.T) deployment.Strategy {
	bound := rapid.Custom(func(t *rapid.T) rollout.IntOrPercent {
		if rapid.Bool().Draw(t, "percent") {
			return rollout.IntOrPercent{Value: rapid.Int32Range(0, 120).Draw(t, "of 100"), Percent: true}
		}
		return rollout.IntOrPercent{Value: rapid.Int32Range(0, 4).Draw(t, "machines")}
	})
	s := deployment.Strategy{Kind: deployment.RollingUpdate}
	switch rapid.IntRange(0, 6).Draw(t, "strategy") {
	case 0:
		s.Kind = deployment.Recreate
	case 1, 2, 3:
		s.Kind = deployment.InPlaceUpdate
		if rapid.IntRange(0, 4).Draw(t, "orchestration") == 0 {
			s.Orchestration = deployment.Manual
		}
	}
	s.MaxSurge, s.MaxUnavailable = bound.Draw(t, "surge"), bound.Draw(t, "unavailable")
	if rapid.Bool().Draw(t, "stops") {
		s.StopAfter = bound.Draw(t, "stop after")
	}
	return s
}
