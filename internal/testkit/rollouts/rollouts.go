// Package rollouts makes deployments for tests: one with a surge of one machine, and arbitrary ones.
package rollouts

import (
	"fmt"
	"maps"
	"math"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

const (
	// Namespace is that of all objects.
	Namespace = "fleet"
	// HashLabel distinguishes the sets of a deployment.
	HashLabel = "machine-template-hash"
)

// Begin is the time at which tests begin.
var Begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Classes are names of classes.
var Classes = []string{"small", "large", "huge"}

// Limits are values of RevisionHistoryLimit: no limit, no old set, one, and two.
var Limits = []*int32{nil, new(int32), ptr(1), ptr(2)}

func ptr(n int32) *int32 { return &n }

// Web returns a deployment that is rolled with a surge of one machine.
func Web(replicas int32) *deployment.Deployment {
	labels := map[string]string{"app": "web"}
	d := &deployment.Deployment{Spec: deployment.Spec{
		Replicas: replicas,
		Selector: object.Selector{Labels: map[string]string{"app": "web"}},
		Template: machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}},
		Strategy: deployment.Strategy{Kind: deployment.RollingUpdate, MaxSurge: rollout.IntOrPercent{Value: 1}},
	}}
	d.Namespace, d.Name = Namespace, "web"
	return d
}

// Class returns a change of a deployment: another class in the template, which begins a rollout.
func Class(name string) func(*deployment.Spec) {
	return func(s *deployment.Spec) { s.Template.Spec.Class.Name = name }
}

// Stored returns the deployment of Web as a store holds it, before it has sets.
func Stored(replicas int32) *deployment.Deployment {
	d := Web(replicas)
	d.UID, d.Version, d.Generation, d.CreatedAt = "web-uid", "v1", 1, Begin
	d.Revision = 1
	d.Finalizers = []string{deployment.Finalizer}
	return d
}

// OwnSet returns a set of the template of d, made at Begin, and its n Running machines.
func OwnSet(d *deployment.Deployment, name string, n int) deployment.Children {
	s := &machineset.Set{}
	s.Namespace, s.Name, s.UID, s.Version, s.CreatedAt = d.Namespace, name, "uid-"+name, "v1", Begin
	s.Labels = map[string]string{"app": "web", HashLabel: name}
	s.Owner = &object.Owner{Kind: deployment.OwnerKind, Name: d.Name, UID: d.UID}
	s.Spec = machineset.Spec{Replicas: int32(n), Template: d.Spec.Template.Clone(), MinReady: d.Spec.MinReady}
	s.Spec.Selector.Labels = maps.Clone(s.Labels)
	s.Spec.Template.Labels = maps.Clone(d.Spec.Template.Labels)
	s.Spec.Template.Labels[HashLabel] = name
	s.Revision = 1
	c := deployment.Children{Set: s}
	for i := range n {
		m := &machine.Machine{Status: machine.Status{Phase: machine.PhaseRunning, Since: Begin}}
		m.Namespace, m.Name, m.UID = d.Namespace, s.MachineName(int64(i+1)), s.MachineName(int64(i+1))
		m.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: s.Name, UID: s.UID}
		c.Machines = append(c.Machines, m)
	}
	return c
}

// Strategy draws a strategy with small bounds.
func Strategy(t *rapid.T) deployment.Strategy {
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
	return s
}

var phases = []machine.Phase{
	machine.PhaseNew, machine.PhasePending, machine.PhaseRunning, machine.PhaseRunning, machine.PhaseRunning,
	machine.PhaseUnknown, machine.PhaseFailed, machine.PhaseCrashLoopBackOff, machine.PhaseTerminating,
	machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdateFailed,
}

var requests = []machine.InPlaceRequest{
	machine.InPlaceNone, machine.InPlaceNone, machine.InPlaceCandidate, machine.InPlaceWaiting, machine.InPlaceSelected,
}

// Any returns an observation with valid objects in any state, reachable or not: up to four sets with a few
// machines each.
func Any(t *rapid.T) *deployment.Observation {
	d := Web(rapid.Int32Range(0, 12).Draw(t, "replicas"))
	d.UID, d.Version, d.Generation = "web-uid", "v1", 3
	d.Finalizers = []string{deployment.Finalizer}
	d.Spec.Strategy = Strategy(t)
	d.Spec.MinReady = rapid.SampledFrom([]time.Duration{0, 10 * time.Second}).Draw(t, "min ready")
	d.Spec.Paused = rapid.IntRange(0, 3).Draw(t, "paused") == 0
	d.Spec.RevisionHistoryLimit = rapid.SampledFrom(Limits).Draw(t, "limit")
	o := &deployment.Observation{Deployment: d}
	for i := range rapid.IntRange(0, 4).Draw(t, "sets") {
		o.Sets = append(o.Sets, Children(t, d, i))
	}
	return o
}

// Children draws the i-th set of a deployment, with its machines.
func Children(t *rapid.T, d *deployment.Deployment, i int) deployment.Children {
	s := &machineset.Set{}
	s.Namespace, s.Name, s.UID, s.Version = Namespace, fmt.Sprintf("web-%d", i), fmt.Sprintf("set-%d", i), "v1"
	s.Revision = rapid.Int64Range(0, 4).Draw(t, "revision")
	s.CreatedAt = Begin.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Hour)
	s.Labels = map[string]string{"app": "web", HashLabel: s.Name}
	s.Owner = &object.Owner{Kind: deployment.OwnerKind, Name: d.Name, UID: d.UID}
	s.Spec = machineset.Spec{
		Replicas: rapid.Int32Range(0, 12).Draw(t, "size"), MinReady: d.Spec.MinReady,
		Selector: object.Selector{Labels: withHash(d, s.Name)}, Template: d.Spec.Template.Clone(),
	}
	s.Spec.Template.Labels = withHash(d, s.Name)
	s.Spec.Template.Spec.Class.Name = rapid.SampledFrom(Classes).Draw(t, "class")
	if rapid.IntRange(0, 5).Draw(t, "set deleted") == 0 {
		s.DeletedAt = Begin
	}
	c := deployment.Children{Set: s}
	s.Instructions.Handover.Closed = rapid.Bool().Draw(t, "closed")
	s.Instructions.Handover.Arriving, s.Instructions.Handover.Leaving = drawNames(t, "arriving"), drawNames(t, "leaving")
	for j := range rapid.IntRange(0, 8).Draw(t, "machines") {
		c.Machines = append(c.Machines, drawMachine(t, s, j))
	}
	return c
}

// drawNames draws names of machines for the handover of a set: mostly none.
func drawNames(t *rapid.T, label string) []string {
	if rapid.IntRange(0, 9).Draw(t, label) > 0 {
		return nil
	}
	name := rapid.SampledFrom([]string{"web-0-0", "web-0-1", "web-1-0", "web-2-0", "nobody", ""})
	return rapid.SliceOfN(name, 1, 3).Draw(t, "names")
}

func withHash(d *deployment.Deployment, hash string) map[string]string {
	return map[string]string{"app": d.Spec.Template.Labels["app"], HashLabel: hash}
}

func drawMachine(t *rapid.T, s *machineset.Set, j int) *machine.Machine {
	m := &machine.Machine{Status: machine.Status{
		Phase: rapid.SampledFrom(phases).Draw(t, "phase"),
		Since: Begin.Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, "since")) * time.Second),
	}}
	m.Namespace, m.Name, m.UID = Namespace, fmt.Sprintf("%s-%d", s.Name, j), fmt.Sprintf("%s-%d", s.UID, j)
	m.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: s.Name, UID: s.UID}
	m.Spec.InPlace = rapid.SampledFrom(requests).Draw(t, "request")
	if target := rapid.SampledFrom([]string{"", "", "web-0", "web-1", "nobody"}).Draw(t, "target"); target != "" {
		m.Annotations = map[string]string{"millwright-go/in-place-target": target}
	}
	if rapid.IntRange(0, 6).Draw(t, "terminating") == 0 {
		m.DeletedAt = Begin
	}
	return m
}

// Garbage returns an observation with invalid values, which stores should not hold and callers should not
// pass.
func Garbage(t *rapid.T) *deployment.Observation {
	o := Any(t)
	d := o.Deployment
	extreme := func(label string) int32 {
		return rapid.SampledFrom([]int32{-1, 0, 1, 3, math.MaxInt32, math.MinInt32}).Draw(t, label)
	}
	maybe := func(label string) bool { return rapid.Bool().Draw(t, label) }
	d.Spec.Replicas = extreme("replicas")
	d.Spec.Strategy.MaxSurge.Value = extreme("surge")
	d.Spec.Strategy.MaxUnavailable.Value = extreme("unavailable")
	d.Spec.MinReady = rapid.SampledFrom([]time.Duration{0, -1, math.MaxInt64, math.MinInt64}).Draw(t, "min ready")
	d.Status.Collisions = extreme("collisions")
	d.Spec.Strategy.Kind = rapid.SampledFrom([]deployment.StrategyKind{"", "RollingUpdate", "Recreate", "InPlaceUpdate", "Nonsense"}).Draw(t, "kind")
	drawOddRequests(t, d, extreme)
	if maybe("no labels") {
		d.Spec.Template.Labels = nil
	}
	if maybe("no selector") {
		d.Spec.Selector = object.Selector{}
	}
	if maybe("no finalizer") {
		d.Finalizers = nil
	}
	if maybe("deleted") {
		d.DeletedAt = Begin
	}
	if maybe("a condition without status") {
		d.Status.Conditions = []object.Condition{{Type: deployment.ConditionProgressing}, {}}
	}
	for i := range o.Sets {
		corrupt(t, &o.Sets[i], extreme, maybe)
	}
	if len(o.Sets) > 0 && maybe("twice the same") {
		o.Sets = append(o.Sets, o.Sets[0])
	}
	o.Sets = append(o.Sets, deployment.Children{}, deployment.Children{Set: &machineset.Set{}, Machines: []*machine.Machine{nil, {}}})
	return o
}

// drawOddRequests draws settings and status of a deployment, possible and impossible ones.
func drawOddRequests(t *rapid.T, d *deployment.Deployment, extreme func(string) int32) {
	if rapid.Bool().Draw(t, "rollback") {
		d.Spec.RollbackTo = &deployment.Rollback{Revision: rapid.SampledFrom([]int64{0, -1, 1, 3, math.MaxInt64}).Draw(t, "to")}
	}
	if rapid.Bool().Draw(t, "limit") {
		d.Spec.RevisionHistoryLimit = ptr(extreme("history"))
	}
	d.Revision = int64(extreme("deployment revision"))
	d.Spec.ProgressDeadline = rapid.SampledFrom([]time.Duration{0, -1, 1, time.Hour, math.MaxInt64}).Draw(t, "deadline")
	d.Status.ProgressedAt = rapid.SampledFrom([]time.Time{{}, Begin, Begin.AddDate(300, 0, 0)}).Draw(t, "progressed")
	d.Annotations = rapid.SampledFrom([]map[string]string{nil, {"a": "b"}}).Draw(t, "annotations")
}

// corrupt sets invalid values on a set and its machines.
func corrupt(t *rapid.T, c *deployment.Children, extreme func(string) int32, maybe func(string) bool) {
	s := c.Set
	s.Spec.Replicas = extreme("size")
	s.Revision = rapid.SampledFrom([]int64{-1, 0, 1, math.MaxInt64, math.MinInt64}).Draw(t, "odd revision")
	s.Annotations = map[string]string{"deployment.kubernetes.io/max-replicas": "x"}
	s.Instructions.Reservation = machineset.Reservation{Settled: int64(extreme("settled")), Reserved: int64(extreme("reserved")) << 31}
	if maybe("same name") {
		s.Name = "web"
	}
	if maybe("no UID") {
		s.UID = ""
	}
	if maybe("no labels on the set") {
		s.Labels = nil
	}
	if maybe("no labels in its template") {
		s.Spec.Template.Labels = nil
	}
	c.Machines = append(c.Machines, nil, &machine.Machine{})
	for _, m := range c.Machines {
		if m != nil && maybe("invalid machine") {
			m.Status = machine.Status{Phase: "Nonsense", LastOperation: machine.Operation{State: machine.StateFailed}}
			m.Owner = &object.Owner{UID: s.UID}
			m.Spec.InPlace = rapid.SampledFrom([]machine.InPlaceRequest{"Nonsense", "Selected"}).Draw(t, "odd request")
		}
	}
}

// Copy returns a copy that shares nothing with o.
func Copy(o *deployment.Observation) *deployment.Observation {
	c := *o
	c.Deployment = o.Deployment.Clone()
	c.Sets = nil
	for _, child := range o.Sets {
		var copied deployment.Children
		if child.Set != nil {
			copied.Set = child.Set.Clone()
		}
		for _, m := range child.Machines {
			if m != nil {
				m = m.Clone()
			}
			copied.Machines = append(copied.Machines, m)
		}
		c.Sets = append(c.Sets, copied)
	}
	c.Orphans = nil
	for _, s := range o.Orphans {
		if s != nil {
			s = s.Clone()
		}
		c.Orphans = append(c.Orphans, s)
	}
	return &c
}
