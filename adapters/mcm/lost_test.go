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

// raise makes a manager make one machine with a provider, until it is Available, and returns it.
// The manager loses the answers that the provider is told to lose.
func raise(t *testing.T, c *careless, losses int) *machine.Machine {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := manager.InMemory(func() time.Time { return now })
	o.Driver, o.Policies.Safety = bridged(c), safety.Off()
	class := c.Class(object.Key{Namespace: "fleet", Name: "small"}, drivertest.MemorySpec{Cluster: "blue", Size: "small"})
	_, err := o.Store.Classes.Create(t.Context(), class)
	require.NoError(t, err)
	made, err := o.Store.Machines.Create(t.Context(), &machine.Machine{
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
				_, err := r.Reconcile(t.Context(), made.Key)
				require.NoError(t, err)
			}
		}
		if got, err := o.Store.Machines.Get(t.Context(), made.Key); err == nil && got.Status.Phase == machine.PhaseAvailable {
			return got
		}
		now = now.Add(30 * time.Second)
	}
	t.Fatal("the machine did not become Available")
	return nil
}

// TestLostCreateIsNotRepeated: the answer of a create is lost, and the provider would make another
// VM. The manager asks first, finds the VM by name, and makes no second one.
func TestLostCreateIsNotRepeated(t *testing.T) {
	c := &careless{cloud: cloud{Memory: drivertest.NewMemory(drivertest.MemoryOptions{})}}
	got := raise(t, c, 1)
	vms := c.VMs()
	require.Len(t, vms, 1)
	require.Equal(t, vms[0].ID, got.Spec.ProviderID)
	require.Empty(t, c.lost, "the answer was lost")
}

// TestLostCreateOfABlindProvider: the documented behaviour of a provider that can neither repeat a
// create safely nor find its VMs.
func TestLostCreateOfABlindProvider(t *testing.T) {
	c := &careless{cloud: cloud{Memory: drivertest.NewMemory(drivertest.MemoryOptions{}), blind: true}}
	got := raise(t, c, 1)
	vms := c.VMs()
	require.Len(t, vms, 2)
	require.Equal(t, vms[1].ID, got.Spec.ProviderID)
}
