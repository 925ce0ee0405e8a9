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
)

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
