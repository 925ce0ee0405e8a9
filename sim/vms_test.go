package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/store"
)

// ownerless reports whether a VM lives whose machine's record is gone.
func (r *run) ownerless() bool {
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(r.t, err)
	names := map[string]bool{}
	for _, m := range machines {
		names[m.Name] = true
	}
	for _, vm := range r.w.Provider().VMs() {
		if !names[vm.Name] {
			return true
		}
	}
	return false
}

// TestLateCreatesAreCollected: a create whose caller died takes effect when its machine is gone. No
// process knows of it, and nothing of it is left in the end.
// Invariants: P15
func TestLateCreatesAreCollected(t *testing.T) {
	seen := 0
	for seed := range uint64(60) {
		r := &run{t: t}
		faults := sim.Faults{CallTime: 40 * time.Second, Kills: 1, KillWithin: 70, Late: 1, LateBy: 2 * time.Minute, Latency: time.Second}
		r.open(sim.Options{Seed: seed, Faults: faults, Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}}}, fleet(3, deployment.Strategy{}))
		late := false
		r.w.Watch(func() { late = late || r.ownerless() })
		require.NoError(t, r.w.Run(45*time.Second))
		r.scale(0)
		require.NoError(t, r.w.Run(time.Hour), "seed %d", seed)
		require.NoError(t, r.w.Deployments().Delete(ctx, web, ""))
		require.NoError(t, r.w.Until(r.empty, patience), "seed %d: %s", seed, r.left())
		r.w.Close()
		if late {
			seen++
		}
	}
	require.Positive(t, seen, "none came late")
}

// TestStraysOnlyAreCollected: in a quiet world every orphan VM is deleted, three in a period, and
// no VM of the fleet.
func TestStraysOnlyAreCollected(t *testing.T) {
	r := &run{t: t}
	r.open(sim.Options{Faults: busy(), Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}}}, fleet(4, deployment.Strategy{}))
	defer r.w.Close()
	r.complete()
	own := r.w.Provider().VMs()
	for i := range 6 {
		r.stray(i)
	}
	require.Equal(t, 6, r.w.OrphanVMs())
	require.NoError(t, r.w.Until(func() bool { return r.w.OrphanVMs() <= 3 }, 18*time.Minute))
	require.Equal(t, 3, r.w.OrphanVMs(), "the brake")
	require.NoError(t, r.w.Until(func() bool { return r.w.OrphanVMs() == 0 }, 18*time.Minute))
	require.NoError(t, r.w.Run(time.Hour))
	require.Equal(t, own, r.w.Provider().VMs())
}

// bereft reports whether there is a machine whose set, or a set whose deployment, is gone.
func (r *run) bereft() bool {
	owners := map[string]bool{}
	sets, err := r.w.Sets().List(ctx, store.Query{})
	require.NoError(r.t, err)
	deployments, err := r.w.Deployments().List(ctx, store.Query{})
	require.NoError(r.t, err)
	for _, d := range deployments {
		owners[d.UID] = true
	}
	lone := false
	for _, s := range sets {
		owners[s.UID], lone = true, lone || !owners[s.Owner.UID]
	}
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(r.t, err)
	for _, m := range machines {
		lone = lone || !owners[m.Owner.UID]
	}
	return lone
}

// TestLateStoreCreatesGo: the create of a machine or a set is under way for up to ten minutes when
// its process dies, and takes effect when its owner is gone. The object is deleted with its VM.
// Invariants: P29
func TestLateStoreCreatesGo(t *testing.T) {
	seen := 0
	for seed := range uint64(60) {
		r := &run{t: t}
		faults := sim.Faults{Latency: 3 * time.Second, Kills: 1, KillWithin: 25, Late: 1, LateBy: 10 * time.Minute, Restart: time.Second}
		r.open(sim.Options{Seed: seed, Faults: faults, Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}}}, fleet(5, deployment.Strategy{}))
		lone := false
		r.w.Watch(func() { lone = lone || r.bereft() })
		require.NoError(t, r.w.Run(20*time.Second))
		require.NoError(t, r.w.Deployments().Delete(ctx, web, ""))
		require.NoError(t, r.w.Run(15*time.Minute), "seed %d", seed)
		require.NoError(t, r.w.Until(r.empty, time.Hour), "seed %d: %s", seed, r.left())
		r.w.Close()
		if lone {
			seen++
		}
	}
	require.Positive(t, seen, "none came late")
}

// clusterless is a fleet of three without a cluster that has run for a while.
func clusterless(t *testing.T, seed uint64) *run {
	r := &run{t: t}
	r.open(sim.Options{
		Seed: seed, NoCluster: true, Faults: sim.Faults{Latency: time.Second, CacheLag: 2 * time.Second, CallTime: 5 * time.Second},
		Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}},
	}, fleet(3, deployment.Strategy{}))
	r.complete()
	r.wait(time.Duration(seed) * 5 * time.Minute)
	return r
}

// phase returns that of a machine. Empty: it is gone.
func (r *run) phase(name string) machine.Phase {
	m, err := r.w.Machines().Get(ctx, object.Key{Namespace: web.Namespace, Name: name})
	if err != nil {
		return ""
	}
	return m.Status.Phase
}

// TestP54DeadVMWithoutACluster: somebody kills a VM of a fleet without a cluster. Its machine is Failed within
// three minutes, and replaced, alone.
// Invariants: P54
func TestP54DeadVMWithoutACluster(t *testing.T) {
	for seed := range uint64(5) {
		r := clusterless(t, seed+1)
		vm := r.w.Provider().VMs()[0]
		require.True(t, r.w.Provider().Remove(vm.ID))
		gone := func() bool {
			m, err := r.w.Machines().Get(ctx, object.Key{Namespace: web.Namespace, Name: vm.Name})
			return err != nil || m.Deleted() || m.Status.Phase == machine.PhaseFailed
		}
		require.NoError(t, r.w.Until(gone, 3*time.Minute))
		r.complete()
		r.wait(time.Hour)
		require.Equal(t, 4, r.w.Made())
		r.w.Close()
	}
}

// TestP54UnhealthyVMWithoutACluster: a VM that is there and does not work makes its machine Unknown within two
// minutes. One that works again in time stays, one that does not is replaced.
// Invariants: P54
func TestP54UnhealthyVMWithoutACluster(t *testing.T) {
	for seed := range uint64(5) {
		r := clusterless(t, seed+1)
		vms := r.w.Provider().VMs()
		sick, well := vms[0], vms[1]
		require.True(t, r.w.Provider().SetUnhealthy(sick.ID, "stopped"))
		require.True(t, r.w.Provider().SetUnhealthy(well.ID, "rebooting"))
		noticed := func() bool {
			return r.phase(sick.Name) == machine.PhaseUnknown && r.phase(well.Name) == machine.PhaseUnknown
		}
		require.NoError(t, r.w.Until(noticed, 2*time.Minute))
		r.w.Provider().SetUnhealthy(well.ID, "")
		require.NoError(t, r.w.Until(func() bool { return r.phase(well.Name) == machine.PhaseAvailable }, 2*time.Minute))
		require.Equal(t, machine.PhaseUnknown, r.phase(sick.Name))
		require.NoError(t, r.w.Until(func() bool { return r.phase(sick.Name) != machine.PhaseUnknown }, 12*time.Minute))
		r.complete()
		r.wait(time.Hour)
		require.Equal(t, 4, r.w.Made())
		r.w.Close()
	}
}
