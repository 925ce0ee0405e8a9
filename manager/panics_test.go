package manager_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// The long tests panic at every call, in the code that the short ones run under the race detector.
//
//make:long-tests-without-race

// podPerNode puts one pod on each node. An evicted pod is gone.
type podPerNode struct {
	call func(func() error) error
	gone map[string]bool // by node
}

// On implements drains.Pods.
func (g *podPerNode) On(_ context.Context, node string) (pods []*drain.Pod, complete bool, err error) {
	err = g.call(func() error {
		if !g.gone[node] {
			pods = []*drain.Pod{{Key: object.Key{Namespace: "apps", Name: node}, UID: node, Owner: &object.Owner{Kind: "ReplicaSet"}}}
		}
		return nil
	})
	return pods, err == nil, err
}

// Evict implements drains.Pods.
func (g *podPerNode) Evict(_ context.Context, o drain.Order) (drain.Answer, error) {
	err := g.call(func() error { g.gone[o.UID] = true; return nil })
	return drain.Answer{Result: drain.Accepted}, err
}

// Delete implements drains.Pods.
func (g *podPerNode) Delete(ctx context.Context, o drain.Order) (drain.Answer, error) {
	return g.Evict(ctx, o)
}

// Watch implements drains.Pods.
func (g *podPerNode) Watch(context.Context) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}

// fullWorld returns a world with everything that a pass can call: stores, driver, nodes, pods, the group of a drain
// and hooks. Each call passes the fuse.
func fullWorld(t tb) *world {
	w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: true})
	w.mayPanic, w.safety = true, safety.DefaultPolicy()
	gone := map[string]bool{}
	w.setOptions = func(o *manager.Options, f *testkit.Fuse) {
		o.Classes.Keep = true
		drainer, err := drains.New(drains.Options{
			Nodes: o.Cluster.Nodes(), Workload: drains.Workload{Pods: &podPerNode{f.Do, gone}}, Now: o.Runtime.Now, Each: o.Runtime.Each,
			Limit: drains.Limit{Max: 1, Group: func(*machine.Node) (group string) {
				_ = f.Do(func() error { group = "all"; return nil })
				return group
			}},
		})
		require.NoError(t, err)
		o.Drainer = drainer
		event, effect := o.Hooks.Event, o.Hooks.Effect
		o.Hooks.Event = func(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
			_ = f.Do(func() error { event(kind, key, typ, reason, why); return nil })
		}
		o.Hooks.Effect = func(kind manager.Kind, key object.Key, name string, took time.Duration, err error) {
			_ = f.Do(func() error { effect(kind, key, name, took, err); return nil })
		}
		o.Hooks.Panic = func(_ manager.Kind, _ object.Key, in, what string) { w.panics = append(w.panics, in+": "+what) }
	}
	return w
}

// TestPanicAtEveryCall: a fleet is made, rolled, scaled down with drains and deleted. For every n, the n-th call
// to any port panics or ends its goroutine, before or after it takes effect. The fleet ends as without the panic,
// no additional machine is made, the panic is reported once, and no permit stays taken (P12 to P14, P16, P26).
// Invariants: P11 P12 P13 P14 P16 P26
func TestPanicAtEveryCall(t *testing.T) {
	calm, total := fullWorld(t), &testkit.Fuse{}
	calm.life(calm.start(total, false), neverDies(t))
	require.Empty(t, calm.panics)
	for n := range testkit.EveryCall(total.Calls, 7) {
		end := func() { panic("user data: hush-7391") }
		if n/2%2 == 0 {
			end = runtime.Goexit
		}
		strike := func(call int) {
			if call == n {
				end()
			}
		}
		w, f := fullWorld(t), &testkit.Fuse{Before: strike}
		if n%2 == 0 {
			f.Before, f.After = nil, strike
		}
		w.life(w.start(f, false), neverDies(t))
		require.Len(t, w.panics, 1, n)
		require.LessOrEqual(t, w.panicked, 1, n)
		require.Len(t, w.made, len(calm.made), n)
		require.NotContains(t, w.panics[0]+w.dump(), "hush", n)
	}
}

// TestPanickingHooks: hooks that always panic delay nothing. The panic is logged once per object, with its stack,
// and counted each time.
func TestPanickingHooks(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: true})
	var log strings.Builder
	hits := 0
	hit := func() { hits++; panic("hush-7391") }
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Hooks = manager.Hooks{
			Event:      func(manager.Kind, object.Key, manager.EventType, string, string) { hit() },
			Transition: func(object.Key, machine.Move, decision.Why) { hit() },
			Effect:     func(manager.Kind, object.Key, string, time.Duration, error) { hit() },
			Pass:       func(manager.Kind, object.Key, int, manager.Result, error) { hit() },
			Panic: func(_ manager.Kind, _ object.Key, in, what string) {
				w.panics = append(w.panics, in+": "+what)
				panic("hush-7391")
			},
		}
	}
	w.life(w.start(&testkit.Fuse{}, false), neverDies(t))
	require.Len(t, w.made, 6)
	require.Greater(t, len(w.panics), 100)
	require.LessOrEqual(t, len(w.panics), hits)
	stacks := strings.Count(log.String(), "stack=")
	require.NotZero(t, stacks)
	require.Less(t, stacks, 2*(len(w.made)+8), "reported again and again")
	require.NotContains(t, log.String()+strings.Join(w.panics, "\n"), "hush")
}

// TestPanicsHarmNoOthers: two fleets are made, rolled and deleted. At each of 200 random moments (40 with -short), the
// object whose pass is under way begins to panic at its first call, in all later passes. The other fleet is not
// affected, and all other machines of its own fleet are deleted, too.
// Invariants: P11
func TestPanicsHarmNoOthers(t *testing.T) {
	calm, total := fullWorld(t), &testkit.Fuse{}
	calm.pair(calm.start(total, false), func() passID { return passID{} })
	random := rand.New(rand.NewPCG(15, 2))
	kinds := map[manager.Kind]int{}
	moments := 200
	if testing.Short() {
		moments = 40
	}
	for range moments {
		w, f := fullWorld(t), &testkit.Fuse{}
		from := 1 + random.IntN(total.Calls)
		var victim passID
		f.Before = func(call int) {
			if call >= from && victim == (passID{}) && w.current.kind != manager.KindReachability { // otherwise everything would be frozen
				victim = w.current
				kinds[victim.kind]++
			}
			if w.current == victim {
				panic("again")
			}
		}
		w.pair(w.start(f, false), func() passID { return victim })
	}
	t.Log(kinds)
	require.Greater(t, kinds[manager.KindMachine], moments/4)
	require.NotZero(t, kinds[manager.KindSet])
	require.NotZero(t, kinds[manager.KindDeployment])
}

// TestPanickingCheckFreezes: a check of the API servers that always panics counts as one without an answer. Once
// that has lasted long enough, no machine is made until a check succeeds (P25).
// Invariants: P25
func TestPanickingCheckFreezes(t *testing.T) {
	w, f := fullWorld(t), &testkit.Fuse{}
	on := false
	f.Before = func(int) {
		if on && w.current.kind == manager.KindReachability {
			panic("again")
		}
	}
	w.fleet()
	p := w.until(w.start(f, false), func() bool { return w.serves(fleetKey) }, nil)
	on = true
	p = w.until(p, w.lasts(5*time.Minute), nil)
	made := len(w.made)
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	d = d.Clone()
	d.Spec.Replicas = 5
	_, err = w.deployments.Update(ctx, d)
	require.NoError(t, err)
	p = w.until(p, w.lasts(10*time.Minute), nil)
	require.NotEmpty(t, w.panics)
	require.Len(t, w.made, made)
	on = false
	w.until(p, func() bool { return len(w.made) == made+2 }, nil)
}

var otherKey = object.Key{Namespace: namespace, Name: "db"}

// pair makes, rolls and deletes two fleets that share only the class; victim returns the object whose passes
// panic.
func (w *world) pair(p *process, victim func() passID) {
	both := []object.Key{fleetKey, otherKey}
	w.fleet()
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(w.t, err)
	labels := map[string]string{"app": "db"}
	other := &deployment.Deployment{Meta: object.Meta{Key: otherKey}, Spec: d.Clone().Spec}
	other.Spec.Selector.Labels, other.Spec.Template.Labels = labels, labels
	_, err = w.deployments.Create(ctx, other)
	require.NoError(w.t, err)

	spared := func(done func(object.Key) bool) func() bool {
		return func() bool {
			for _, key := range both {
				hit := victim()
				if !strings.HasPrefix(hit.key.Name, key.Name) && !done(key) {
					return false
				}
			}
			return true
		}
	}
	p = w.until(p, spared(w.serves), nil)
	for _, key := range both {
		d, err := w.deployments.Get(ctx, key)
		require.NoError(w.t, err)
		d = d.Clone()
		d.Spec.Template.Annotations = map[string]string{"version": "2"}
		_, err = w.deployments.Update(ctx, d)
		require.NoError(w.t, err)
	}
	p = w.until(p, spared(w.serves), nil)
	for _, key := range both {
		require.NoError(w.t, w.deployments.Delete(ctx, key, ""))
	}
	w.until(p, func() bool {
		hit := victim()
		held := hit.kind == manager.KindSet || hit.kind == manager.KindDeployment // it deletes none of its objects
		for _, key := range keysOf(w.machines) {
			if (hit != passID{manager.KindMachine, key}) && !(held && strings.HasPrefix(key.Name, hit.key.Name)) {
				return false
			}
		}
		return spared(func(key object.Key) bool {
			_, err := w.deployments.Get(ctx, key)
			return errors.Is(err, store.ErrNotFound)
		})()
	}, nil)
}

// serves reports whether a deployment has three machines of its template, and no other.
func (w *world) serves(key object.Key) bool {
	d, err := w.deployments.Get(ctx, key)
	require.NoError(w.t, err)
	return d.Spec.Replicas == 3 && deployment.Complete(d)
}

// chance makes every 31st call panic or end its goroutine, in turns.
type chance struct {
	on          atomic.Bool
	calls, hits atomic.Int64

	mu  sync.Mutex
	log bytes.Buffer
	in  map[string]int64 // the panics that were reported, by place
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

// reported reports whether panics were reported for all of these places.
func (c *chance) reported(in []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(in, func(where string) bool { return c.in[where] == 0 })
}

// shaken is a collection any call of which may panic or end its goroutine.
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

// TestRunOutlivesPanics: Run makes a fleet, deletes it and makes it again. Every 31st call to a port or a hook
// panics or ends its goroutine, even those of wake-ups and watches. The fleet still settles, and each panic is
// reported once.
// Invariants: P11
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
		for lives := 0; lives < 2 || !c.reported(everywhere); lives++ { // which calls panic is a matter of chance
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

		var reported int64
		for _, in := range everywhere {
			reported += c.in[in]
		}
		t.Log(c.calls.Load(), c.in)
		require.LessOrEqual(t, reported, c.hits.Load(), "a panic was reported twice")
		require.Contains(t, c.log.String(), "manager_test.(*chance).strike")
		require.NotContains(t, c.log.String(), "hush-7391")
	})
}

// disturb lets every port of o make panicking calls.
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
		Panic: func(_ manager.Kind, _ object.Key, in, _ string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.in[in]++
		},
	}
}

// panickingPods are pods whose list panics once their node is cordoned.
type panickingPods struct {
	podPerNode
	nodes store.Collection[*machine.Node]
	on    bool
}

// On implements drains.Pods.
func (c *panickingPods) On(ctx context.Context, node string) ([]*drain.Pod, bool, error) {
	if n, err := c.nodes.Get(ctx, object.Key{Name: node}); err == nil && n.Unschedulable && c.on {
		panic("again")
	}
	return c.podPerNode.On(ctx, node)
}

// TestPanickingDrainsKeepTheLimit: while the drain of every node panics, no more than twice the limit are begun.
// Once none panics, all end.
func TestPanickingDrainsKeepTheLimit(t *testing.T) {
	const limit = 1
	w := newWorld(t, drivertest.MemoryOptions{})
	w.mayPanic = true
	pods := &panickingPods{nodes: w.nodes, podPerNode: podPerNode{call: func(do func() error) error { return do() }, gone: map[string]bool{}}}
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) {
		var err error
		o.Drainer, err = drains.New(drains.Options{
			Nodes: o.Cluster.Nodes(), Workload: drains.Workload{Pods: pods}, Now: o.Runtime.Now, Each: o.Runtime.Each,
			Limit: drains.Limit{Max: limit},
		})
		require.NoError(t, err)
		o.Hooks.Panic = func(_ manager.Kind, _ object.Key, in, what string) { w.panics = append(w.panics, in+": "+what) }
	}
	most := 0
	drained := func() {
		under := 0
		for _, key := range keysOf(w.nodes) {
			if n, err := w.nodes.Get(ctx, key); err == nil && n.Drain != nil {
				under++
			}
		}
		most = max(most, under)
	}
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), func() bool { return w.serves(fleetKey) }, nil)
	require.Len(t, keysOf(w.nodes), 3)
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	pods.on = true
	over := w.lasts(30 * time.Minute)
	p = w.until(p, func() bool { drained(); return over() }, nil)
	require.NotEmpty(t, w.panics)
	require.Equal(t, 2*limit, most)
	require.Len(t, keysOf(w.nodes), 3)
	pods.on = false
	w.until(p, func() bool { drained(); return len(keysOf(w.machines)) == 0 }, nil)
	require.Equal(t, 2*limit, most)
}
