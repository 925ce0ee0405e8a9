package manager_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

const pausedKey = "millwright-go/paused"

// annotate writes an annotation as a user would; an empty value removes it.
func annotate[T object.Object[T]](w *world, c store.Collection[T], key object.Key, name, value string) {
	found, err := c.Live().Get(ctx, key)
	require.NoError(w.t, err)
	changed := found.Clone()
	meta := changed.ObjectMeta()
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	if meta.Annotations[name] = value; value == "" {
		delete(meta.Annotations, name)
	}
	_, err = c.Update(ctx, changed)
	require.NoError(w.t, err)
}

// get returns a machine as it is stored.
func (w *world) get(key object.Key) *machine.Machine {
	m, err := w.machines.Get(ctx, key)
	require.NoError(w.t, err)
	return m
}

// TestPausedMachine: a paused machine stays, with all VMs of its name, even if its node is lost or a user deletes
// it. Another machine that is unhealthy is replaced meanwhile, because the paused one takes no place in the
// budget.
func TestPausedMachine(t *testing.T) {
	w := guardedWorld(t)
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	keys := keysOf(w.machines)
	annotate(w, w.machines, keys[0], pausedKey, "true")
	w.sick = map[string]bool{keys[0].Name: true, keys[1].Name: true}
	twin := w.addOrphanVM("blue", keys[0].Name)
	p = w.until(p, w.lasts(2*time.Hour), neverDies(t))
	require.Equal(t, machine.PhaseRunning, w.get(keys[0]).Status.Phase, "a paused machine is not judged")
	require.True(t, w.vmExists(twin), "no VM of a paused machine is an orphan")
	_, err := w.machines.Get(ctx, keys[1])
	require.ErrorIs(t, err, store.ErrNotFound, "the other machine was replaced")
	require.Equal(t, 1, w.lost)

	w.change(func(d *deployment.Deployment) { d.Spec.Replicas = 0 })
	p = w.until(p, w.lasts(time.Hour), neverDies(t))
	require.Equal(t, keys[:1], keysOf(w.machines), "a scale-down does not choose the paused machine")
	require.Contains(t, lookFor(t, p, manager.KindDeployment, fleetKey), "machine "+keys[0].Name+" of it is paused")

	require.NoError(t, w.machines.Delete(ctx, keys[0], ""))
	deletes := count(w, codes.DeleteMachine)
	p = w.until(p, w.lasts(3*time.Hour), neverDies(t))
	require.Equal(t, deletes, count(w, codes.DeleteMachine))
	require.True(t, w.vmExists(twin))

	annotate(w, w.machines, keys[0], pausedKey, "")
	p = w.until(p, func() bool { return len(keysOf(w.machines)) == 0 }, neverDies(t))
	w.until(p, func() bool { return !w.vmExists(twin) }, neverDies(t))
}

// lookFor returns why an object waits.
func lookFor(t *testing.T, p *process, kind manager.Kind, key object.Key) string {
	for _, r := range p.Reconcilers() {
		if r.Kind() == kind {
			result, err := r.Reconcile(ctx, key)
			require.NoError(t, err)
			return result.Why.String()
		}
	}
	return ""
}

// TestPausedSet: while its old set is paused, a rollout stands still, and so does the deletion of the deployment.
func TestPausedSet(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.bounded = true
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	old := w.set().Key
	annotate(w, w.sets, old, pausedKey, "true")
	w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"version": "2"} })
	p = w.until(p, w.lasts(time.Hour), neverDies(t))
	require.Len(t, keysOf(w.machines), 4, "the rollout stops at its bounds")
	require.Contains(t, lookFor(t, p, manager.KindDeployment, fleetKey), "set "+old.Name+" is paused")
	annotate(w, w.sets, old, pausedKey, "false")
	p = w.until(p, w.settled(3), neverDies(t))
	require.Len(t, w.made, 6)

	for _, key := range keysOf(w.sets) {
		annotate(w, w.sets, key, pausedKey, "true")
	}
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	p = w.until(p, w.lasts(time.Hour), neverDies(t))
	require.Len(t, keysOf(w.machines), 3)
	for _, key := range keysOf(w.sets) {
		annotate(w, w.sets, key, pausedKey, "")
	}
	w.until(p, w.empty, neverDies(t))
}

// TestPausesStaleAndKilled: a fleet is made, rolled and scaled, while sets and machines are paused and resumed at
// any call, by processes that die and read old caches. The bounds hold, and once all are resumed the fleet is as
// wanted, with no machine made twice.
// Invariants: P12 P26
func TestPausesStaleAndKilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: rapid.Bool().Draw(t, "needs initialization")})
		w.bounded = true
		lives, toggles := rapid.IntRange(0, 3).Draw(t, "kills"), rapid.IntRange(1, 6).Draw(t, "pauses")
		begin := func() *process {
			f := &testkit.Fuse{}
			if lives > 0 {
				lives--
				f.BlowAt, f.BlowAfter = rapid.IntRange(1, 300).Draw(t, "dies at call"), rapid.Bool().Draw(t, "after it took effect")
			}
			next := rapid.IntRange(1, 200).Draw(t, "pause at call")
			f.Before = func(call int) {
				if call >= next && toggles > 0 {
					toggles, next = toggles-1, call+rapid.IntRange(1, 100).Draw(t, "calls to the next")
					w.toggle(t)
				}
			}
			return w.startLagging(t, f)
		}
		w.fleet()
		p := w.untilResumed(begin(), w.settled(3), begin)
		w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"version": "2"} })
		toggles += 3
		p = w.untilResumed(p, w.settled(3), begin)
		require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
		toggles += 2
		w.untilResumed(p, w.empty, begin)
		if len(w.made) > 6+w.lost {
			t.Fatalf("P12: %d machines made, 6 wanted, %d lost\n%s", len(w.made), w.lost, w.dump())
		}
	})
}

// toggle pauses or resumes a random set or machine.
func (w *world) toggle(t *rapid.T) {
	value := rapid.SampledFrom([]string{"true", "true", ""}).Draw(t, "value")
	if keys := keysOf(w.sets); len(keys) > 0 && rapid.Bool().Draw(t, "a set") {
		annotate(w, w.sets, keys[rapid.IntRange(0, len(keys)-1).Draw(t, "which")], pausedKey, value)
		return
	}
	if keys := keysOf(w.machines); len(keys) > 0 {
		annotate(w, w.machines, keys[rapid.IntRange(0, len(keys)-1).Draw(t, "which")], pausedKey, value)
	}
}

// untilResumed lets an hour pass while some objects are paused. Then it resumes all, and waits for the goal.
func (w *world) untilResumed(p *process, goal func() bool, died func() *process) *process {
	hour := w.lasts(time.Hour)
	p = w.until(p, func() bool { return goal() || hour() }, died)
	return w.until(p, func() bool {
		for _, key := range keysOf(w.sets) {
			if s, err := w.sets.Get(ctx, key); err == nil && s.Annotations[pausedKey] != "" {
				annotate(w, w.sets, key, pausedKey, "")
			}
		}
		for _, key := range keysOf(w.machines) {
			if w.get(key).Annotations[pausedKey] != "" {
				annotate(w, w.machines, key, pausedKey, "")
			}
		}
		return goal()
	}, died)
}

// TestTooOld: a fleet whose machines are all too old is replaced within its bounds, each machine once, wherever
// the manager dies. That is not a rollout.
// Invariants: P4
func TestTooOld(t *testing.T) {
	for n := 0; n < 600; n += 5 {
		w := newWorld(t, drivertest.MemoryOptions{})
		w.bounded = true
		w.fleet()
		w.change(func(d *deployment.Deployment) { d.Spec.MaxAge = 24 * time.Hour })
		w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
		keys := keysOf(w.machines)
		w.at = w.at.Add(36 * time.Hour)
		died := n == 0
		done := func() bool {
			d, err := w.deployments.Get(ctx, fleetKey)
			return err == nil && d.Status.Expired == 0 && w.replaced(3, keys...)()
		}
		w.until(w.start(&testkit.Fuse{BlowAt: n, BlowAfter: n%2 == 0}, false), done, func() *process {
			died = true
			return w.start(&testkit.Fuse{}, false)
		})
		require.Len(t, w.made, 6, "killed at call %d\n%s", n, w.dump())
		require.Len(t, keysOf(w.sets), 1)
		d, err := w.deployments.Get(ctx, fleetKey)
		require.NoError(t, err)
		require.EqualValues(t, 1, d.Revision)
		if !died {
			return
		}
	}
	t.Fatal("a replacement takes no end")
}

// TestPausedKeysAgree: the annotation that pauses is that of the machines' policy, for all kinds.
func TestPausedKeysAgree(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.safety = safety.DefaultPolicy()
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) {
		o.Policies.Machine = machine.DefaultPolicy()
		o.Policies.Machine.Keys.Paused = "example.com/hands-off"
	}
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	key := keysOf(w.machines)[0]
	twin := w.addOrphanVM("blue", key.Name)
	annotate(w, w.machines, key, "example.com/hands-off", "true")
	w.change(func(d *deployment.Deployment) { d.Spec.Replicas = 0 })
	p = w.until(p, w.lasts(time.Hour), neverDies(t))
	require.Equal(t, []object.Key{key}, keysOf(w.machines))
	require.Contains(t, lookFor(t, p, manager.KindDeployment, fleetKey), "is paused")
	require.True(t, w.vmExists(twin))
	require.Equal(t, pausedKey, machineset.DefaultPolicy().Keys.Paused)
	require.Equal(t, pausedKey, w.safety.Keys.Paused, "the policy of the caller does not change")
}
