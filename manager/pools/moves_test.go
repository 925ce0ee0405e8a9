package pools_test

import (
	"context"
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
	"github.com/millwright-go/millwright/manager/pools"
	"github.com/millwright-go/millwright/object"
)

// TestIllegalMove: a plan whose move the table does not know fails the pass before anything of it is
// stored, also in a dry run. With the table as it is, the same pool goes on.
func TestIllegalMove(t *testing.T) {
	ctx, key := t.Context(), object.Key{Namespace: "fleet", Name: "a"}
	for _, legal := range []bool{true, false} {
		for _, dry := range []bool{false, true} {
			o := manager.InMemory(nil)
			pool := &machinepool.Pool{Meta: object.Meta{Key: key, Finalizers: []string{machinepool.Finalizer}}}
			pool.Spec.ClusterName = "fleet"
			_, err := o.Store.Pools.Create(ctx, pool)
			require.NoError(t, err)
			tables := []*machine.Table{machine.PhaseTable()}
			if legal {
				tables = append(tables, machinepool.PhaseTable())
			}
			checker, err := fsm.NewChecker(tables...)
			require.NoError(t, err)
			var moved []machine.Move
			r := pools.New(engine.New(engine.Options{DryRun: dry}), pools.Config{
				Pools: o.Store.Pools, Classes: o.Store.Classes, Secrets: o.Store.Secrets, Driver: pooldriver.UnimplementedPools{},
				Bootstrap: pools.FromSecrets(o.Store.Secrets), Policy: machinepool.DefaultPolicy(),
				Frozen: func() bool { return false }, Thaw: func(at time.Time) time.Time { return at },
				Check: func(ctx context.Context, move machine.Move) error { return checker.Fire(ctx, move) },
				Transition: func(_ object.Key, move machine.Move, _ decision.Why) {
					moved = append(moved, move)
				},
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
