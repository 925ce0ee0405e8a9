package preview_test

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/internal/testkit/rollouts"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/sim/preview"
)

// setWithMachines returns a set of d's template with n running machines, as the set itself would have
// created them.
func setWithMachines(d *deployment.Deployment, name string, n int32) deployment.Children {
	c := ownSet(d, name, int(n))
	c.Set.Instructions.Reservation = machineset.Reservation{Settled: int64(n), Reserved: int64(n), At: begin}
	c.Set.AddFinalizer(machineset.Finalizer)
	for _, m := range c.Machines {
		t := c.Set.Spec.Template.Clone()
		m.Labels, m.Annotations, m.Spec, m.CreatedAt = t.Labels, t.Annotations, t.Spec, begin
	}
	return c
}

// rolling returns a deployment of n machines with a new template, and its only set, which has the old one.
func rolling(n int32) (*deployment.Deployment, []deployment.Children) {
	d := stored(n)
	sets := []deployment.Children{setWithMachines(d, "web-old", n)}
	class("large")(&d.Spec)
	return d, sets
}

// startTime is so late that all machines have been ready for long.
var startTime = begin.Add(24 * time.Hour)

func percent(n int32) rollout.IntOrPercent { return rollout.IntOrPercent{Value: n, Percent: true} }

// drawPlausible draws a deployment that is scaled, rolled, both or neither, with a model in which
// it completes within the limit.
func drawPlausible(t *rapid.T) (*deployment.Deployment, []deployment.Children, preview.Model) {
	d := stored(rapid.Int32Range(0, 25).Draw(t, "before"))
	d.Spec.Strategy = drawStrategy(t)
	d.Spec.Strategy.Orchestration = deployment.Automatic // no user selects in a preview
	d.Spec.MinReady = rapid.SampledFrom([]time.Duration{0, 0, 45 * time.Second}).Draw(t, "min ready")
	var sets []deployment.Children
	if d.Spec.Replicas > 0 || rapid.Bool().Draw(t, "an empty set") {
		sets = append(sets, setWithMachines(d, "web-old", d.Spec.Replicas))
	}
	if rapid.Bool().Draw(t, "roll") {
		class("large")(&d.Spec)
	}
	if rapid.Bool().Draw(t, "scale") {
		d.Spec.Replicas = rapid.Int32Range(0, 25).Draw(t, "replicas")
	}
	return d, sets, preview.Model{
		Create: drawSpan(t, "create"),
		Delete: drawSpan(t, "delete"),
		Fail:   rapid.SampledFrom([]rollout.IntOrPercent{{}, {}, percent(5), percent(33), {Value: 7}}).Draw(t, "fail"),
		Start:  startTime,

		Update:     drawSpan(t, "update"),
		FailUpdate: rapid.SampledFrom([]rollout.IntOrPercent{{}, {}, percent(33), percent(100), {Value: 2}}).Draw(t, "fail update"),

		Pods:   rapid.SampledFrom([]int{0, 1, 7}).Draw(t, "pods"),
		PodEnd: drawSpan(t, "pod end"),
	}
}

func drawSpan(t *rapid.T, label string) time.Duration {
	return rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, 30 * time.Second, 90 * time.Second, 10 * time.Minute}).Draw(t, label)
}

// drawModel draws any valid model.
func drawModel(t *rapid.T) preview.Model {
	span := rapid.OneOf(rapid.Int64Range(0, 1<<62), rapid.Int64Range(0, int64(time.Hour)))
	m := preview.Model{
		Create: time.Duration(span.Draw(t, "create")),
		Delete: time.Duration(span.Draw(t, "delete")),
		Fail:   rollout.IntOrPercent{Value: rapid.Int32Range(0, 100).Draw(t, "fail"), Percent: rapid.Bool().Draw(t, "percent")},
		Limit:  time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "limit")),
		Update: time.Duration(span.Draw(t, "update")),
	}
	m.FailUpdate = rollout.IntOrPercent{Value: rapid.Int32Range(0, 100).Draw(t, "fail update"), Percent: true}
	m.Pods, m.PodEnd = rapid.IntRange(0, 3).Draw(t, "pods"), time.Duration(span.Draw(t, "pod end"))
	if rapid.Bool().Draw(t, "start") {
		m.Start = time.Unix(rapid.Int64Range(0, 1<<37).Draw(t, "seconds"), 0)
	}
	return m
}

// drawAnyModel draws any model, also an invalid one.
func drawAnyModel(t *rapid.T) preview.Model {
	odd := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, -1, 1, 1 << 62, -1 << 63}), rapid.Int64Range(0, int64(time.Hour)))
	m := preview.Model{
		Create: time.Duration(odd.Draw(t, "create")),
		Delete: time.Duration(odd.Draw(t, "delete")),
		Fail:   rollout.IntOrPercent{Value: rapid.Int32().Draw(t, "fail"), Percent: rapid.Bool().Draw(t, "percent")},
		Update: time.Duration(odd.Draw(t, "update")),
		Limit:  time.Duration(odd.Draw(t, "limit")),
		PodEnd: time.Duration(odd.Draw(t, "pod end")),
		Pods:   rapid.IntRange(-1, 3).Draw(t, "pods"),
		Start:  rapid.SampledFrom([]time.Time{{}, begin, time.Unix(1<<61, 0), time.Unix(-1<<61, 0)}).Draw(t, "start"),
	}
	if rapid.Bool().Draw(t, "policies") {
		m.Policy, m.SetPolicy = &deployment.Policy{}, machineset.DefaultPolicy()
	}
	return m
}

// adopted returns the sets of a random observation, with machines as the sets would have created them.
func adopted(o *deployment.Observation) []deployment.Children {
	for _, c := range o.Sets {
		c.Set.AddFinalizer(machineset.Finalizer)
		for i, m := range c.Machines {
			m.Labels = c.Set.Spec.Template.Labels
			m.Spec = c.Set.Spec.Template.Spec.Clone()
			m.CreatedAt = begin.Add(-time.Duration(i) * time.Minute)
			if m.Status.Phase == machine.PhaseTerminating {
				m.Status.Phase = machine.PhaseRunning
			}
		}
	}
	return o.Sets
}

// describe returns a timeline as text, for failure messages.
func describe(t *preview.Timeline) string {
	s := fmt.Sprintf("%+v, lowest %d, highest %d, %s\n", t.Bounds, t.LowestAvailable, t.HighestTotal, t.Ending)
	for i := range t.Steps {
		step := &t.Steps[i]
		s += fmt.Sprintf("%9s %+v %s\n", step.After, step.Seen, step)
	}
	return s
}

var (
	begin       = rollouts.Begin
	web         = rollouts.Web
	class       = rollouts.Class
	stored      = rollouts.Stored
	ownSet      = rollouts.OwnSet
	drawGarbage = rollouts.Garbage
	copyOf      = rollouts.Copy
)

const (
	namespace = rollouts.Namespace
	hashLabel = rollouts.HashLabel
)

// drawStrategy draws a strategy, also one with StopAfter.
func drawStrategy(t *rapid.T) deployment.Strategy {
	s := rollouts.Strategy(t)
	if rapid.Bool().Draw(t, "stops") {
		s.StopAfter = rollouts.Strategy(t).MaxSurge
	}
	return s
}

func drawLive(t *rapid.T) *deployment.Observation {
	o := rollouts.Any(t)
	o.Deployment.Spec.Strategy = drawStrategy(t)
	return o
}
