package pools_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/machinepool/pooldriver/pooldrivertest"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

var poolKey = object.Key{Namespace: "fleet", Name: "web"}

// poolWorld is everything that outlives the processes that reconcile one pool.
type poolWorld struct {
	t        testing.TB
	now      time.Time
	pools    store.Collection[*machinepool.Pool]
	classes  store.Collection[*machine.Class]
	machines store.Collection[*machine.Machine]
	secrets  store.Collection[*machine.Secret]
	nodes    store.Collection[*machine.Node]
	provider *pooldrivertest.Memory
	boot     *bootMaker
	carried  func(id string) string // the provider IDs of nodes; nil: those of the instances
	made     map[string]bool        // all instances that have joined so far
	groups   map[string]bool        // all groups so far
	writes   int
	observe  bool                                  // new managers only observe
	options  func(*manager.Options, *testkit.Fuse) // changes the options of new managers; may be nil
	admits   func() bool                           // machines may join now; nil: always
	safety   *safety.Policy                        // of new managers
	hooks    manager.Hooks                         // of new managers
	calls    map[driver.Method]int
	deletes  []string                                                                      // IDs of the groups that were to be deleted
	cached   func(store.Collection[*machinepool.Pool]) store.Collection[*machinepool.Pool] // what a process sees of pools; nil: all
	drained  map[string]int                                                                // how often each node was asked about
	refuse   func(driver.CallInfo) error                                                   // replaces the answers of calls; may be nil
	warned   int                                                                           // events that are warnings
	killed   atCreate                                                                      // when a process dies
}

// atCreate says when a process dies that creates a group.
type atCreate int

const (
	livesOn atCreate = iota
	diesBefore
	diesAfter // after the call took effect, before its answer
)

// bootMaker makes bootstrap data.
type bootMaker struct {
	w       *poolWorld
	fuse    *testkit.Fuse
	exists  bool
	expires time.Time
	renewed int
}

func newPoolWorld(t testing.TB) *poolWorld {
	w := &poolWorld{
		t: t, now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), made: map[string]bool{}, groups: map[string]bool{}, drained: map[string]int{}, calls: map[driver.Method]int{},
		provider: pooldrivertest.NewMemory(pooldrivertest.MemoryOptions{Token: "a-token-of-some-length", Slow: true}),
	}
	clock := func() time.Time { return w.now }
	in := manager.InMemory(clock)
	w.pools, w.classes, w.machines, w.secrets = in.Store.Pools, in.Store.Classes, in.Store.Machines, in.Store.Secrets
	w.nodes = store.NewMemory(clock, manager.NodeIndexes(machine.DefaultPolicy().Keys.NodeMachine))
	w.boot = &bootMaker{w: w, exists: true, expires: w.now.Add(15 * time.Minute)}
	class := w.provider.Class(object.Key{Namespace: "fleet", Name: "small"}, drivertest.MemorySpec{Cluster: "blue", Size: "small"})
	class.CredentialsRef = &object.Key{Name: "cloud"}
	_, err := w.classes.Create(t.Context(), class)
	require.NoError(t, err)
	_, err = w.secrets.Create(t.Context(), w.provider.Secret(object.Key{Namespace: "fleet", Name: "cloud"}))
	require.NoError(t, err)
	name, n := "boot", int32(3)
	_, err = w.pools.Create(t.Context(), &machinepool.Pool{
		Meta: object.Meta{Key: poolKey},
		Spec: machinepool.Spec{ClusterName: "blue", Replicas: &n, Template: machinepool.Template{
			Class: machine.ClassRef{Name: "small"}, Bootstrap: machinepool.Bootstrap{Config: "kubeadm", DataSecret: &name},
		}},
	})
	require.NoError(t, err)
	return w
}

// start begins a process that dies when the fuse blows.
func (w *poolWorld) start(f *testkit.Fuse) *manager.Manager {
	down := false
	count := func() { w.writes++ }
	nodes := &testkit.Port[*machine.Node]{Collection: w.nodes, Fuse: f, Written: count, Down: &down}
	w.boot.fuse = f
	d := pooldriver.Intercept(notedCalls{w.provider, w, f}, func(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
		return f.Do(func() error {
			w.calls[s.Method]++
			if w.refuse != nil {
				if err := w.refuse(s); err != nil {
					return err
				}
			}
			return next(ctx)
		})
	})
	pools := store.Collection[*machinepool.Pool](&testkit.Port[*machinepool.Pool]{Collection: w.pools, Fuse: f, Written: count, Down: &down})
	if w.cached != nil {
		pools = w.cached(pools)
	}
	hooks := w.hooks
	if hooks.Event == nil {
		hooks.Event = func(_ manager.Kind, _ object.Key, typ manager.EventType, _, _ string) {
			if typ == manager.Warning {
				w.warned++
			}
		}
	}
	o := manager.Options{
		Store: manager.Store{
			Machines: w.machines,
			Classes:  &testkit.Port[*machine.Class]{Collection: w.classes, Fuse: f, Written: count, Down: &down},
			Secrets:  &testkit.Port[*machine.Secret]{Collection: w.secrets, Fuse: f, Written: count, Down: &down},
			Pools:    pools,
		},
		Driver: drivertest.NewMemory(drivertest.MemoryOptions{}),
		Pools:  manager.PoolOptions{Driver: d, Bootstrap: w.boot}, Cluster: cluster{nodes},
		Drainer: &cordoner{w: w, nodes: nodes},
		Runtime: manager.Runtime{
			Now: func() time.Time { return w.now }, Jitter: testkit.NoJitter,
			Each: testkit.InOrder,
		},
		DryRun: w.observe, Policies: manager.Policies{Safety: cmp.Or(w.safety, safety.Off())}, Hooks: hooks,
	}
	if w.options != nil {
		w.options(&o, f)
	}
	m, err := manager.New(o)
	require.NoError(w.t, err)
	return m
}

// notedCalls is a provider that records deletions. A process may die while it creates a group.
type notedCalls struct {
	*pooldrivertest.Memory
	w    *poolWorld
	fuse *testkit.Fuse
}

func (d notedCalls) CreatePool(ctx context.Context, req *pooldriver.CreatePoolRequest) (*pooldriver.Response, error) {
	if d.w.killed == livesOn {
		return d.Memory.CreatePool(ctx, req)
	}
	d.fuse.Dead = true
	if d.w.killed == diesAfter {
		_, _ = d.Memory.CreatePool(ctx, req)
	}
	return nil, testkit.ErrDead
}

func (d notedCalls) DeletePool(ctx context.Context, req *pooldriver.DeletePoolRequest) (*pooldriver.Response, error) {
	d.w.deletes = append(d.w.deletes, req.Pool.Status.GroupID)
	return d.Memory.DeletePool(ctx, req)
}

type cluster struct {
	nodes store.Collection[*machine.Node]
}

func (c cluster) Nodes() store.Collection[*machine.Node] { return c.nodes }

// State implements manager.PoolBootstrap.
func (b *bootMaker) State(context.Context, *machinepool.Pool) (a machinepool.BootstrapAnswer, err error) {
	err = b.fuse.Do(func() error {
		a = machinepool.BootstrapAnswer{Ready: b.exists, Found: b.exists, TokenExpires: b.expires}
		return nil
	})
	return a, err
}

// Data implements manager.PoolBootstrap.
func (b *bootMaker) Data(context.Context, *machinepool.Pool) (s *machine.Secret, err error) {
	err = b.fuse.Do(func() error {
		s = &machine.Secret{Data: map[string][]byte{"join": []byte("join-with-token-of-the-pool"), machine.UserData: []byte("#!/bin/true")}}
		return nil
	})
	return s, err
}

// Renew implements manager.PoolBootstrap.
func (b *bootMaker) Renew(_ context.Context, _ *machinepool.Pool, until time.Time) error {
	return b.fuse.Do(func() error { b.expires, b.renewed = until, b.renewed+1; return nil })
}

// Delete implements manager.PoolBootstrap.
func (b *bootMaker) Delete(context.Context, *machinepool.Pool) error {
	return b.fuse.Do(func() error {
		if b.w.provider.Groups() > 0 {
			b.w.t.Errorf("bootstrap data go before the group has")
		}
		b.exists = false
		return nil
	})
}

// cordoner is a drainer that finds a node empty when it is asked a second time.
type cordoner struct {
	w     *poolWorld
	nodes store.Collection[*machine.Node]
}

// Drain implements manager.Drainer.
func (c *cordoner) Drain(ctx context.Context, m *machine.Machine, order *machine.DrainNode) (machine.DrainAnswer, error) {
	if m.Spec.ProviderID != order.Node.ProviderID || order.Until.Sub(order.Since) != 2*time.Hour {
		c.w.t.Errorf("drain of %s: %+v", m.Spec.ProviderID, order)
	}
	if !order.Node.Unschedulable {
		n := order.Node.Clone()
		n.Unschedulable = true
		if _, err := c.nodes.Update(ctx, n); err != nil {
			return machine.DrainAnswer{}, err
		}
	}
	c.w.drained[order.Node.Name]++
	return machine.DrainAnswer{Done: c.w.drained[order.Node.Name] > 1, At: c.w.now.Add(5 * time.Second), Why: "a pod is leaving"}, nil
}

// Detach implements manager.Drainer.
func (c *cordoner) Detach(context.Context, *machine.Machine, *machine.DetachVolumes) (machine.DrainAnswer, error) {
	return machine.DrainAnswer{}, errors.New("pools detach nothing")
}

// Keep implements manager.NodeKeeper.
func (c *cordoner) Keep(ctx context.Context, node *machine.Node) (bool, error) {
	n := node.Clone()
	n.Unschedulable = false
	_, err := c.nodes.Update(ctx, n)
	delete(c.w.drained, node.Name)
	return err == nil, err
}

// seen returns the group as the provider has it.
func (w *poolWorld) seen() *pooldriver.GetPoolStatusResponse {
	class, err := w.classes.Live().Get(w.t.Context(), object.Key{Namespace: "fleet", Name: "small"})
	require.NoError(w.t, err)
	secret, err := w.secrets.Live().Get(w.t.Context(), object.Key{Namespace: "fleet", Name: "cloud"})
	require.NoError(w.t, err)
	a, err := w.provider.GetPoolStatus(w.t.Context(), &pooldriver.GetPoolStatusRequest{Request: pooldriver.Request{
		Pool: &machinepool.Pool{Meta: object.Meta{Key: poolKey}}, Class: class, Secret: secret,
	}})
	if err != nil {
		return &pooldriver.GetPoolStatusResponse{}
	}
	return a
}

// work lets the provider and the nodes proceed: instances appear and disappear, and their nodes join.
func (w *poolWorld) work() {
	ctx := w.t.Context()
	w.provider.Work()
	a := w.seen()
	if a.GroupID != "" {
		w.groups[a.GroupID] = true
	}
	nodes, err := w.nodes.Live().List(ctx, store.Query{})
	require.NoError(w.t, err)
	for _, n := range nodes {
		if !slices.ContainsFunc(a.Instances, func(i machinepool.Instance) bool { return w.carry(i.ProviderID) == n.ProviderID }) {
			require.NoError(w.t, w.nodes.Delete(ctx, n.Key, n.UID))
		}
	}
	for _, i := range a.Instances {
		if w.admits != nil && !w.admits() {
			continue
		}
		w.made[i.ProviderID] = true
		if slices.ContainsFunc(nodes, func(n *machine.Node) bool { return n.ProviderID == w.carry(i.ProviderID) }) {
			continue
		}
		n := &machine.Node{ProviderID: w.carry(i.ProviderID)}
		n.Name = fmt.Sprintf("node-%d", len(w.made))
		created, err := w.nodes.Create(ctx, n)
		require.NoError(w.t, err)
		created = created.Clone()
		created.Conditions = []object.Condition{{Type: machine.NodeReady, Status: object.True, Since: w.now}}
		_, err = w.nodes.UpdateStatus(ctx, created)
		require.NoError(w.t, err)
	}
}

// carry returns the provider ID of an instance's node.
func (w *poolWorld) carry(id string) string {
	if w.carried == nil {
		return id
	}
	return w.carried(id)
}

func (w *poolWorld) pool() *machinepool.Pool {
	p, err := w.pools.Live().Get(w.t.Context(), poolKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	require.NoError(w.t, err)
	return p
}

func (w *poolWorld) edit(change func(*machinepool.Pool)) {
	p := w.pool().Clone()
	change(p)
	_, err := w.pools.Update(w.t.Context(), p)
	require.NoError(w.t, err)
}

// poolLife is a world with its present process.
type poolLife struct {
	*poolWorld
	process *manager.Manager
	again   func() *manager.Manager
}

func (l *poolLife) reconciler() manager.Reconciler {
	for _, r := range l.process.Reconcilers() {
		if r.Kind() == manager.KindPool {
			return r
		}
	}
	l.t.Fatal("no pools are reconciled")
	return nil
}

// runFor makes passes for a time. If the process dies, a new one takes over.
func (l *poolLife) runFor(d time.Duration) {
	for end := l.now.Add(d); l.now.Before(end); {
		l.reached()
		result, err := l.reconciler().Reconcile(l.t.Context(), poolKey)
		next := l.now.Add(time.Second)
		switch {
		case errors.Is(err, testkit.ErrDead):
			l.process = l.again()
		case err != nil:
			l.t.Fatalf("pass: %v", err)
		case result.At.After(next):
			next = result.At
		}
		l.work()
		l.now = next
	}
}

// reached checks the API servers, if anything waits for that.
func (l *poolLife) reached() {
	for _, r := range l.process.Reconcilers() {
		if r.Kind() == manager.KindReachability {
			_, err := r.Reconcile(l.t.Context(), manager.Fleet)
			require.NoError(l.t, err)
		}
	}
}

// growAndShrink makes a pool of three instances, then of five, then of two, and deletes it.
func (l *poolLife) growAndShrink() {
	size := func(n int32) {
		l.edit(func(p *machinepool.Pool) { p.Spec.Replicas = &n })
		l.runFor(4 * time.Minute)
		l.settled(n)
	}
	l.runFor(4 * time.Minute)
	l.settled(3)
	size(5)
	size(2)
	require.NoError(l.t, l.pools.Delete(l.t.Context(), poolKey, l.pool().UID))
	l.runFor(2 * time.Minute)
	require.Nil(l.t, l.pool(), "the pool is still there")
	require.Zero(l.t, l.provider.Groups())
	require.False(l.t, l.boot.exists, "the bootstrap data are left behind")
}

func (l *poolLife) settled(n int32) {
	l.t.Helper()
	p, a := l.pool(), l.seen()
	require.Equal(l.t, machinepool.PhaseRunning, p.Status.Phase, "%+v", p.Status)
	require.Equal(l.t, []int32{n, n, n, 0}, []int32{p.Status.Replicas, p.Status.Ready, p.Status.Available, p.Status.Unavailable})
	require.Equal(l.t, n, a.Target)
	require.Len(l.t, p.Spec.ProviderIDs, int(n))
	require.Len(l.t, p.Status.NodeRefs, int(n))
	nodes, err := l.nodes.Live().List(l.t.Context(), store.Query{})
	require.NoError(l.t, err)
	for _, node := range nodes {
		require.False(l.t, node.Unschedulable, "node %s stays, and out of service", node.Name)
	}
}
