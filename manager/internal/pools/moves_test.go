package pools_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/pools"
	"github.com/millwright-go/millwright/object"
)

// TestIllegalMove: a plan with a move that the table does not have fails the pass before anything is stored, even
// in a dry run. With the real table, the same pool goes on.
// Invariants: P44
func TestIllegalMove(t *testing.T) {
	ctx, key := t.Context(), object.Key{Namespace: "fleet", Name: "a"}
	for _, legal := range []bool{true, false} {
		for _, dry := range []bool{false, true} {
			o := manager.InMemory(nil)
			pool := &machinepool.Pool{Meta: object.Meta{Key: key, Finalizers: []string{machinepool.Finalizer}}}
			pool.Spec.ClusterName = "fleet"
			_, err := o.Store.Pools.Create(ctx, pool)
			require.NoError(t, err)
			declared := fsm.Pools()
			if !legal {
				declared = nil
			}
			states, err := fsm.New(declared...)
			require.NoError(t, err)
			var moved []machine.Move
			e := engine.New(engine.Options{DryRun: dry, Hooks: engine.Hooks{
				Transition: func(kind string, _ object.Key, move machine.Move, _ decision.Why) {
					require.Equal(t, "pool", kind)
					moved = append(moved, move)
				},
			}})
			r := pools.New(e, pools.Config{
				Pools: engine.NewObjects(e, "pool", o.Store.Pools, states), Classes: engine.NewObjects(e, "class", o.Store.Classes, nil), Secrets: o.Store.Secrets, Driver: pooldriver.UnimplementedPools{},
				Bootstrap: pools.FromSecrets(o.Store.Secrets), Policy: machinepool.DefaultPolicy(),
				Frozen: func() bool { return false }, Thaw: func(at time.Time) time.Time { return at },
			})
			_, err = r.Reconcile(ctx, key)
			require.Equal(t, legal, err == nil, err)
			after, missing := o.Store.Pools.Get(ctx, key)
			require.NoError(t, missing)
			require.Equal(t, legal && !dry, after.Status.Phase != "")
			require.Equal(t, legal && !dry, len(moved) > 0)
		}
	}
}
