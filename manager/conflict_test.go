package manager_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// touchedMachine is a machine that another program writes while the driver works on it, and the calls
// that were made about it.
func touchedMachine(t *testing.T, w *world) (look func(), calls map[codes.Call]int) {
	o := w.options()
	calls = map[codes.Call]int{}
	o.Driver = driver.Intercept(w.provider, func(ctx context.Context, c driver.CallInfo, next func(context.Context) error) error {
		calls[c.Method.(codes.Call)]++
		err := next(ctx)
		m, missing := w.machines.Get(ctx, c.Object)
		require.NoError(t, missing)
		m = m.Clone()
		m.Annotations = map[string]string{"example.com/touched": c.Method.String()}
		_, failed := w.machines.Update(ctx, m)
		require.NoError(t, failed)
		return err
	})
	_, err := w.machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	r := reconciler(t, o, manager.KindMachine)
	return func() {
		_, err := r.Reconcile(ctx, fleetKey)
		require.NoError(t, err)
	}, calls
}

// TestP63AnswersOutliveConflicts: though another program writes a machine during each call about it,
// each answer is stored, and no call is repeated.
func TestP63AnswersOutliveConflicts(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: true})
	look, calls := touchedMachine(t, w)
	look()
	m, err := w.machines.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.NotEmpty(t, m.Spec.ProviderID)
	require.Equal(t, machine.StageInitialized, m.Status.LastOperation.Stage)
	require.Equal(t, map[codes.Call]int{codes.GetMachineStatus: 1, codes.CreateMachine: 1, codes.InitializeMachine: 1}, calls)
	require.Equal(t, "InitializeMachine", m.Annotations["example.com/touched"], "what the other program wrote stays")

	require.NoError(t, w.machines.Delete(ctx, fleetKey, m.UID))
	for range 4 {
		if _, err := w.machines.Get(ctx, fleetKey); err == nil {
			look()
		}
	}
	_, err = w.machines.Get(ctx, fleetKey)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Zero(t, w.provider.Count())
	require.Equal(t, 1, calls[codes.DeleteMachine])
}

// TestP63RefusalsOutliveConflicts: nor is a call repeated at once that was refused.
func TestP63RefusalsOutliveConflicts(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.provider.FailNext(codes.CreateMachine, codes.New(codes.Unavailable, "a fault"))
	look, calls := touchedMachine(t, w)
	look()
	m, err := w.machines.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.Equal(t, codes.Unavailable, m.Status.LastOperation.Code)
	require.Equal(t, 1, calls[codes.CreateMachine])
}
