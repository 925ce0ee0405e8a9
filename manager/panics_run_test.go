package manager_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// chance strikes at every 31st call, by a panic and by the end of the goroutine in turns.
type chance struct {
	on          atomic.Bool
	calls, hits atomic.Int64

	mu  sync.Mutex
	log bytes.Buffer
	in  map[string]int64 // what was told
}

func (c *chance) strike() {
	if n := c.calls.Add(1); !c.on.Load() || n%31 != 0 {
		return
	}
	if c.hits.Add(1)%2 == 0 {
		runtime.Goexit()
	}
	panic("hush-7391")
}

// Write implements io.Writer.
func (c *chance) Write(line []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.Write(line)
}

// told reports whether panics were told of in all of these.
func (c *chance) told(in []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(in, func(where string) bool { return c.in[where] == 0 })
}

// shaken is a collection any call to which may end without an answer.
type shaken[T object.Object[T]] struct {
	store.Collection[T]
	c *chance
}

func shake[T object.Object[T]](c *chance, of store.Collection[T]) shaken[T] { return shaken[T]{of, c} }

func (s shaken[T]) Get(ctx context.Context, k object.Key) (T, error) {
	s.c.strike()
	return s.Collection.Get(ctx, k)
}

func (s shaken[T]) List(ctx context.Context, q store.Query) ([]T, error) {
	s.c.strike()
	return s.Collection.List(ctx, q)
}

func (s shaken[T]) Create(ctx context.Context, o T) (T, error) {
	s.c.strike()
	return s.Collection.Create(ctx, o)
}

func (s shaken[T]) Update(ctx context.Context, o T) (T, error) {
	s.c.strike()
	return s.Collection.Update(ctx, o)
}

func (s shaken[T]) UpdateStatus(ctx context.Context, o T) (T, error) {
	s.c.strike()
	return s.Collection.UpdateStatus(ctx, o)
}

func (s shaken[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	s.c.strike()
	return s.Collection.Delete(ctx, k, uid)
}

func (s shaken[T]) Watch(ctx context.Context) iter.Seq2[store.Change[T], error] {
	return func(yield func(store.Change[T], error) bool) {
		for change, err := range s.Collection.Watch(ctx) {
			s.c.strike()
			if !yield(change, err) {
				return
			}
		}
	}
}

// TestRunOutlivesPanics: a fleet is made, deleted and made again by Run, with all that runs at the
// same time, while every 31st call to a port or a hook panics or ends its goroutine, those of
// wake-ups and watches among them. It settles all the same, and each panic is told of once.
func TestRunOutlivesPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chance{in: map[string]int64{}}
		o := manager.InMemory(time.Now)
		nodesOf := store.NewMemory(time.Now, manager.NodeIndexes(machine.DefaultPolicy().Keys.NodeMachine))
		w := newWorld(t, drivertest.MemoryOptions{})
		w.deployments, w.machines = o.Store.Deployments.(*store.Memory[*deployment.Deployment]), o.Store.Machines.(*store.Memory[*machine.Machine])
		w.sets = o.Store.Sets.(*store.Memory[*machineset.Set])
		for _, key := range []object.Key{smallKey} {
			class, err := w.classes.Get(ctx, key)
			require.NoError(t, err)
			_, err = o.Store.Classes.Create(ctx, &machine.Class{Meta: object.Meta{Key: key}, SecretRef: class.SecretRef})
			require.NoError(t, err)
		}
		secret, err := w.secrets.Get(ctx, bootKey)
		require.NoError(t, err)
		_, err = o.Store.Secrets.Create(ctx, &machine.Secret{Meta: object.Meta{Key: bootKey}, Data: secret.Data})
		require.NoError(t, err)
		w.fleet()

		c.disturb(&o, nodesOf)
		m, err := manager.New(o)
		require.NoError(t, err)
		run, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(run) }()
		settled := func(goal func() bool) {
			for range 3600 {
				<-time.After(time.Second) // of the bubble's clock
				if goal() {
					return
				}
			}
			t.Fatal("it did not settle\n" + w.dump())
		}
		c.on.Store(true)
		everywhere := []string{"pass", "driver", "hook", "wake", "watch"}
		for lives := 0; lives < 2 || !c.told(everywhere); lives++ { // which call is struck is a matter of chance
			require.Less(t, lives, 100)
			settled(func() bool { return w.serves(fleetKey) })
			require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
			settled(func() bool { return len(keysOf(w.deployments))+len(keysOf(w.machines))+len(keysOf(nodesOf)) == 0 })
			w.fleet()
		}
		settled(func() bool { return w.serves(fleetKey) })
		c.on.Store(false)
		cancel()
		require.NoError(t, <-ended)

		var told int64
		for _, in := range everywhere {
			told += c.in[in]
		}
		t.Log(c.calls.Load(), c.in)
		require.LessOrEqual(t, told, c.hits.Load(), "a panic was told of twice")
		require.Contains(t, c.log.String(), "manager_test.(*chance).strike")
		require.NotContains(t, c.log.String(), "hush-7391")
	})
}

// disturb puts every port of o behind a chance.
func (c *chance) disturb(o *manager.Options, nodesOf store.Collection[*machine.Node]) {
	o.Runtime.Each, o.Policies.Safety, o.Classes.Keep = nil, safety.DefaultPolicy(), true
	o.Store.Machines, o.Store.Sets, o.Store.Deployments = shake(c, o.Store.Machines), shake(c, o.Store.Sets), shake(c, o.Store.Deployments)
	o.Store.Classes, o.Store.Secrets, o.Store.Pools = shake(c, o.Store.Classes), shake(c, o.Store.Secrets), nil
	o.Cluster = nodes{shake(c, nodesOf)}
	o.Driver = driver.Intercept(&instant{nodes: nodesOf}, func(ctx context.Context, _ driver.CallInfo, next func(context.Context) error) error {
		c.strike()
		return next(ctx)
	})
	o.Runtime.Jitter = func(d time.Duration) time.Duration { c.strike(); return d }
	o.Only = func(manager.Kind, object.Key) bool { return true }
	o.Log = slog.New(slog.NewTextHandler(c, nil))
	o.Hooks = manager.Hooks{
		Event: func(_ manager.Kind, _ object.Key, _ manager.EventType, reason, why string) {
			c.strike()
			_, _ = fmt.Fprintln(c, reason, why)
		},
		Effect: func(manager.Kind, object.Key, string, time.Duration, error) { c.strike() },
		Pass:   func(manager.Kind, object.Key, int, manager.Result, error) { c.strike() },
		Queue:  func(manager.Kind, int) { c.strike() },
		Panicked: func(_ manager.Kind, _ object.Key, in, _ string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.in[in]++
		},
	}
}
