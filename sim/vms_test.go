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

// hasVMWithoutMachine reports whether a VM exists whose machine's record is gone.
func (r *run) hasVMWithoutMachine() bool {
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

// TestLateCreatesAreCollected: a CreateMachine whose caller has died takes effect after its machine is gone.
// Its VM is collected as an orphan.
// Invariants: P15
func TestLateCreatesAreCollected(t *testing.T) {
	seen := 0
	for seed := range uint64(60) {
		r := &run{t: t}
		faults := sim.Faults{CallTime: 40 * time.Second, Kills: 1, KillWithin: 70, Late: 1, LateBy: 2 * time.Minute, Latency: time.Second}
		r.open(sim.Options{Seed: seed, Faults: faults, Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}}}, fleet(3, deployment.Strategy{}))
		late := false
		r.w.Watch(func() { late = late || r.hasVMWithoutMachine() })
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
	require.Positive(t, seen, "VMs that were created late")
}

// TestOnlyOrphanVMsAreCollected: every orphan VM is deleted, at most three in a period, and no VM of the
// fleet.
func TestOnlyOrphanVMsAreCollected(t *testing.T) {
	r := &run{t: t}
	r.open(sim.Options{Faults: busy(), Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}}}, fleet(4, deployment.Strategy{}))
	defer r.w.Close()
	r.awaitComplete()
	own := r.w.Provider().VMs()
	for i := range 6 {
		r.addOrphanVM(i)
	}
	require.Equal(t, 6, r.w.OrphanVMs())
	require.NoError(t, r.w.Until(func() bool { return r.w.OrphanVMs() <= 3 }, 18*time.Minute))
	require.Equal(t, 3, r.w.OrphanVMs(), "the brake allows three in a period")
	require.NoError(t, r.w.Until(func() bool { return r.w.OrphanVMs() == 0 }, 18*time.Minute))
	require.NoError(t, r.w.Run(time.Hour))
	require.Equal(t, own, r.w.Provider().VMs())
}

// hasObjectWithoutOwner reports whether there is a machine whose set is gone, or a set whose deployment is.
func (r *run) hasObjectWithoutOwner() bool {
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

// TestLateStoreCreatesAreDeleted: the store carries out the create of a machine or a set up to ten minutes
// after its caller has died, when the owner is gone. The object is deleted with its VM.
// Invariants: P29
func TestLateStoreCreatesAreDeleted(t *testing.T) {
	seen := 0
	for seed := range uint64(60) {
		r := &run{t: t}
		faults := sim.Faults{Latency: 3 * time.Second, Kills: 1, KillWithin: 25, Late: 1, LateBy: 10 * time.Minute, Restart: time.Second}
		r.open(sim.Options{Seed: seed, Faults: faults, Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}}}, fleet(5, deployment.Strategy{}))
		lone := false
		r.w.Watch(func() { lone = lone || r.hasObjectWithoutOwner() })
		require.NoError(t, r.w.Run(20*time.Second))
		require.NoError(t, r.w.Deployments().Delete(ctx, web, ""))
		require.NoError(t, r.w.Run(15*time.Minute), "seed %d", seed)
		require.NoError(t, r.w.Until(r.empty, time.Hour), "seed %d: %s", seed, r.left())
		r.w.Close()
		if lone {
			seen++
		}
	}
	require.Positive(t, seen, "objects that were created late")
}

// clusterless returns a converged fleet of three without a cluster that has run for a while.
func clusterless(t *testing.T, seed uint64) *run {
	r := &run{t: t}
	r.open(sim.Options{
		Seed: seed, NoCluster: true, Faults: sim.Faults{Latency: time.Second, CacheLag: 2 * time.Second, CallTime: 5 * time.Second},
		Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}},
	}, fleet(3, deployment.Strategy{}))
	r.awaitComplete()
	r.wait(time.Duration(seed) * 5 * time.Minute)
	return r
}

// phase returns the phase of a machine, or "" if it is gone.
func (r *run) phase(name string) machine.Phase {
	m, err := r.w.Machines().Get(ctx, object.Key{Namespace: web.Namespace, Name: name})
	if err != nil {
		return ""
	}
	return m.Status.Phase
}

// TestP54DeadVMWithoutACluster: a VM of a fleet without a cluster is removed. Its machine is Failed within
// three minutes, and is replaced. No other machine is.
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
		r.awaitComplete()
		r.wait(time.Hour)
		require.Equal(t, 4, r.w.Made())
		r.w.Close()
	}
}

// TestP54UnhealthyVMWithoutACluster: an unhealthy VM makes its machine Unknown within two minutes. A machine
// whose VM becomes healthy in time stays, and one whose VM does not is replaced.
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
		r.awaitComplete()
		r.wait(time.Hour)
		require.Equal(t, 4, r.w.Made())
		r.w.Close()
	}
}
