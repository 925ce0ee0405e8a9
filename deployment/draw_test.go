package deployment_test

import (
	"fmt"
	"math"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

var phases = []machine.Phase{
	machine.PhaseNew, machine.PhasePending, machine.PhaseRunning, machine.PhaseRunning, machine.PhaseRunning,
	machine.PhaseUnknown, machine.PhaseFailed, machine.PhaseCrashLoopBackOff, machine.PhaseTerminating,
	machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdateFailed,
}

var requests = []machine.InPlaceRequest{
	machine.InPlaceNone, machine.InPlaceNone, machine.InPlaceCandidate, machine.InPlaceWaiting, machine.InPlaceSelected,
}

// drawLive returns what a live read might find, in any state, reachable or not: up to four sets
// with a few machines each.
func drawLive(t *rapid.T) *deployment.Observation {
	d := web(rapid.Int32Range(0, 12).Draw(t, "replicas"))
	d.UID, d.Version, d.Generation = "web-uid", "v1", 3
	d.Finalizers = []string{deployment.Finalizer}
	d.Spec.Strategy = drawStrategy(t)
	d.Spec.MinReady = rapid.SampledFrom([]time.Duration{0, 10 * time.Second}).Draw(t, "min ready")
	d.Spec.Paused = rapid.IntRange(0, 3).Draw(t, "paused") == 0
	d.Spec.RevisionHistoryLimit = rapid.SampledFrom(limits).Draw(t, "limit")
	o := &deployment.Observation{Deployment: d, Read: live}
	for i := range rapid.IntRange(0, 4).Draw(t, "sets") {
		o.Sets = append(o.Sets, drawChildren(t, d, i))
	}
	return o
}

func drawChildren(t *rapid.T, d *deployment.Deployment, i int) deployment.Children {
	s := &machineset.Set{}
	s.Namespace, s.Name, s.UID, s.Version = namespace, fmt.Sprintf("web-%d", i), fmt.Sprintf("set-%d", i), "v1"
	s.Revision = rapid.Int64Range(0, 4).Draw(t, "revision")
	s.CreatedAt = begin.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Hour)
	s.Labels = map[string]string{"app": "web", "machine-template-hash": s.Name}
	s.Owner = &object.Owner{Kind: deployment.OwnerKind, Name: d.Name, UID: d.UID}
	s.Spec = machineset.Spec{
		Replicas: rapid.Int32Range(0, 12).Draw(t, "size"), MinReady: d.Spec.MinReady,
		Selector: object.Selector{Labels: withHash(d, s.Name)}, Template: d.Spec.Template.Clone(),
	}
	s.Spec.Template.Labels = withHash(d, s.Name)
	s.Spec.Template.Spec.Class.Name = rapid.SampledFrom(classes).Draw(t, "class")
	if rapid.IntRange(0, 5).Draw(t, "going") == 0 {
		s.DeletedAt = begin
	}
	c := deployment.Children{Set: s}
	s.Instructions.Handover.Closed = rapid.Bool().Draw(t, "closed")
	s.Instructions.Handover.Arriving, s.Instructions.Handover.Leaving = drawNames(t, "arriving"), drawNames(t, "leaving")
	for j := range rapid.IntRange(0, 8).Draw(t, "machines") {
		c.Machines = append(c.Machines, drawMachine(t, s, j))
	}
	return c
}

// drawNames returns machines of any set that are noted on one, rarely.
func drawNames(t *rapid.T, label string) []string {
	if rapid.IntRange(0, 9).Draw(t, label) > 0 {
		return nil
	}
	name := rapid.SampledFrom([]string{"web-0-0", "web-0-1", "web-1-0", "web-2-0", "nobody", ""})
	return rapid.SliceOfN(name, 1, 3).Draw(t, "names")
}

func withHash(d *deployment.Deployment, hash string) map[string]string {
	return map[string]string{"app": d.Spec.Template.Labels["app"], "machine-template-hash": hash}
}

func drawMachine(t *rapid.T, s *machineset.Set, j int) *machine.Machine {
	m := &machine.Machine{Status: machine.Status{
		Phase: rapid.SampledFrom(phases).Draw(t, "phase"),
		Since: begin.Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, "since")) * time.Second),
	}}
	m.Namespace, m.Name, m.UID = namespace, fmt.Sprintf("%s-%d", s.Name, j), fmt.Sprintf("%s-%d", s.UID, j)
	m.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: s.Name, UID: s.UID}
	m.Spec.InPlace = rapid.SampledFrom(requests).Draw(t, "request")
	if target := rapid.SampledFrom([]string{"", "", "web-0", "web-1", "nobody"}).Draw(t, "target"); target != "" {
		m.Annotations = map[string]string{"millwright-go/in-place-target": target}
	}
	if rapid.IntRange(0, 6).Draw(t, "terminating") == 0 {
		m.DeletedAt = begin
	}
	return m
}

// drawGarbage returns what no store should hold, and callers should not pass, but might.
func drawGarbage(t *rapid.T) *deployment.Observation {
	o := drawLive(t)
	d := o.Deployment
	odd := func(label string) int32 {
		return rapid.SampledFrom([]int32{-1, 0, 1, 3, math.MaxInt32, math.MinInt32}).Draw(t, label)
	}
	some := func(label string) bool { return rapid.Bool().Draw(t, label) }
	d.Spec.Replicas = odd("replicas")
	d.Spec.Strategy.MaxSurge.Value = odd("surge")
	d.Spec.Strategy.MaxUnavailable.Value = odd("unavailable")
	d.Spec.MinReady = rapid.SampledFrom([]time.Duration{0, -1, math.MaxInt64, math.MinInt64}).Draw(t, "min ready")
	d.Status.Collisions = odd("collisions")
	d.Spec.Strategy.Kind = rapid.SampledFrom([]deployment.StrategyKind{"", "RollingUpdate", "Recreate", "InPlaceUpdate", "Nonsense"}).Draw(t, "kind")
	drawOddRequests(t, d, odd)
	if some("no labels") {
		d.Spec.Template.Labels = nil
	}
	if some("no selector") {
		d.Spec.Selector = object.Selector{}
	}
	if some("no finalizer") {
		d.Finalizers = nil
	}
	if some("going") {
		d.DeletedAt = begin
	}
	if some("a condition of no status") {
		d.Status.Conditions = []object.Condition{{Type: deployment.ConditionProgressing}, {}}
	}
	if some("live") {
		o.Read = live
	}
	for i := range o.Sets {
		spoil(t, &o.Sets[i], odd, some)
	}
	if len(o.Sets) > 0 && some("twice the same") {
		o.Sets = append(o.Sets, o.Sets[0])
	}
	o.Sets = append(o.Sets, deployment.Children{}, deployment.Children{Set: &machineset.Set{}, Machines: []*machine.Machine{nil, {}}})
	o.Orphans = []*machineset.Set{nil, {}, {Meta: object.Meta{Key: object.Key{Namespace: namespace}, Labels: map[string]string{"app": "web"}}}}
	o.Taken = rapid.SampledFrom([]*deployment.Taken{nil, {}, {Name: "web-s6vfvz2m2l"}, {Name: "web-s6vfvz2m2l", Set: &machineset.Set{}}}).Draw(t, "taken")
	o.Failed = rapid.SampledFrom([]*machine.Outcome{nil, {}, {Code: codes.Code(200)}}).Draw(t, "failed")
	o.Failures = rapid.SampledFrom([]int{-1, 0, 5, math.MaxInt}).Draw(t, "failures")
	o.StatusWritten = rapid.SampledFrom([]time.Time{{}, begin, begin.AddDate(9, 0, 0)}).Draw(t, "written")
	return o
}

// drawOddRequests asks for impossible things, among possible ones.
func drawOddRequests(t *rapid.T, d *deployment.Deployment, odd func(string) int32) {
	if rapid.Bool().Draw(t, "rollback") {
		d.Spec.RollbackTo = &deployment.Rollback{Revision: rapid.SampledFrom([]int64{0, -1, 1, 3, math.MaxInt64}).Draw(t, "to")}
	}
	if rapid.Bool().Draw(t, "limit") {
		d.Spec.RevisionHistoryLimit = ptr(odd("history"))
	}
	d.Revision = int64(odd("deployment revision"))
	d.Spec.ProgressDeadline = rapid.SampledFrom([]time.Duration{0, -1, 1, time.Hour, math.MaxInt64}).Draw(t, "deadline")
	d.Status.ProgressedAt = rapid.SampledFrom([]time.Time{{}, begin, begin.AddDate(300, 0, 0)}).Draw(t, "progressed")
	d.Annotations = rapid.SampledFrom([]map[string]string{nil, {"a": "b"}}).Draw(t, "annotations")
}

func spoil(t *rapid.T, c *deployment.Children, odd func(string) int32, some func(string) bool) {
	s := c.Set
	s.Spec.Replicas = odd("size")
	s.Revision = rapid.SampledFrom([]int64{-1, 0, 1, math.MaxInt64, math.MinInt64}).Draw(t, "odd revision")
	s.Annotations = map[string]string{"deployment.kubernetes.io/max-replicas": "x"}
	s.Instructions.Reservation = machineset.Reservation{Settled: int64(odd("settled")), Reserved: int64(odd("reserved")) << 31}
	if some("same name") {
		s.Name = "web"
	}
	if some("no UID") {
		s.UID = ""
	}
	if some("no labels on the set") {
		s.Labels = nil
	}
	if some("no labels in its template") {
		s.Spec.Template.Labels = nil
	}
	c.Machines = append(c.Machines, nil, &machine.Machine{})
	for _, m := range c.Machines {
		if m != nil && some("spoilt") {
			m.Status = machine.Status{Phase: "Nonsense", LastOperation: machine.Operation{State: machine.StateFailed}}
			m.Owner = &object.Owner{UID: s.UID}
			m.Spec.InPlace = rapid.SampledFrom([]machine.InPlaceRequest{"Nonsense", "Selected"}).Draw(t, "odd request")
		}
	}
}

// copyOf returns a copy that shares nothing with o.
func copyOf(o *deployment.Observation) *deployment.Observation {
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
