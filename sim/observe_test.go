package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
	"github.com/millwright-go/millwright/store"
)

// TestObservingInAStorm: managers that only observe change nothing for a day, and make no call to
// the provider but its lists. Caches lag, answers are lost, and there are outages and kills.
// Invariants: P40
func TestObservingInAStorm(t *testing.T) {
	for seed := range uint64(10) {
		told := 0
		hooks := manager.Hooks{Observed: func(manager.Kind, object.Key, string, string, string) { told++ }}
		faults := scenario.Random(seed).Options.Faults
		faults.Kills, faults.LostVM = 5, 0
		r := &run{t: t}
		r.open(sim.Options{Seed: seed, Faults: faults, Manager: manager.Options{
			Observe: true, Classes: manager.ClassOptions{Keep: true},
			Policies: manager.Policies{Safety: sim.SafetyPolicy()}, Hooks: hooks,
		}}, fleet(3, deployment.Strategy{}))
		lone := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: web.Namespace, Name: "lone"}}}
		lone.Spec.Class.Name = "large"
		_, err := r.w.Machines().Create(ctx, lone)
		require.NoError(t, err)
		r.w.AddOrphanVM("web-lost")
		before := [][]string{versions(t, r.w.Deployments()), versions(t, r.w.Machines()), versions(t, r.w.Classes())}
		require.NoError(t, r.w.Run(24*time.Hour))
		require.Equal(t, before, [][]string{versions(t, r.w.Deployments()), versions(t, r.w.Machines()), versions(t, r.w.Classes())})
		require.Empty(t, versions(t, r.w.Sets()))
		require.Equal(t, 1, r.w.OrphanVMs())
		for call, n := range r.w.Stats().Calls {
			require.True(t, call == codes.ListMachines || n == 0, "%s", call)
		}
		require.Greater(t, told, 3)
		require.Empty(t, r.w.Violations())
		r.w.Close()
	}
}

// versions returns the versions of all objects. Each write makes a new one.
func versions[T object.Object[T]](t *testing.T, c store.Collection[T]) []string {
	all, err := c.List(context.Background(), store.Query{})
	require.NoError(t, err)
	out := make([]string, len(all))
	for i, o := range all {
		out[i] = o.ObjectMeta().Key.String() + " " + o.ObjectMeta().Version
	}
	return out
}
