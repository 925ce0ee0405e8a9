package manager_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

const preserveKey = "node.machine.sapcloud.io/preserve"

// fused is a drainer behind a process's fuse: the process may die at each call.
type fused struct {
	f      *testkit.Fuse
	drains *int
}

func (d fused) Drain(_ context.Context, m *machine.Machine, e *machine.DrainNode) (answer machine.DrainAnswer, err error) {
	err = d.f.Do(func() error {
		*d.drains++
		answer.Done = e.Node.Unschedulable || m.Deleted()
		return nil
	})
	return answer, err
}

func (d fused) Detach(context.Context, *machine.Machine, *machine.DetachVolumes) (answer machine.DrainAnswer, err error) {
	err = d.f.Do(func() error { answer.Done = true; return nil })
	return answer, err
}

// newPreserving returns a world whose processes drain, and the number of drains.
func newPreserving(t tb) (*world, *int) {
	w, drains := newWorld(t, drivertest.MemoryOptions{}), new(int)
	w.setOptions = func(o *manager.Options, f *testkit.Fuse) { o.Drainer = fused{f, drains} }
	return w, drains
}

// preservedFleet stores a fleet of three that keeps one failed machine at a time by itself.
func (w *world) preservedFleet() {
	w.bounded, w.sick = true, map[string]bool{}
	w.fleet()
	w.change(func(d *deployment.Deployment) {
		d.Spec.AutoPreserve, d.Spec.Template.Spec.Config.PreserveTimeout = 1, 30*time.Minute
	})
}

// pick returns the first machine, by name, that is as wanted; nil: there is none.
func (w *world) pick(wanted func(*machine.Machine) bool) *machine.Machine {
	for _, key := range keysOf(w.machines) {
		if m, err := w.machines.Get(ctx, key); err == nil && wanted(m) {
			return m
		}
	}
	return nil
}

// preserved returns whether a machine is failed and kept, its node is marked and drained, the fleet knows, and no
// machine replaced it.
func (w *world) preserved(name string) func() bool {
	return func() bool {
		m, err := w.machines.Get(ctx, object.Key{Namespace: namespace, Name: name})
		require.NoError(w.t, err, "replaced though it is kept")
		require.False(w.t, m.Deleted(), "replaced though it is kept")
		d, err := w.deployments.Get(ctx, fleetKey)
		require.NoError(w.t, err)
		n, err := w.nodes.Get(ctx, object.Key{Name: name})
		require.NoError(w.t, err)
		reported := object.FindCondition(n.Conditions, machine.NodePreserved)
		return m.Status.Phase == machine.PhaseFailed && m.Preserved(w.at) && m.Status.Preservation.Drained &&
			n.Unschedulable && reported != nil && reported.Status == object.True && d.Status.Preserved == 1 && d.Status.Available == 2
	}
}

// recover makes the node of a VM healthy again.
func (w *world) recover(name string) {
	delete(w.sick, name)
	n, err := w.nodes.Get(ctx, object.Key{Name: name})
	require.NoError(w.t, err)
	w.ready(n, object.True)
}

// preservedLife makes a fleet in which machines fail and are kept: the first by itself until its time is up, the
// second on request until it is well again, and the third until its user says so.
func (w *world) preservedLife(p *process, died func() *process) {
	w.preservedFleet()
	p = w.until(p, w.settled(3), died)
	first := w.pick(func(*machine.Machine) bool { return true }).Name
	w.sick[first] = true
	p = w.until(p, w.preserved(first), died)
	until := w.pick(func(m *machine.Machine) bool { return m.Name == first }).Status.Preservation.Until
	p = w.until(p, func() bool {
		m := w.pick(func(m *machine.Machine) bool { return m.Name == first })
		require.True(w.t, m != nil && !m.Deleted() || !w.at.Before(until), "replaced before its time")
		return w.settled(3)() && m == nil
	}, died)
	delete(w.sick, first)

	second := w.pick(func(*machine.Machine) bool { return true }).Name
	w.annotateNode(second, machine.PreserveWhenFailed)
	w.sick[second] = true
	p = w.until(p, w.preserved(second), died)
	w.recover(second)
	p = w.until(p, w.settled(3), died)
	w.requireClean(second)

	w.annotateNode(second, machine.PreserveNow)
	w.sick[second] = true
	p = w.until(p, w.preserved(second), died)
	w.annotateNode(second, machine.PreserveNever)
	w.until(p, func() bool {
		return w.settled(3)() && w.pick(func(m *machine.Machine) bool { return m.Name == second }) == nil
	}, died)
}

func (w *world) annotateNode(name, value string) {
	n, err := w.nodes.Get(ctx, object.Key{Name: name})
	require.NoError(w.t, err)
	n = n.Clone()
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[preserveKey] = value
	_, err = w.nodes.Update(ctx, n)
	require.NoError(w.t, err)
}

// requireClean requires that a node shows no trace of a preservation, once the machine has had time to remove it.
func (w *world) requireClean(name string) {
	n, err := w.nodes.Get(ctx, object.Key{Name: name})
	require.NoError(w.t, err)
	require.False(w.t, n.Unschedulable, w.dump())
	require.Empty(w.t, n.Taints)
	require.Equal(w.t, map[string]string{preserveKey: machine.PreserveWhenFailed}, n.Annotations)
	require.Equal(w.t, machine.PreservedMarks{}, n.Applied.Preserved)
}

// TestPreservedLife: five machines are made in all, of which two replace machines that were kept.
func TestPreservedLife(t *testing.T) {
	w, drains := newPreserving(t)
	w.preservedLife(w.start(&testkit.Fuse{}, false), neverDies(t))
	require.GreaterOrEqual(t, *drains, 3)
	require.Len(t, w.made, 5)
	require.Equal(t, 5, count(w, codes.CreateMachine))
	require.Equal(t, 2, count(w, codes.DeleteMachine))
}

// TestPreservedKilledAnywhere kills the manager at every call of preservedLife, before or after the call takes
// effect. It ends as without the kill (P12, P23, P26).
// Invariants: P12 P26
func TestPreservedKilledAnywhere(t *testing.T) {
	total := &testkit.Fuse{}
	undisturbed, _ := newPreserving(t)
	undisturbed.preservedLife(undisturbed.start(total, false), neverDies(t))
	for n := range testkit.EveryCall(total.Calls, 7) {
		w, _ := newPreserving(t)
		w.preservedLife(w.start(&testkit.Fuse{BlowAt: n, BlowAfter: n%2 == 0}, false), func() *process { return w.start(&testkit.Fuse{}, false) })
		require.Len(t, w.made, 5, "killed at call %d", n)
	}
}

// TestPreservedTakesNoSlot: machines that are kept do not delay the replacement of another machine: they count
// neither as missing nor as in replacement.
// Invariants: P24
func TestPreservedTakesNoSlot(t *testing.T) {
	w, _ := newPreserving(t)
	w.safety = safety.DefaultPolicy()
	w.preservedFleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	first := w.pick(func(*machine.Machine) bool { return true }).Name
	w.sick[first] = true
	p = w.until(p, w.preserved(first), neverDies(t))
	began := w.at
	second := w.pick(func(m *machine.Machine) bool { return m.Name != first }).Name
	w.sick[second] = true
	w.until(p, func() bool {
		return w.pick(func(m *machine.Machine) bool { return m.Name == second }) == nil
	}, neverDies(t))
	require.Less(t, w.at.Sub(began), time.Hour)
	require.NotNil(t, w.pick(func(m *machine.Machine) bool { return m.Name == first && m.Preserved(w.at) }))
}

// TestPreservedIsReported: the begin and the end of a preservation are reported once, and so is an unknown request.
func TestPreservedIsReported(t *testing.T) {
	w, s, r := drained(t)
	annotate := func(value string) {
		m := w.machine().Clone()
		m.Annotations = map[string]string{preserveKey: value}
		_, err := w.machines.Update(ctx, m)
		require.NoError(t, err)
		for range 3 {
			w.look(r)
		}
	}
	annotate("please")
	require.Equal(t, 1, w.countEvents("Warning machine PreservationUnknown"), w.events)
	annotate(machine.PreserveNow)
	require.Equal(t, 1, w.countEvents("Normal machine Preserved "), w.events)
	annotate(machine.PreserveNever)
	require.Equal(t, 1, w.countEvents("Normal machine PreservationStopped "), w.events)
	require.Zero(t, s.drains, "the last machine never failed")
	require.Equal(t, 2, s.effects["SyncNode"]-1, "the node is written when the preservation begins and ends")
	require.Equal(t, 2, s.effects["MarkNode"])
}

// TestWorkloadWakesPreserved: a pod that disappears wakes a failed machine that is kept, until its node is
// drained.
func TestWorkloadWakesPreserved(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	o := w.options()
	o.Drainer = &script{w: w, effects: map[string]int{}}
	m, err := manager.New(o)
	require.NoError(t, err)
	stored, err := w.machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}, NodeName: "n"},
	})
	require.NoError(t, err)
	for _, c := range []struct {
		phase machine.Phase
		p     machine.Preservation
		woken bool
	}{
		{machine.PhaseFailed, machine.Preservation{Since: w.at}, true},
		{machine.PhaseFailed, machine.Preservation{Since: w.at, Drained: true}, false},
		{machine.PhaseFailed, machine.Preservation{}, false},
		{machine.PhaseRunning, machine.Preservation{Since: w.at}, false},
	} {
		stored = stored.Clone()
		stored.Status.Phase, stored.Status.Preservation = c.phase, c.p
		stored, err = w.machines.UpdateStatus(ctx, stored)
		require.NoError(t, err)
		for _, wake := range m.Wakes() {
			if wake.From == manager.KindWorkload {
				require.Equal(t, c.woken, len(wake.Keys(ctx, nil, "n")) == 1, "%+v", c)
			}
		}
	}
	kept := stored.Clone()
	kept.Status.Preservation.Since = kept.Status.Preservation.Since.Add(time.Hour)
	for _, wake := range m.Wakes() {
		if wake.From == manager.KindMachine && wake.To == manager.KindSet {
			owned := kept.Clone()
			owned.Owner = &object.Owner{Kind: "MachineSet", Name: "s"}
			before := stored.Clone()
			before.Owner = owned.Owner
			require.Len(t, wake.Keys(ctx, before, owned), 1, "a preservation wakes the set")
			require.Empty(t, wake.Keys(ctx, owned, owned.Clone()))
		}
	}
}
