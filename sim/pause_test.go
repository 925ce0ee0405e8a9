package sim_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/store"
)

const pausedKey = "millwright-go/paused"

// setPause writes the annotation that pauses an object, or removes it if value is empty.
func setPause[T object.Object[T]](r *run, c store.Collection[T], key object.Key, value string) {
	_, err := store.Edit(ctx, c, key, func(o T) error {
		meta := o.ObjectMeta()
		if value == "" {
			delete(meta.Annotations, pausedKey)
			return nil
		}
		if meta.Annotations == nil {
			meta.Annotations = map[string]string{}
		}
		meta.Annotations[pausedKey] = value
		return nil
	})
	if !errors.Is(err, store.ErrNotFound) {
		require.NoError(r.t, err, "%s", key)
	}
}

// pauseSome pauses a third of the machines and a quarter of the sets; n chooses which ones. With resume,
// it resumes all.
func (r *run) pauseSome(n uint64, resume bool) {
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(r.t, err)
	for i, m := range machines {
		switch {
		case resume:
			setPause(r, r.w.Machines(), m.Key, "")
		case (n+uint64(i))%3 == 0:
			setPause(r, r.w.Machines(), m.Key, "true")
		}
	}
	sets, err := r.w.Sets().List(ctx, store.Query{})
	require.NoError(r.t, err)
	for i, s := range sets {
		switch {
		case resume:
			setPause(r, r.w.Sets(), s.Key, "")
		case (n+uint64(i))%4 == 0:
			setPause(r, r.w.Sets(), s.Key, "true")
		}
	}
}

// pausedVMs returns the VMs of running machines that are paused now, and a function that requires them to
// exist.
func (r *run) pausedVMs() (ids map[string]bool, requireAll func()) {
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(r.t, err)
	ids = map[string]bool{}
	for _, m := range machines {
		if m.Annotations[pausedKey] == "true" && !m.Deleted() && m.Status.Phase == machine.PhaseRunning {
			ids[m.Spec.ProviderID] = true
		}
	}
	return ids, func() {
		exists := map[string]bool{}
		for _, vm := range r.w.Provider().VMs() {
			exists[vm.ID] = true
		}
		for id := range ids {
			require.True(r.t, exists[id], "VM %s of a paused machine is gone", id)
		}
	}
}

// TestPausesInAStorm: machines and sets are paused and resumed while a fleet is edited, machines expire,
// and anything fails. A running machine that is paused keeps its VM as long as it is paused, and the bounds
// hold. Once all are resumed, the fleet converges to the last spec and can be deleted.
// Invariants: P7
func TestPausesInAStorm(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := &run{t: t}
			d := fleet(4, deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: 1}})
			d.Spec.MaxAge = 6 * time.Hour
			r.open(sim.Options{Seed: seed, Faults: storm(), Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}}}, d)
			defer r.w.Close()
			pausedCount, classes := 0, []string{"large", "huge", "small"}
			for i := range uint64(4) {
				r.wait(time.Duration(20+seed%5*30) * time.Minute)
				r.pauseSome(seed+i, false)
				r.wait(time.Minute) // orders from before the pause
				paused, requireAll := r.pausedVMs()
				pausedCount += len(paused)
				r.roll(classes[(seed+i)%3])
				r.scale(int32((seed + 3*i) % 6))
				r.addOrphanVM(1)
				r.wait(2 * time.Hour)
				requireAll()
				r.pauseSome(0, true)
			}
			require.Positive(t, pausedCount, "paused machines")
			r.w.StopFaults()
			require.NoError(t, r.w.Until(func() bool { return r.w.Complete("web") }, patience), "seed %d", seed)
			require.NoError(t, r.w.Deployments().Delete(ctx, web, ""))
			require.NoError(t, r.w.Until(r.empty, patience), "seed %d: %s", seed, r.left())
		})
	}
}

// TestDeletedInAStorm: a fleet is deleted during its creation or a rollout while anything fails, including
// late calls of dead processes. All its objects are deleted in the end, and no VM is left.
// Invariants: P14
func TestDeletedInAStorm(t *testing.T) {
	seeds := uint64(80)
	if testing.Short() {
		seeds = 15
	}
	for part := range uint64(5) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for seed := part; seed < seeds; seed += 5 {
				deleteInAStorm(t, seed)
			}
		})
	}
}

func deleteInAStorm(t *testing.T, seed uint64) {
	r := &run{t: t}
	r.open(sim.Options{Seed: seed, Faults: storm(), Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}}},
		fleet(int32(2+seed%5), deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: 2}}))
	defer r.w.Close()
	r.wait(time.Duration(seed%40) * 5 * time.Second)
	if seed%2 == 0 {
		r.wait(20 * time.Minute)
		r.roll("large")
		r.wait(time.Duration(seed%40) * 5 * time.Second)
	}
	require.NoError(t, r.w.Deployments().Delete(ctx, web, ""))
	r.wait(30 * time.Minute) // faults go on
	r.w.StopFaults()
	require.NoError(t, r.w.Until(r.empty, patience), "seed %d: %s", seed, r.left())
}

// TestMaxAgeRenewsTheFleet: the maximum age of machines is a week. In a month each machine is replaced about
// four times, within the bounds. The age at which a machine is replaced varies by a tenth.
func TestMaxAgeRenewsTheFleet(t *testing.T) {
	r := &run{t: t}
	d := fleet(6, deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: 2}})
	d.Spec.MaxAge = 7 * 24 * time.Hour
	r.start(7, sim.Faults{}, d, manager.Hooks{})
	defer r.w.Close()
	r.awaitComplete()
	most := 0
	r.w.Watch(func() {
		machines, _ := r.w.Machines().List(ctx, store.Query{})
		most = max(most, len(machines))
	})
	r.wait(31 * 24 * time.Hour)
	r.awaitComplete()
	require.GreaterOrEqual(t, r.w.Made(), 6+4*5)
	require.LessOrEqual(t, r.w.Made(), 6+4*6+6)
	require.LessOrEqual(t, most, 8)
	found, err := r.w.Deployments().Get(ctx, web)
	require.NoError(t, err)
	require.EqualValues(t, 1, found.Revision, "replacement for age made a new revision")
}

// storm returns faults with which anything fails.
func storm() sim.Faults {
	f := busy()
	f.LostAnswer, f.Call, f.LostCall, f.Eventually = 0.03, 0.1, 0.05, 20*time.Second
	f.DeadBoot, f.Flap, f.FlapForGood = 0.1, 0.3, 0.3
	f.Kills, f.KillWithin, f.Restart = 6, 150, 2*time.Minute
	f.Late, f.LateBy = 0.5, 5*time.Minute
	return f
}
