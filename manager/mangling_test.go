package manager_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// mangling is a driver that changes what it was given.
type mangling struct {
	driver.Driver
	creates int
}

func (d *mangling) CreateMachine(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	d.creates++
	answer, err := d.Driver.CreateMachine(ctx, r)
	r.Machine.Spec.Class.Name, r.Machine.Labels["a"], r.Class.Provider, r.Class.ProviderSpec = "other", "changed", "other", nil
	return answer, err
}

// TestRequestsBelongToTheDriver: a driver that changes its request changes nothing that is stored.
func TestRequestsBelongToTheDriver(t *testing.T) {
	provider := drivertest.NewMemory(drivertest.MemoryOptions{})
	d := &mangling{Driver: provider}
	o := manager.InMemory(nil)
	o.Driver = d
	m := reconciler(t, o, manager.KindMachine)
	class, err := o.Store.Classes.Create(ctx, provider.Class(object.Key{Namespace: fleetKey.Namespace, Name: "small"}, drivertest.MemorySpec{Cluster: "blue", Size: "s"}))
	require.NoError(t, err)
	before := class.Clone()
	made, err := o.Store.Machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: fleetKey, Labels: map[string]string{"a": "b"}}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	for range 5 {
		_, err = m.Reconcile(context.Background(), made.Key)
		require.NoError(t, err)
	}
	require.Equal(t, 1, d.creates)
	stored, err := o.Store.Machines.Live().Get(ctx, made.Key)
	require.NoError(t, err)
	require.Equal(t, "b", stored.Labels["a"])
	require.Equal(t, "small", stored.Spec.Class.Name)
	kept, err := o.Store.Classes.Live().Get(ctx, class.Key)
	require.NoError(t, err)
	require.Equal(t, []any{before.Provider, before.ProviderSpec}, []any{kept.Provider, kept.ProviderSpec})
}
