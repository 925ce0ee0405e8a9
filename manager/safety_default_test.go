package manager_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/safety"
)

// TestSafetyIsOnUnlessTurnedOff: a manager without a policy has the default one. Off is said by name.
func TestSafetyIsOnUnlessTurnedOff(t *testing.T) {
	kinds := func(p *safety.Policy) (all []manager.Kind) {
		o := manager.InMemory(time.Now)
		o.Driver, o.Policies.Safety = drivertest.NewMemory(drivertest.MemoryOptions{}), p
		m, err := manager.New(o)
		require.NoError(t, err)
		for _, r := range m.Reconcilers() {
			all = append(all, r.Kind())
		}
		return all
	}
	care := []manager.Kind{manager.KindReachability, manager.KindOrphans, manager.KindOwnerless}
	require.Subset(t, kinds(nil), care)
	require.Equal(t, kinds(nil), kinds(safety.DefaultPolicy()))
	require.Equal(t, kinds(nil), kinds(&safety.Policy{}), "a policy that was forgotten is not one that is off")
	for _, kind := range care {
		require.NotContains(t, kinds(safety.Off()), kind)
	}
	o := manager.InMemory(time.Now)
	o.Driver, o.Policies.Safety = drivertest.NewMemory(drivertest.MemoryOptions{}), &safety.Policy{Brake: -1}
	_, err := manager.New(o)
	require.ErrorIs(t, err, manager.ErrOptions)
}
