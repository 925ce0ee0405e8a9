package manager_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/store"
)

// TestP8StrictQuotaLife: through a whole life under the strict quota there are
// never more machines than R + S, those that are being deleted among them.
func TestP8StrictQuotaLife(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.policy = deployment.DefaultPolicy()
	w.policy.StrictQuota = true
	w.life(w.start(&testkit.Fuse{}, false), unexpected(t))
	require.Len(t, w.made, 6)
}

// TestP8StrictQuotaHoldsForSets: the deployment's policy is enough; a machine
// deleted by hand is not replaced before it is gone.
func TestP8StrictQuotaHoldsForSets(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.policy = deployment.DefaultPolicy()
	w.policy.StrictQuota = true
	w.fleet()
	w.change(func(d *deployment.Deployment) {
		d.Spec.Strategy.MaxSurge.Value, d.Spec.Strategy.MaxUnavailable.Value = 0, 1
	})
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	w.bounded = true
	key := keysOf(w.machines)[0]
	w.provider.FailNext(codes.DeleteMachine, codes.New(codes.Unavailable, "it takes its time"))
	require.NoError(t, w.machines.Delete(ctx, key, ""))
	w.until(p, w.replaced(3, key), unexpected(t))
	require.Len(t, w.made, 4)
}

// TestMinReadyIsIgnoredBySets: the deployment's policy is enough for that too.
func TestMinReadyIsIgnoredBySets(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.policy = deployment.DefaultPolicy()
	w.policy.IgnoreMinReady = true
	w.fleet()
	w.change(func(d *deployment.Deployment) { d.Spec.MinReady = 24 * time.Hour })
	w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	sets, err := w.sets.List(ctx, store.Query{})
	require.NoError(t, err)
	require.Len(t, sets, 1)
	require.EqualValues(t, 3, sets[0].Status.Available)
	require.Equal(t, 24*time.Hour, sets[0].Spec.MinReady)
}

// TestMarksWakeTheSet: what somebody does to a machine's marks, its set undoes.
func TestMarksWakeTheSet(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	before, err := w.machines.Get(ctx, keysOf(w.machines)[0])
	require.NoError(t, err)
	after := before.Clone()
	after.Generation++
	after.Spec.Marks.Keep = true
	woken := 0
	for _, wake := range p.Wakes() {
		if wake.From == manager.KindMachine && wake.To == manager.KindSet {
			woken += len(wake.Keys(ctx, before, after))
		}
	}
	require.Equal(t, 1, woken)
}
