package manager_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/overshoot"
	"github.com/millwright-go/millwright/safety/replacement"
	"github.com/millwright-go/millwright/store"
)

// TestDryRunOfAnyFleet: a manager died and left a fleet in any state, and others changed anything. A manager that
// only observes changes nothing, and reports what an ordinary one would begin with.
// Invariants: P40
func TestDryRunOfAnyFleet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: rapid.Bool().Draw(t, "initialize")})
		w.safety, w.sick = safety.DefaultPolicy(), map[string]bool{}
		drains := 0
		w.setOptions = func(o *manager.Options, f *testkit.Fuse) { o.Classes.Keep, o.Drainer = true, fused{f, &drains} }
		w.fleet()
		for range rapid.IntRange(1, 4).Draw(t, "stages") {
			w.disturb(rapid.IntRange(0, 12).Draw(t, "event"), rapid.IntRange(0, 5).Draw(t, "n"))
			p := w.start(&testkit.Fuse{}, false)
			for range rapid.IntRange(0, 6).Draw(t, "rounds") {
				w.round(p)
				w.join()
				w.at = w.at.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "s")) * time.Second)
			}
			f := &testkit.Fuse{BlowAfter: true, BlowAt: rapid.IntRange(1, 60).Draw(t, "dies at")}
			w.round(w.start(f, false))
			w.compare()
		}
	})
}

// disturb changes one thing in the fleet as others would, if it exists.
func (w *world) disturb(event, n int) {
	d, err := w.deployments.Get(ctx, fleetKey)
	switch {
	case event < 4 && err == nil && !d.Deleted():
		w.disturbDeployment(event, n)
	case event < 7 && len(keysOf(w.machines)) > 0:
		machines := keysOf(w.machines)
		w.disturbMachine(event, machines[n%len(machines)])
	default:
		w.disturbRest(event, n)
	}
}

func (w *world) disturbDeployment(event, n int) {
	switch event {
	case 0:
		w.change(func(d *deployment.Deployment) { d.Spec.Replicas = int32(n) })
	case 1:
		w.change(func(d *deployment.Deployment) {
			changed := &d.Spec.Template.Annotations
			if n%2 == 0 {
				changed = &d.Spec.Template.Spec.NodeTemplate.Labels
			}
			*changed = map[string]string{"version": fmt.Sprint(n)}
		})
	case 2:
		w.change(func(d *deployment.Deployment) { d.Spec.Strategy.Kind = deployment.Recreate })
	case 3:
		require.NoError(w.t, w.deployments.Delete(ctx, fleetKey, ""))
	}
}

func (w *world) disturbMachine(event int, key object.Key) {
	switch event {
	case 4:
		require.NoError(w.t, w.machines.Delete(ctx, key, ""))
	case 5:
		w.sick[key.Name] = true
	case 6:
		annotate(w, w.machines, key, preserveKey, "now")
	}
}

func (w *world) disturbRest(event, n int) {
	sets := keysOf(w.sets)
	switch {
	case event == 7:
		w.addOrphanVM("blue", fmt.Sprint("web-lost-", len(w.orphanVMs)))
	case event == 8 && !w.holds("late"):
		w.late("late", machineset.OwnerKind)
	case event == 9:
		_, _ = w.nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: fmt.Sprint("foreign-", n)}}})
	case event == 10 && len(sets) > 0:
		require.NoError(w.t, w.sets.Delete(ctx, sets[0], ""))
	case event == 11 && len(sets) == 1 && w.unrequested == 0:
		w.addUnrequested(w.set(), 3)
	case event == 12:
		w.tag("small", "s", tags{"n": fmt.Sprint(n)})
	}
}

func (w *world) holds(machine string) bool {
	_, err := w.machines.Get(ctx, object.Key{Namespace: namespace, Name: machine})
	return err == nil
}

// patient is a drainer that takes a minute, and another minute for volumes.
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

// observedFleet collects what an observer reports while managers that die at any call change a fleet.
type observedFleet struct {
	w    *world
	n    int
	seen map[string]bool
}

func newObservedFleet(w *world, n int) *observedFleet {
	w.safety, w.sick = safety.DefaultPolicy(), map[string]bool{}
	return &observedFleet{w: w, n: n, seen: map[string]bool{}}
}

func (l *observedFleet) next() *process {
	l.n++
	return l.w.start(&testkit.Fuse{BlowAt: 1 + l.n*13%97, BlowAfter: true}, false)
}

func (l *observedFleet) died() *process {
	maps.Copy(l.seen, l.w.compare())
	return l.next()
}

// TestDryRunOfALife: at any point between a fleet's creation and its end, an observer reports what an ordinary
// manager would begin with, and changes nothing.
// Invariants: P40
func TestDryRunOfALife(t *testing.T) {
	seen := map[string]bool{}
	for n := range 3 {
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
	l := newObservedFleet(w, n)
	w.setOptions = func(o *manager.Options, f *testkit.Fuse) { o.Classes.Keep, o.Drainer = true, patient{w, f} }
	w.fleet()
	p := w.until(l.next(), w.settled(3), l.died)
	w.tag("small", "s", tags{"a": "1"})
	p = w.until(p, w.tagged(3, tags{"a": "1"}), l.died)
	w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"version": "2"} })
	p = w.until(p, w.settled(3), l.died)
	w.change(func(d *deployment.Deployment) {
		d.Spec.Template.Spec.NodeTemplate.Labels = map[string]string{"team": "a"}
	})
	require.NoError(t, w.start(&testkit.Fuse{}, false).pass(manager.KindDeployment, fleetKey))
	maps.Copy(l.seen, w.compare())
	p = w.until(p, w.settled(3), l.died)
	w.addOrphanVM("blue", "web-lost")
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

// TestDryRunOfAMigration: classes of an older kind are read, and stay as they are.
// Invariants: P40
func TestDryRunOfAMigration(t *testing.T) {
	seen := map[string]bool{}
	for n := range 40 {
		w, a := older(t, n%2 == 0)
		l := newObservedFleet(w, n)
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

// TestDryRunOfAnOutage: an observer does not restart clocks. It stays frozen, and repeats its checks, until
// another manager has restarted them.
// Invariants: P40
func TestDryRunOfAnOutage(t *testing.T) {
	w, _ := fleetWithoutHealth(t)
	var reported []string
	watching := func(o *manager.Options, _ *testkit.Fuse) {
		o.DryRun = true
		o.Hooks.DryRun = func(kind manager.Kind, _ object.Key, what, reason, _ string) {
			if kind == manager.KindReachability || kind == manager.KindMachine {
				reported = append(reported, reason+": "+what)
			}
		}
	}
	w.setOptions = watching
	p := w.start(&testkit.Fuse{}, false)
	w.round(p)
	w.targetDown = true
	before := w.contents()
	p = w.until(p, w.lasts(3*time.Minute), neverDies(t))
	w.targetDown = false
	reported = nil
	looks := 0
	end := w.at.Add(20 * time.Minute)
	p = w.until(p, func() bool { looks++; return w.at.After(end) }, neverDies(t))
	require.Len(t, reported, 3)
	for i, key := range keysOf(w.machines) {
		require.Contains(t, reported, "ClockRestarted: update status of machine "+key.String(), i)
	}
	require.LessOrEqual(t, looks, 50, "passes are more frequent than checks")
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
	w.setOptions = nil
	w.until(w.start(&testkit.Fuse{}, false), func() bool { return w.phases()[machine.PhaseRunning] == 3 }, neverDies(t))
	w.until(p, w.lasts(2*time.Minute), neverDies(t))
	require.Equal(t, 1, w.countEvents("Reachable: both API servers answer"), "thawed")
	require.Len(t, reported, 3)
}

// TestDryRunForHours: Run observes a fleet that needs changes for six hours. Nothing changes, each change is
// reported and logged once, and objects are looked at only now and then.
// Invariants: P40
func TestDryRunForHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, drivertest.MemoryOptions{})
		w.at = time.Now()
		w.fleet()
		w.late("late", machineset.OwnerKind)
		w.addOrphanVM("blue", "web-lost")
		o := w.options()
		o.Runtime.Now, o.Runtime.Each, o.DryRun, o.Policies.Safety, o.Classes.Keep = time.Now, nil, true, safety.DefaultPolicy(), true
		var log bytes.Buffer
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		var mu sync.Mutex
		var failed []error
		reported, passes := map[string]int{}, map[manager.Kind]int{}
		o.Hooks.Event = nil
		o.Hooks.DryRun = func(_ manager.Kind, _ object.Key, what, _, _ string) {
			mu.Lock()
			defer mu.Unlock()
			reported[what]++
		}
		o.Hooks.Pass = func(kind manager.Kind, _ object.Key, _ int, _ manager.Result, err error) {
			mu.Lock()
			defer mu.Unlock()
			passes[kind]++
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				failed = append(failed, err)
			}
		}
		m, err := manager.New(o)
		require.NoError(t, err)
		before := w.contents()
		run, cancel := context.WithTimeout(t.Context(), 6*time.Hour)
		defer cancel()
		require.NoError(t, m.Run(run))
		require.Empty(t, failed)
		require.Equal(t, before, w.contents())
		require.Equal(t, map[string]int{
			"update deployment fleet/web": 1, "update machine fleet/late": 1, "delete machine fleet/late": 1,
			"call DeleteMachine for machine fleet/web-lost": 1, "update class fleet/small": 1, "update secret fleet/boot": 1,
		}, reported)
		require.Equal(t, len(reported), strings.Count(log.String(), "not done in a dry run: "), log.String())
		for kind, n := range passes {
			most := 6*6 + 10 // at the pace of Resync
			if kind.Fleet() {
				most = 6*60 + 10
			}
			require.LessOrEqual(t, n, most, kind)
		}
	})
}

// TestDryRunOfStaleCaches: a change that would meet a conflict is not reported; the pass begins again.
// Invariants: P40
func TestDryRunOfStaleCaches(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	var reported []string
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) {
		o.DryRun = true
		o.Hooks.DryRun = func(_ manager.Kind, _ object.Key, what, reason, _ string) {
			reported = append(reported, reason+" "+what)
		}
	}
	p := w.start(&testkit.Fuse{}, true) // its caches do not see what follows
	w.setOptions = nil
	real := w.start(&testkit.Fuse{}, false)
	require.NoError(t, real.pass(manager.KindDeployment, fleetKey))
	require.NoError(t, p.pass(manager.KindDeployment, fleetKey))
	require.Empty(t, reported, "the finalizer and the set exist already")
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	require.NoError(t, p.pass(manager.KindDeployment, fleetKey))
	sets, err := w.sets.List(ctx, store.Query{})
	require.NoError(t, err)
	require.Equal(t, []string{"DeleteSet delete set " + sets[0].Key.String()}, reported)
}

// TestDryRunReportsAgain: if an object is replaced by another of its name, the same change is reported again.
func TestDryRunReportsAgain(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	p := w.twin(true)
	for range 2 {
		m := w.late("late", machineset.OwnerKind)
		_, err := p.look(manager.KindMachine, m.Key)
		require.NoError(t, err)
		require.Equal(t, []string{"update machine fleet/late"}, p.reported)
		require.NoError(t, w.machines.Delete(ctx, m.Key, ""))
		_, err = p.look(manager.KindMachine, m.Key)
		require.NoError(t, err)
		require.Empty(t, p.reported)
	}
}

// TestDryRunReasons: each report has the reason of the decision that ordered it, and one of several orders has a
// reason of its own.
func TestDryRunReasons(t *testing.T) {
	w, _ := crowded(t)
	p := w.twin(true)
	_, err := p.look(manager.KindDeployment, fleetKey)
	require.NoError(t, err)
	require.Len(t, p.reasons, 1)
	require.Contains(t, p.reasons[0], overshoot.ReasonFreeze.String()+": ")

	w, _ = fleetWithoutHealth(t)
	w.at = w.at.Add(11 * time.Minute)
	p = w.twin(true)
	_, err = p.look(manager.KindMachine, keysOf(w.machines)[0])
	require.NoError(t, err)
	require.Empty(t, p.reported, "the process has just begun to watch")
	w.at = w.at.Add(machine.DefaultPolicy().Grace)
	_, err = p.look(manager.KindMachine, keysOf(w.machines)[0])
	require.NoError(t, err)
	require.Equal(t, []string{"update deployment fleet/web"}, p.reported)
	require.Contains(t, p.reasons[0], replacement.ReasonTakeSlot.String()+": ")

	w = newWorld(t, drivertest.MemoryOptions{})
	w.loneSet(3)
	running := func() bool { return w.phases()[machine.PhaseRunning] == 3 }
	w.until(w.start(&testkit.Fuse{}, false), running, neverDies(t))
	odd := w.pick(func(*machine.Machine) bool { return true }).Clone()
	odd.Status.Phase = machine.PhaseUnknown
	_, err = w.machines.UpdateStatus(ctx, odd)
	require.NoError(t, err)
	set := w.set().Clone()
	set.Spec.Replicas = 0
	_, err = w.sets.Update(ctx, set)
	require.NoError(t, err)
	p = w.twin(true)
	_, err = p.look(manager.KindSet, set.Key)
	require.NoError(t, err)
	require.Len(t, p.reported, 3)
	for i, what := range p.reported {
		phase := machine.PhaseRunning
		if what == "delete machine "+odd.Key.String() {
			phase = machine.PhaseUnknown
		}
		require.Contains(t, p.reasons[i], string(phase), what)
	}
}

// TestDryRunMarks: for a fleet that is to be updated in place, each machine is reported by its name.
func TestDryRunMarks(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.inPlaceFleet()
	w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	w.change(version("2"))
	most := 0
	for n := range 60 {
		observer := w.twin(true)
		_, err := observer.look(manager.KindDeployment, fleetKey)
		require.NoError(t, err)
		for i, what := range observer.reported {
			if name, marked := strings.CutPrefix(what, "update machine "+namespace+"/"); marked {
				require.Contains(t, observer.reasons[i], name)
				most = max(most, i+1)
			}
		}
		_ = w.start(&testkit.Fuse{BlowAt: 1 + n/3, BlowAfter: true}, false).pass(manager.KindDeployment, fleetKey)
	}
	require.Equal(t, 3, most)
}
