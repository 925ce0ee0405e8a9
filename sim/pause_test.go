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

// setPause writes the annotation, as a user does who tries again after a conflict.
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

// pauseSome pauses or resumes some machines and sets, by a number.
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

// untouched records the VMs of machines that are paused now. Later it reports whether a VM is gone
// that was not already being deleted.
func (r *run) untouched() (kept map[string]bool, still func()) {
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(r.t, err)
	kept = map[string]bool{}
	for _, m := range machines {
		if m.Annotations[pausedKey] == "true" && !m.Deleted() && m.Status.Phase == machine.PhaseRunning {
			kept[m.Spec.ProviderID] = true
		}
	}
	return kept, func() {
		there := map[string]bool{}
		for _, vm := range r.w.Provider().VMs() {
			there[vm.ID] = true
		}
		for id := range kept {
			require.True(r.t, there[id], "VM %s of a paused machine is gone", id)
		}
	}
}

// TestPausesInAStorm: machines and sets are paused and resumed while a fleet is edited, machines
// get too old, and anything fails. A machine that was paused while it ran keeps its VM as long as
// it is paused, and the bounds hold. Once all are resumed, the fleet converges to the last spec and
// can be deleted.
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
			kept, classes := 0, []string{"large", "huge", "small"}
			for i := range uint64(4) {
				r.wait(time.Duration(20+seed%5*30) * time.Minute)
				r.pauseSome(seed+i, false)
				r.wait(time.Minute) // what was under way
				paused, still := r.untouched()
				kept += len(paused)
				r.roll(classes[(seed+i)%3])
				r.scale(int32((seed + 3*i) % 6))
				r.stray(1)
				r.wait(2 * time.Hour)
				still()
				r.pauseSome(0, true)
			}
			require.Positive(t, kept, "some were paused")
			r.w.StopFaults()
			require.NoError(t, r.w.Until(func() bool { return r.w.Complete("web") }, patience), "seed %d", seed)
			require.NoError(t, r.w.Deployments().Delete(ctx, web, ""))
			require.NoError(t, r.w.Until(r.empty, patience), "seed %d: %s", seed, r.left())
		})
	}
}

// TestDeletedInAStorm: a fleet is deleted at some moment of its creation or of a rollout while
// anything fails, including late orders of dead processes. All its objects are deleted in the end,
// and no VM is left.
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
				endInAStorm(t, seed)
			}
		})
	}
}

func endInAStorm(t *testing.T, seed uint64) {
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

// TestFleetIsRenewed: the machines of a fleet may get a week old. Over a month the fleet is
// replaced again and again, each time within its bounds, spread over the tenth of a week by which
// the ages differ, and at rest in between.
func TestFleetIsRenewed(t *testing.T) {
	r := &run{t: t}
	d := fleet(6, deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: 2}})
	d.Spec.MaxAge = 7 * 24 * time.Hour
	r.start(7, sim.Faults{}, d, manager.Hooks{})
	defer r.w.Close()
	r.complete()
	most := 0
	r.w.Watch(func() {
		machines, _ := r.w.Machines().List(ctx, store.Query{})
		most = max(most, len(machines))
	})
	r.wait(31 * 24 * time.Hour)
	r.complete()
	require.GreaterOrEqual(t, r.w.Made(), 6+4*5)
	require.LessOrEqual(t, r.w.Made(), 6+4*6+6)
	require.LessOrEqual(t, most, 8)
	found, err := r.w.Deployments().Get(ctx, web)
	require.NoError(t, err)
	require.EqualValues(t, 1, found.Revision, "it is no rollout")
}

// storm is a world in which anything fails.
func storm() sim.Faults {
	f := busy()
	f.LostAnswer, f.Call, f.LostCall, f.Eventually = 0.03, 0.1, 0.05, 20*time.Second
	f.DeadBoot, f.Flap, f.FlapForGood = 0.1, 0.3, 0.3
	f.Kills, f.KillWithin, f.Restart = 6, 150, 2*time.Minute
	f.Late, f.LateBy = 0.5, 5*time.Minute
	return f
}
