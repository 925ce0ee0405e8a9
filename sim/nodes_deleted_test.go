package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/store"
)

// TestAllNodesDeletedAtOnce: a cloud controller to which its cloud lies deletes the nodes of all
// machines while their VMs run. One machine goes at a time, the others work on, and in the end each
// is replaced once (P45).
// Invariants: P45
func TestAllNodesDeletedAtOnce(t *testing.T) {
	for _, replicas := range []int32{8, 20} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			r := &run{t: t}
			options := sim.Options{Seed: 1, Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}}}
			r.open(options, fleet(replicas, deployment.Strategy{}))
			r.complete()
			least := int(replicas)
			r.w.Watch(func() {
				n := 0
				ms, _ := r.w.Machines().List(ctx, store.Query{})
				for _, m := range ms {
					if !m.Deleted() && m.Status.Phase == machine.PhaseRunning {
						n++
					}
				}
				least = min(least, n)
			})
			r.w.Do(&sim.Step{Do: sim.DeleteNodes, N: int(replicas)})
			require.NoError(t, r.w.Run(5*time.Hour))
			require.Equal(t, int(replicas)-1, least, "machines that ran at the worst moment")
			require.EqualValues(t, 2*replicas, r.w.Made(), "each is replaced, and once")
			nodes, err := r.w.Nodes().List(ctx, store.Query{})
			require.NoError(t, err)
			for _, n := range nodes {
				require.False(t, n.Deleted(), "no node is held for good")
			}
		})
	}
}
