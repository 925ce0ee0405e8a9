package mcm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// createMachine lets a manager create a machine with a provider, and returns it once it is Available. The
// answers to the first creates, as many as losses, are lost.
func createMachine(t *testing.T, c *duplicating, losses int) *machine.Machine {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := manager.InMemory(func() time.Time { return now })
	o.Driver, o.Policies.Safety = bridged(c), safety.Off()
	class := c.Class(object.Key{Namespace: "fleet", Name: "small"}, drivertest.MemorySpec{Cluster: "blue", Size: "small"})
	_, err := o.Store.Classes.Create(t.Context(), class)
	require.NoError(t, err)
	created, err := o.Store.Machines.Create(t.Context(), &machine.Machine{
		Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "web-1"}},
		Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	for range losses {
		c.FailAfter(codes.CreateMachine, codes.New(codes.Unavailable, "the connection was reset"))
	}
	m, err := manager.New(o)
	require.NoError(t, err)
	for range 20 {
		for _, r := range m.Reconcilers() {
			if r.Kind() == manager.KindMachine {
				_, err := r.Reconcile(t.Context(), created.Key)
				require.NoError(t, err)
			}
		}
		if got, err := o.Store.Machines.Get(t.Context(), created.Key); err == nil && got.Status.Phase == machine.PhaseAvailable {
			return got
		}
		now = now.Add(30 * time.Second)
	}
	t.Fatal("the machine did not become Available")
	return nil
}

// TestLostCreateIsNotRepeated: the answer to a create is lost, and another create would create a second
// VM. The manager calls GetMachineStatus first, which finds the VM by name.
func TestLostCreateIsNotRepeated(t *testing.T) {
	c := &duplicating{cloud: cloud{Memory: drivertest.NewMemory(drivertest.MemoryOptions{})}}
	got := createMachine(t, c, 1)
	vms := c.VMs()
	require.Len(t, vms, 1)
	require.Equal(t, vms[0].ID, got.Spec.ProviderID)
	require.Empty(t, c.lost, "no answer was lost")
}

// TestLostCreateOfABlindProvider: if a provider can't find its VMs, and the answer to a create is lost,
// there are two VMs, as documented.
func TestLostCreateOfABlindProvider(t *testing.T) {
	c := &duplicating{cloud: cloud{Memory: drivertest.NewMemory(drivertest.MemoryOptions{}), blind: true}}
	got := createMachine(t, c, 1)
	vms := c.VMs()
	require.Len(t, vms, 2)
	require.Equal(t, vms[1].ID, got.Spec.ProviderID)
}
