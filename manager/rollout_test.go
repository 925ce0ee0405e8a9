package manager_test

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// reported counts the events of a reason.
func (w *world) reported(reason decision.Reason) (n int) {
	for _, line := range w.events {
		if strings.Contains(line, ": "+reason.String()+": ") {
			n++
		}
	}
	return n
}

// request asks for a rollback, and waits until it is answered and the fleet has settled.
func (w *world) request(p *process, revision int64) {
	w.change(func(d *deployment.Deployment) { d.Spec.RollbackTo = &deployment.Rollback{Revision: revision} })
	w.until(p, func() bool {
		d, err := w.deployments.Get(ctx, fleetKey)
		require.NoError(w.t, err)
		return d.Spec.RollbackTo == nil && w.settled(3)()
	}, nil)
}

// TestRollbackIsReported: one event answers each request, even if the same request comes again.
func TestRollbackIsReported(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.bounded = true
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	w.request(p, 7)
	w.request(p, 7)
	require.Equal(t, 2, w.reported(deployment.ReasonRollbackRevisionNotFound))
	w.request(p, 1)
	require.Equal(t, 1, w.reported(deployment.ReasonRollbackTemplateUnchanged))

	w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"version": "2"} })
	w.until(p, w.settled(3), neverDies(t))
	w.request(p, 0)
	require.Equal(t, 1, w.reported(deployment.ReasonRollbackDone))
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.Empty(t, d.Spec.Template.Annotations)
	require.Equal(t, int64(3), d.Revision)
}

// TestRecreateThroughTheManager: a fleet is recreated twice. There are never machines of two sets at a time, and
// without a history the old sets are deleted.
func TestRecreateThroughTheManager(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	none := int32(0)
	w.change(func(d *deployment.Deployment) {
		d.Spec.Strategy.Kind, d.Spec.RevisionHistoryLimit = deployment.Recreate, &none
	})
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	for _, version := range []string{"2", "3"} {
		w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"version": version} })
		w.until(p, func() bool {
			machines, err := w.machines.List(ctx, store.Query{})
			require.NoError(t, err)
			owners := map[string]bool{}
			for _, m := range machines {
				owners[m.Owner.UID] = true
			}
			require.LessOrEqual(t, len(owners), 1, "machines of two sets\n%s", w.dump())
			return w.settled(3)()
		}, neverDies(t))
	}
	for range 5 { // sets report that they are empty, and are deleted
		w.at = w.at.Add(time.Minute)
		w.round(p)
	}
	require.Len(t, keysOf(w.sets), 1)
}

// TestRolloutCompleteIsReportedOnce: each rollout is reported once. Another process, another size, a pause or a
// replaced VM reports nothing.
func TestRolloutCompleteIsReportedOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, drivertest.MemoryOptions{})
		w.fleet()
		p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
		rollouts, replicas := 1, 3
		require.Equal(t, rollouts, w.countEvents("RolloutComplete: the rollout of revision 1 is complete"))
		for range rapid.IntRange(1, 6).Draw(rt, "actions") {
			switch rapid.SampledFrom([]string{"roll", "scale", "restart", "pause", "lose"}).Draw(rt, "action") {
			case "roll":
				rollouts++
				w.change(func(d *deployment.Deployment) {
					d.Spec.Template.Annotations = map[string]string{"version": strconv.Itoa(rollouts)}
				})
			case "scale":
				replicas = rapid.IntRange(1, 4).Draw(rt, "replicas")
				w.change(func(d *deployment.Deployment) { d.Spec.Replicas = int32(replicas) })
			case "restart":
				p = w.start(&testkit.Fuse{}, false)
			case "pause":
				w.change(func(d *deployment.Deployment) { d.Spec.Paused = true })
				p = w.until(p, func() bool {
					d, err := w.deployments.Get(ctx, fleetKey)
					return err == nil && d.Status.ObservedGeneration == d.Generation
				}, neverDies(t))
				w.change(func(d *deployment.Deployment) { d.Spec.Paused = false })
			case "lose":
				for _, m := range keysOf(w.machines)[:1] {
					require.NoError(t, w.machines.Delete(ctx, m, ""))
				}
			}
			p = w.until(p, w.settled(replicas), neverDies(t))
			require.Equal(t, rollouts, w.countEvents("RolloutComplete: "))
			if d, err := w.deployments.Get(ctx, fleetKey); err == nil {
				require.Zero(t, d.Status.RolloutSince)
			}
		}
	})
}

// TestP20ScaleDownTakesWhatWasChosen: a scale-down through the manager deletes the chosen machine. It costs two
// writes of the deployment's spec and one of the set, for size and name.
func TestP20ScaleDownTakesWhatWasChosen(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	for _, to := range []int32{2, 1} {
		keys := keysOf(w.machines)
		chosen := keys[len(keys)-1].Name
		require.NoError(t, p.ScaleDown(ctx, fleetKey, []string{chosen}, to))
		require.NoError(t, p.ScaleDown(ctx, fleetKey, []string{chosen}, to), "asked again")
		require.ErrorIs(t, p.ScaleDown(ctx, fleetKey, []string{chosen}, to-1), deployment.ErrMachineDeleting)
		p = w.until(p, w.settled(int(to)), neverDies(t))
		_, err := w.machines.Get(ctx, object.Key{Namespace: namespace, Name: chosen})
		require.ErrorIs(t, err, store.ErrNotFound)
	}
	require.Len(t, w.made, 3, "none was replaced")
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.NotContains(t, d.Annotations, deployment.DefaultPolicy().Keys.DeletionCandidates, "the annotation is removed in the end")
	require.ErrorIs(t, p.ScaleDown(ctx, fleetKey, []string{"nobody"}, 0), deployment.ErrNotMember)
	require.ErrorIs(t, p.ScaleDown(ctx, object.Key{Name: "nobody"}, nil, 0), store.ErrNotFound)
}

// TestScaleDownBeginsAnew: a scale-down begins again if somebody else writes the deployment meanwhile, and gives
// up in the end.
func TestScaleDownBeginsAnew(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	busy := &contested{Collection: w.deployments, conflicts: 3}
	o := manager.Options{
		Store:  manager.Store{Machines: w.machines, Sets: w.sets, Deployments: busy, Classes: w.classes},
		Driver: w.provider, Runtime: manager.Runtime{Now: w.now},
	}
	m, err := manager.New(o)
	require.NoError(t, err)
	require.NoError(t, m.ScaleDown(ctx, fleetKey, nil, 1))
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.EqualValues(t, 1, d.Spec.Replicas)
	busy.conflicts = 1000
	require.ErrorIs(t, m.ScaleDown(ctx, fleetKey, nil, 0), store.ErrConflict)
	o.Store.Deployments = nil
	m, err = manager.New(o)
	require.NoError(t, err)
	require.ErrorIs(t, m.ScaleDown(ctx, fleetKey, nil, 0), manager.ErrNoDeployments)
}

// contested is a collection that somebody else keeps writing to.
type contested struct {
	store.Collection[*deployment.Deployment]
	conflicts int
}

func (c *contested) Update(ctx context.Context, d *deployment.Deployment) (*deployment.Deployment, error) {
	if c.conflicts--; c.conflicts >= 0 {
		return nil, store.ErrConflict
	}
	return c.Collection.Update(ctx, d)
}

// TestP20KilledAmidAScaleDown: wherever the manager dies during a scale-down, the chosen machine is deleted, and
// no other.
// Invariants: P20
func TestP20KilledAmidAScaleDown(t *testing.T) {
	for n := 1; n < 200; n++ {
		w := newWorld(t, drivertest.MemoryOptions{})
		w.fleet()
		p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
		chosen := keysOf(w.machines)[1]
		require.NoError(t, p.ScaleDown(ctx, fleetKey, []string{chosen.Name}, 2))
		died := false
		p = w.until(w.start(&testkit.Fuse{BlowAt: n, BlowAfter: n%2 == 0}, false), w.settled(2), func() *process {
			died = true
			return w.start(&testkit.Fuse{}, false)
		})
		_, err := w.machines.Get(ctx, chosen)
		require.ErrorIs(t, err, store.ErrNotFound, "killed at call %d\n%s", n, w.dump())
		require.Len(t, w.made, 3, "killed at call %d", n)
		for range 3 {
			w.round(p)
		}
		for _, key := range keysOf(w.sets) {
			set, err := w.sets.Get(ctx, key)
			require.NoError(t, err)
			require.Empty(t, alive(w, set), "killed at call %d", n)
		}
		if !died {
			return
		}
	}
	t.Fatal("a scale-down takes no end")
}

// alive returns the deletion candidates of a set that still exist.
func alive(w *world, set *machineset.Set) (out []*machine.Machine) {
	for _, v := range set.Instructions.DeletionCandidates {
		if m, err := w.machines.Get(ctx, object.Key{Namespace: namespace, Name: v.Name}); err == nil {
			out = append(out, m)
		}
	}
	return out
}

// TestP8StrictQuotaLife: under the strict quota a fleet never has more than R + S machines, including those that
// are being deleted.
// Invariants: P8
func TestP8StrictQuotaLife(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.policy = deployment.DefaultPolicy()
	w.policy.StrictQuota = true
	w.life(w.start(&testkit.Fuse{}, false), neverDies(t))
	require.Len(t, w.made, 6)
}

// TestP8StrictQuotaHoldsForSets: the deployment's policy is enough for sets, too: a machine that is deleted by
// hand is replaced only once it is gone.
func TestP8StrictQuotaHoldsForSets(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.policy = deployment.DefaultPolicy()
	w.policy.StrictQuota = true
	w.fleet()
	w.change(func(d *deployment.Deployment) {
		d.Spec.Strategy.MaxSurge.Value, d.Spec.Strategy.MaxUnavailable.Value = 0, 1
	})
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	w.bounded = true
	key := keysOf(w.machines)[0]
	w.provider.FailNext(codes.DeleteMachine, codes.New(codes.Unavailable, "it takes its time"))
	require.NoError(t, w.machines.Delete(ctx, key, ""))
	w.until(p, w.replaced(3, key), neverDies(t))
	require.Len(t, w.made, 4)
}

// TestMinReadyIsIgnoredBySets: the deployment's policy is enough for MinReady, too.
func TestMinReadyIsIgnoredBySets(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.policy = deployment.DefaultPolicy()
	w.policy.IgnoreMinReady = true
	w.fleet()
	w.change(func(d *deployment.Deployment) { d.Spec.MinReady = 24 * time.Hour })
	w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	sets, err := w.sets.List(ctx, store.Query{})
	require.NoError(t, err)
	require.Len(t, sets, 1)
	require.EqualValues(t, 3, sets[0].Status.Available)
	require.Equal(t, 24*time.Hour, sets[0].Spec.MinReady)
}

// TestMarksWakeMachines: machines that are settled are woken when the rollout marks of their set change, and only then.
func TestMarksWakeMachines(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	sets, err := w.sets.List(ctx, store.Query{})
	require.NoError(t, err)
	require.Len(t, sets, 1)
	wakes := p.Wakes()
	i := slices.IndexFunc(wakes, func(wake manager.Wake) bool { return wake.From == manager.KindSet && wake.To == manager.KindMachine })
	woken := func(before, after *machineset.Set) []object.Key {
		return wakes[i].Keys(ctx, before, after)
	}
	marked := sets[0].Clone()
	marked.Instructions.Marks.Avoid = true
	require.ElementsMatch(t, keysOf(w.machines), woken(sets[0], marked))
	require.ElementsMatch(t, keysOf(w.machines), woken(nil, marked), "the cache of sets may lag behind that of machines")
	require.Len(t, woken(marked, sets[0]), 3)
	resized := marked.Clone()
	resized.Spec.Replicas++
	require.Empty(t, woken(marked, resized))
	require.Empty(t, woken(nil, sets[0]))
	require.Empty(t, woken(marked, nil))
}

// TestStuckFleetSaysWhy: a manager that starts with a fleet whose quota is used up says so at once, and again
// every ten minutes. It stops once the machines run.
func TestStuckFleetSaysWhy(t *testing.T) {
	w := guardedWorld(t)
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	require.Zero(t, w.countEvents("HeldUp: "))
	w.refuse = func(c driver.CallInfo) error {
		if c.Method == codes.CreateMachine {
			return codes.New(codes.ResourceExhausted, "no cores are left")
		}
		return nil
	}
	w.change(func(d *deployment.Deployment) { d.Spec.Replicas = 5 })
	w.until(p, w.lasts(3*time.Minute), neverDies(t))
	before := w.countEvents("HeldUp: ")
	require.Equal(t, 1, before)

	p = w.until(w.start(&testkit.Fuse{}, false), func() bool { return w.countEvents("HeldUp: ") > before }, neverDies(t))
	began := w.at
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.Contains(t, deployment.Missing(d), "RESOURCE_EXHAUSTED")
	require.Contains(t, deployment.Missing(d), "no cores are left")
	p = w.until(p, w.lasts(9*time.Minute), neverDies(t))
	require.Equal(t, before+1, w.countEvents("HeldUp: "))
	p = w.until(p, func() bool { return w.countEvents("HeldUp: ") > before+1 }, neverDies(t))
	require.LessOrEqual(t, w.at.Sub(began), 12*time.Minute)

	w.refuse = nil
	p = w.until(p, w.settled(5), neverDies(t))
	reported := w.countEvents("HeldUp: ")
	w.until(p, w.lasts(time.Hour), neverDies(t))
	require.Equal(t, reported, w.countEvents("HeldUp: "))
}

// TestWhatIsReleasedIsAWarning: a set or machine that somebody relabels keeps its VMs, which no owner counts any
// more. An operator has to know.
func TestWhatIsReleasedIsAWarning(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	require.Empty(t, w.warnings)
	warns := func(reason string) func() bool {
		return func() bool { return strings.Contains(strings.Join(w.warnings, "\n"), ": "+reason+": ") }
	}
	relabel := func(m *object.Meta) {
		m.Labels = maps.Clone(m.Labels)
		m.Labels["app"] = "other"
	}
	_, err := store.Edit(ctx, w.machines, keysOf(w.machines)[0], func(m *machine.Machine) error { relabel(&m.Meta); return nil })
	require.NoError(t, err)
	p = w.until(p, warns("Release"), neverDies(t))
	_, err = store.Edit(ctx, w.sets, keysOf(w.sets)[0], func(s *machineset.Set) error { relabel(&s.Meta); return nil })
	require.NoError(t, err)
	w.until(p, warns("ReleaseSet"), neverDies(t))
}
