package manager_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// TestTurnsAreTakenOneByOne: sixteen workers look at sixteen machines of a class
// that is slowed. One create is tried for all; once it has succeeded the others
// follow.
func TestTurnsAreTakenOneByOne(t *testing.T) {
	var now, calls, under, most atomic.Int64
	var refuse atomic.Bool
	now.Store(1_800_000_000)
	refuse.Store(true)
	provider := drivertest.NewMemory(drivertest.MemoryOptions{})
	o := manager.InMemory(func() time.Time { return time.Unix(now.Load(), 0) })
	o.Policies.Safety, o.Policies.Machine = safety.DefaultPolicy(), machine.DefaultPolicy()
	o.Policies.Machine.CreationTimeout = time.Hour
	o.Driver = driver.Intercept(provider, func(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
		if s.Method != codes.CreateMachine {
			return next(ctx)
		}
		calls.Add(1)
		n := under.Add(1)
		defer under.Add(-1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
			continue
		}
		if refuse.Load() {
			return codes.New(codes.ResourceExhausted, "used up")
		}
		return next(ctx)
	})
	m, err := manager.New(o)
	require.NoError(t, err)
	_, err = o.Store.Classes.Create(ctx, provider.Class(object.Key{Namespace: namespace, Name: "small"}, drivertest.MemorySpec{Cluster: "blue", Size: "s"}))
	require.NoError(t, err)
	var keys []object.Key
	for i := range 16 {
		one := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: fmt.Sprint("m-", i)}, Finalizers: []string{machine.Finalizer}}}
		one.Spec.Class.Name = "small"
		_, err := o.Store.Machines.Create(ctx, one)
		require.NoError(t, err)
		keys = append(keys, one.Key)
	}
	reconcilers := map[manager.Kind]manager.Reconciler{}
	for _, r := range m.Reconcilers() {
		reconcilers[r.Kind()] = r
	}
	_, err = reconcilers[manager.KindReachability].Reconcile(ctx, manager.Fleet)
	require.NoError(t, err)
	// look has all machines looked at together, and returns what came of it.
	look := func(later time.Duration) (int64, int64) {
		now.Add(int64(later / time.Second))
		calls.Store(0)
		most.Store(0)
		var wg sync.WaitGroup
		for _, key := range keys {
			wg.Go(func() {
				_, err := reconcilers[manager.KindMachine].Reconcile(ctx, key)
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		return calls.Load(), most.Load()
	}
	first, _ := look(0)
	require.Positive(t, first)
	second, together := look(11 * time.Minute)
	require.EqualValues(t, 1, second, "one is tried for all")
	require.EqualValues(t, 1, together)
	refuse.Store(false)
	look(3 * time.Minute)
	require.Positive(t, provider.Count())
	for range 5 {
		look(15 * time.Second)
	}
	look(10 * time.Minute) // the one that was refused last has waited longest
	require.Equal(t, 16, provider.Count())
}
