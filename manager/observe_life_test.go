package manager_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// patient is a drainer that takes a minute, and another for volumes.
type patient struct {
	w *world
	f *testkit.Fuse
}

func (d patient) Drain(_ context.Context, _ *machine.Machine, e *machine.DrainNode) (machine.DrainAnswer, error) {
	return d.after(e.Since)
}

func (d patient) Detach(_ context.Context, _ *machine.Machine, e *machine.DetachVolumes) (machine.DrainAnswer, error) {
	return d.after(e.Until.Add(-machine.DefaultPolicy().DetachTimeout))
}

func (d patient) after(since time.Time) (answer machine.DrainAnswer, err error) {
	err = d.f.Do(func() error {
		answer.At = since.Add(time.Minute)
		answer.Done = !d.w.at.Before(answer.At)
		return nil
	})
	return answer, err
}

// lived is what an observer tells while a fleet lives through something under
// managers that die again and again, at any of their calls.
type lived struct {
	w    *world
	n    int
	seen map[string]bool
}

func newLived(w *world, n int) *lived {
	w.safety, w.sick = safety.DefaultPolicy(), map[string]bool{}
	return &lived{w: w, n: n, seen: map[string]bool{}}
}

func (l *lived) next() *process {
	l.n++
	return l.w.start(&testkit.Fuse{BlowAt: 1 + l.n*13%97, BlowAfter: true}, false)
}

func (l *lived) died() *process {
	maps.Copy(l.seen, l.w.compare())
	return l.next()
}

// TestObservingALife: in every stage of a life an observer tells what an
// ordinary manager would begin with, and changes nothing.
func TestObservingALife(t *testing.T) {
	seen := map[string]bool{}
	for n := range 2 {
		maps.Copy(seen, observedLife(t, 17*n))
	}
	require.Subset(t, sorted(seen), []string{
		"class: update class", "deployment: create set", "deployment: update set",
		"deployment: update status of deployment", "machine: call DeleteMachine for machine", "machine: drain node",
		"machine: update machine", "machine: update node", "machine: update status of machine",
		"orphans: call DeleteMachine for machine", "ownerless: delete machine", "ownerless: delete set",
		"secret: update secret", "set: delete machine", "set: update machine", "set: update set",
		"set: update status of set", "unmanaged: update node",
	})
}

func observedLife(t *testing.T, n int) map[string]bool {
	w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: true})
	l := newLived(w, n)
	w.classed = func(o *manager.Options, f *testkit.Fuse) { o.Classes.Keep, o.Drainer = true, patient{w, f} }
	w.fleet()
	p := w.until(l.next(), w.settled(3), l.died)
	w.tag("small", "s", tags{"a": "1"})
	p = w.until(p, w.tagged(3, tags{"a": "1"}), l.died)
	w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"version": "2"} })
	p = w.until(p, w.settled(3), l.died)
	w.stray("blue", "web-lost")
	w.late("late", machineset.OwnerKind)
	lost := &machineset.Set{Meta: object.Meta{
		Key: object.Key{Namespace: namespace, Name: "lost"}, Owner: &object.Owner{Kind: deployment.OwnerKind, Name: "gone", UID: "gone"},
	}}
	lost.Spec.Selector.Labels = map[string]string{"lost": "1"}
	_, err := w.sets.Create(ctx, lost)
	require.NoError(t, err)
	w.sick[keysOf(w.machines)[0].Name] = true
	p = w.until(p, w.lasts(30*time.Minute), l.died)
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	w.until(p, func() bool { return len(keysOf(w.deployments))+len(keysOf(w.machines))+w.provider.Count() == 0 }, l.died)
	return l.seen
}

// TestObservingAMigration: classes of an older kind are read, and stay as they are.
func TestObservingAMigration(t *testing.T) {
	seen := map[string]bool{}
	for n := range 40 {
		w, a := older(t, n%2 == 0)
		l := newLived(w, n)
		w.until(l.next(), w.migrated(a), func() *process {
			marks := a.marks
			maps.Copy(seen, w.compare())
			require.Equal(t, marks, a.marks)
			return l.next()
		})
	}
	require.Subset(t, sorted(seen), []string{
		"class: create class", "class: update class", "class: update deployment", "class: update set",
	})
}

// TestObservingAnOutage: clocks that should be restarted keep an observer
// frozen, and asking at the pace of its checks, until another manager has seen
// to them.
func TestObservingAnOutage(t *testing.T) {
	w, _ := ill(t)
	var told []string
	watching := func(o *manager.Options, _ *testkit.Fuse) {
		o.Observe = true
		o.Hooks.Observed = func(kind manager.Kind, _ object.Key, what, reason, _ string) {
			if kind == manager.KindReachability || kind == manager.KindMachine {
				told = append(told, reason+": "+what)
			}
		}
	}
	w.classed = watching
	p := w.start(&testkit.Fuse{}, false)
	w.round(p)
	w.targetDown = true
	before := w.contents()
	p = w.until(p, w.lasts(3*time.Minute), unexpected(t))
	w.targetDown = false
	told = nil
	looks := 0
	end := w.at.Add(20 * time.Minute)
	p = w.until(p, func() bool { looks++; return w.at.After(end) }, unexpected(t))
	require.Len(t, told, 3)
	for i, key := range keysOf(w.machines) {
		require.Contains(t, told, "ClockRestarted: update status of machine "+key.String(), i)
	}
	require.LessOrEqual(t, looks, 50, "at the pace of the checks")
	require.Equal(t, before, w.contents())
	require.Zero(t, w.lost)
	for _, r := range p.Reconcilers() {
		if r.Kind() == manager.KindReachability {
			result, err := r.Reconcile(ctx, manager.Fleet)
			require.NoError(t, err)
			require.Equal(t, w.safety.CheckPeriod, result.At.Sub(w.at))
		}
	}

	w.heal()
	w.classed = nil
	w.until(w.start(&testkit.Fuse{}, false), func() bool { return w.phases()[machine.PhaseRunning] == 3 }, unexpected(t))
	w.until(p, w.lasts(2*time.Minute), unexpected(t))
	require.Equal(t, 1, w.heard("Reachable: both API servers answer"), "thawed")
	require.Len(t, told, 3)
}
