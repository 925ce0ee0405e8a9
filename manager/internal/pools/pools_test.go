package pools_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// The long tests kill at every call, in the code that the short ones run under the race detector.
//
//make:long-tests-without-race

func startUnkilled(w *poolWorld) *poolLife {
	l := &poolLife{poolWorld: w}
	l.again = func() *manager.Manager { w.t.Fatal("the process died"); return nil }
	l.process = w.start(&testkit.Fuse{})
	return l
}

// TestPoolLife: without any fault, a pool of three instances that grows to five and shrinks to two has made five,
// in one group. A settled pool costs no write.
// Invariants: P37
func TestPoolLife(t *testing.T) {
	l := startUnkilled(newPoolWorld(t))
	l.growAndShrink()
	assert.Len(t, l.made, 5)
	assert.Len(t, l.groups, 1)
	l = startUnkilled(newPoolWorld(t))
	l.runFor(4 * time.Minute)
	before := l.writes
	l.runFor(time.Hour)
	assert.Equal(t, before, l.writes, "a settled pool was written")
}

// TestReplaceRequestWakes: a pool is reconciled when the replacement of an instance is requested on its node, also if
// the annotation was there with another value, but not for any other annotation.
func TestReplaceRequestWakes(t *testing.T) {
	l := startUnkilled(newPoolWorld(t))
	l.runFor(4 * time.Minute)
	nodes, err := l.nodes.List(t.Context(), store.Query{})
	require.NoError(t, err)
	old := nodes[0].Clone()
	old.Annotations = map[string]string{machinepool.DefaultPolicy().Keys.Replace: "false"}
	requested, other := old.Clone(), old.Clone()
	requested.Annotations[machinepool.DefaultPolicy().Keys.Replace] = "true"
	other.Annotations["other"] = "true"
	woken := 0
	for _, wake := range l.process.Wakes() {
		if wake.From == manager.KindNode && wake.To == manager.KindPool {
			require.Equal(t, []object.Key{poolKey}, wake.Keys(t.Context(), old, requested))
			require.Empty(t, wake.Keys(t.Context(), old, other))
			woken++
		}
	}
	require.Equal(t, 1, woken)
}

// TestPoolKilledAnywhere kills the manager at every call to any port, once before and once after the call takes
// effect. The pool ends as without the kill, with one group and no additional instance.
// Invariants: P34 P36
func TestPoolKilledAnywhere(t *testing.T) {
	total := &testkit.Fuse{}
	w := newPoolWorld(t)
	l := startUnkilled(w)
	l.process = w.start(total)
	l.growAndShrink()
	require.Greater(t, total.Calls, 100)
	for _, after := range []bool{false, true} {
		for n := range testkit.EveryCall(total.Calls, 7) {
			t.Run(fmt.Sprintf("call %d, after %v", n, after), func(t *testing.T) {
				w := newPoolWorld(t)
				l := &poolLife{poolWorld: w, again: func() *manager.Manager { return w.start(&testkit.Fuse{}) }}
				l.process = w.start(&testkit.Fuse{BlowAt: n, BlowAfter: after})
				l.growAndShrink()
				require.Len(t, w.made, 5, "instances made")
				require.Len(t, w.groups, 1, "groups made")
			})
		}
	}
}

// TestPoolKilledAtTwoCreates: one process dies before it creates the group, and the next after it has created the
// group from another template. That template is reverted, so the group is updated (P36).
// Invariants: P36
func TestPoolKilledAtTwoCreates(t *testing.T) {
	l := startUnkilled(newPoolWorld(t))
	dies := func(when atCreate) {
		l.killed, l.process = when, l.start(&testkit.Fuse{})
		_, err := l.reconciler().Reconcile(t.Context(), poolKey)
		require.ErrorIs(t, err, testkit.ErrDead)
	}
	labels := func(labels map[string]string) {
		l.edit(func(p *machinepool.Pool) { p.Spec.Template.NodeTemplate.Labels = labels })
	}
	dies(diesBefore)
	require.Zero(t, l.provider.Groups())
	labels(map[string]string{"disk": "large"})
	dies(diesAfter)
	require.Equal(t, 1, l.provider.Groups())
	labels(nil)
	l.killed, l.process = livesOn, l.start(&testkit.Fuse{})
	l.runFor(4 * time.Minute)
	l.settled(3)
	require.Equal(t, 1, l.calls[driver.Method(machinepool.UpdatePool)], "the group has the labels that nobody wants")
}

// TestPoolKeepsNodes: a pool that grows again while instances are drained keeps them, and their nodes.
// Invariants: P34
func TestPoolKeepsNodes(t *testing.T) {
	l := startUnkilled(newPoolWorld(t))
	l.runFor(4 * time.Minute)
	one, three := int32(1), int32(3)
	l.edit(func(p *machinepool.Pool) { p.Spec.Replicas = &one })
	_, err := l.reconciler().Reconcile(t.Context(), poolKey)
	require.NoError(t, err)
	require.Len(t, l.pool().Status.Leaving, 2)
	require.Len(t, l.drained, 2)
	l.edit(func(p *machinepool.Pool) { p.Spec.Replicas = &three })
	l.runFor(time.Minute)
	l.settled(3)
	require.Len(t, l.made, 3)
	require.Empty(t, l.pool().Status.Leaving)
}

// TestP48PoolSpelledOtherwise: nodes that spell their provider IDs in another way are counted, drained and
// reported. The instance of a node that gets its ID late stays.
// Invariants: P48
func TestP48PoolSpelledOtherwise(t *testing.T) {
	w := newPoolWorld(t)
	w.carried = strings.ToUpper
	var reported []string
	w.hooks.Event = func(_ manager.Kind, _ object.Key, _ manager.EventType, reason, _ string) {
		reported = append(reported, reason)
	}
	l := startUnkilled(w)
	l.runFor(4 * time.Minute)
	l.settled(3)
	require.Equal(t, 1, strings.Count(strings.Join(reported, " "), "NodesSpelledOtherwise"), reported)
	require.NotNil(t, object.FindCondition(l.pool().Status.Conditions, machinepool.ConditionNodesUnmatched))

	late, err := l.nodes.List(t.Context(), store.Query{})
	require.NoError(t, err)
	n := late[0].Clone()
	id := n.ProviderID
	n.ProviderID = ""
	_, err = l.nodes.Update(t.Context(), n)
	require.NoError(t, err)
	w.carried = func(i string) string {
		if i = strings.ToUpper(i); i == id {
			return ""
		}
		return i
	}
	two := int32(2)
	l.edit(func(p *machinepool.Pool) { p.Spec.Replicas = &two })
	l.runFor(10 * time.Minute)
	require.Len(t, l.seen().Instances, 2)
	require.Len(t, l.drained, 1, "the other instance was drained")
	require.Zero(t, l.drained[n.Name])
	require.True(t, slices.ContainsFunc(l.seen().Instances, func(i machinepool.Instance) bool { return strings.ToUpper(i.ProviderID) == id }))
	require.Contains(t, object.FindCondition(l.pool().Status.Conditions, machinepool.ConditionNodesUnmatched).Message, "node "+n.Name+" has no known owner")
}

// TestPoolFollowsAnAutoscaler: if the provider owns the size, the pool follows it.
// Invariants: P31
func TestPoolFollowsAnAutoscaler(t *testing.T) {
	l := startUnkilled(newPoolWorld(t))
	l.edit(func(p *machinepool.Pool) { p.Annotations = map[string]string{"millwright-go/autoscaled": "true"} })
	l.runFor(4 * time.Minute)
	l.provider.Resize("blue", poolKey, 4)
	l.runFor(4 * time.Minute)
	l.settled(4)
	require.Equal(t, int32(4), l.pool().Spec.Wanted())
}

// TestPoolTroubles: failures are reported, stored and tried again. Machines boot from a user's secret if no other
// data are made.
func TestPoolTroubles(t *testing.T) {
	w := newPoolWorld(t)
	l := startUnkilled(w)
	l.provider.FailPoolNext(machinepool.CreatePool, codes.New(codes.ResourceExhausted, "quota of 2 reached"))
	l.runFor(10 * time.Second)
	p := l.pool()
	require.Equal(t, machinepool.PhaseFailed, p.Status.Phase)
	require.Equal(t, "quota of 2 reached", p.Status.FailureMessage)
	l.runFor(15 * time.Minute)
	l.settled(3)
	before := l.boot.renewed
	l.boot.expires = l.now
	l.edit(func(p *machinepool.Pool) { n := int32(4); p.Spec.Replicas = &n })
	l.runFor(4 * time.Minute)
	l.settled(4)
	require.Equal(t, before+1, l.boot.renewed)
}

// TestPoolOfAUsersSecret: without Pools.Bootstrap, the secret is used as it is.
func TestPoolOfAUsersSecret(t *testing.T) {
	w := newPoolWorld(t)
	var got *machine.Secret
	d := &watched{Driver: w.provider, create: func(req *pooldriver.CreatePoolRequest) { got = req.Bootstrap }}
	m, err := manager.New(manager.Options{
		Store:    manager.Store{Machines: w.machines, Classes: w.classes, Secrets: w.secrets, Pools: w.pools},
		Pools:    manager.PoolOptions{Driver: d},
		Driver:   drivertest.NewMemory(drivertest.MemoryOptions{}),
		Runtime:  manager.Runtime{Now: func() time.Time { return w.now }},
		Policies: manager.Policies{Safety: safety.Off()},
	})
	require.NoError(t, err)
	l := &poolLife{poolWorld: w, process: m}
	l.runFor(time.Minute)
	require.Equal(t, machinepool.PhasePending, l.pool().Status.Phase, "the secret is not there yet")
	boot := &machine.Secret{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "boot"}}, Data: map[string][]byte{machine.UserData: []byte("x")}}
	_, err = w.secrets.Create(t.Context(), boot)
	require.NoError(t, err)
	l.runFor(2 * time.Minute)
	require.Equal(t, machinepool.PhaseProvisioned, l.pool().Status.Phase, "without a cluster a pool is never Running")
	require.NotNil(t, got)
	require.Equal(t, "x", string(got.Data[machine.UserData]))
}

func TestPoolOptions(t *testing.T) {
	base := manager.InMemory(nil)
	base.Driver = drivertest.NewMemory(drivertest.MemoryOptions{})
	m, err := manager.New(base)
	require.NoError(t, err)
	for _, r := range m.Reconcilers() {
		assert.NotEqual(t, manager.KindPool, r.Kind(), "there is no driver of pools")
	}
	for says, spoil := range map[string]func(*manager.Options){
		"no Store.Pools for Pools.Driver":     func(o *manager.Options) { o.Store.Pools, o.Pools.Driver = nil, pooldriver.UnimplementedPools{} },
		"no Pools.Driver for Pools.Bootstrap": func(o *manager.Options) { o.Pools.Bootstrap = &bootMaker{} },
		"Drainer is no NodeKeeper: instances of pools would go undrained": func(o *manager.Options) {
			o.Pools.Driver, o.Cluster = pooldriver.UnimplementedPools{}, cluster{store.NewMemory(time.Now, manager.NodeIndexes(""))}
			o.Drainer = struct{ manager.Drainer }{}
		},
		"Policies.Pool: policy.period": func(o *manager.Options) { o.Policies.Pool = &machinepool.Policy{Period: 1} },
	} {
		o := base
		spoil(&o)
		_, err := manager.New(o)
		assert.ErrorIs(t, err, manager.ErrOptions)
		assert.ErrorContains(t, err, says)
	}
}

// TestPoolWakes: a pool is woken by itself, its class, the secrets of its class, and by nodes that appear,
// disappear or change their readiness.
func TestPoolWakes(t *testing.T) {
	l := startUnkilled(newPoolWorld(t))
	l.runFor(4 * time.Minute)
	nodes, err := l.nodes.List(t.Context(), store.Query{})
	require.NoError(t, err)
	node := nodes[0]
	class, err := l.classes.Get(t.Context(), object.Key{Namespace: "fleet", Name: "small"})
	require.NoError(t, err)
	sick := node.Clone()
	sick.Conditions[0].Status = object.False
	asking := node.Clone()
	asking.Annotations = map[string]string{"millwright-go/replace": "true"}
	beating := node.Clone()
	beating.Version = "another"
	other := node.Clone()
	other.ProviderID = "somebody's"
	for name, c := range map[string]struct {
		from     manager.Kind
		old, new any
		want     bool
	}{
		"itself":           {manager.KindPool, nil, l.pool(), true},
		"its class":        {manager.KindClass, nil, class, true},
		"its secret":       {manager.KindSecret, nil, &machine.Secret{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "cloud"}}}, true},
		"another's secret": {manager.KindSecret, nil, &machine.Secret{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "other"}}}, false},
		"node comes":       {manager.KindNode, nil, node, true},
		"node goes":        {manager.KindNode, node, nil, true},
		"node is sick":     {manager.KindNode, node, sick, true},
		"node asks":        {manager.KindNode, node, asking, true},
		"node's heartbeat": {manager.KindNode, node, beating, false},
		"another's node":   {manager.KindNode, nil, other, false},
		"ID changes":       {manager.KindNode, other, node, true},
	} {
		var keys []object.Key
		for _, wake := range l.process.Wakes() {
			if wake.From == c.from && wake.To == manager.KindPool {
				keys = append(keys, wake.Keys(t.Context(), c.old, c.new)...)
			}
		}
		assert.Equal(t, c.want, slices.Contains(keys, poolKey), name)
	}
}

// TestPoolsHaveNoOrphans: VMs and nodes of pools do not count as orphans, even if the driver lists them.
// Invariants: P39
func TestPoolsHaveNoOrphans(t *testing.T) {
	t.Run("as they are", func(t *testing.T) { poolsHaveNoOrphans(t, strings.Clone) })
	t.Run("in another spelling", func(t *testing.T) { poolsHaveNoOrphans(t, func(id string) string { return strings.ToUpper(id) + "/" }) })
}

// poolsHaveNoOrphans makes a pool whose driver spells IDs as spell does.
func poolsHaveNoOrphans(t *testing.T, spell func(string) string) {
	t.Helper()
	w := newPoolWorld(t)
	vms := drivertest.NewMemory(drivertest.MemoryOptions{})
	ours, stray := vms.Add(drivertest.MemoryVM{Name: "in-the-pool", Cluster: "blue"}), vms.Add(drivertest.MemoryVM{Name: "stray", Cluster: "blue"})
	w.edit(func(p *machinepool.Pool) { p.Spec.ProviderIDs = []string{spell(ours)} })
	for _, id := range []string{ours, stray} {
		n := &machine.Node{ProviderID: id}
		n.Name = id[len(id)-1:]
		_, err := w.nodes.Create(t.Context(), n)
		require.NoError(t, err)
	}
	m, err := manager.New(manager.Options{
		Store:  manager.Store{Machines: w.machines, Classes: w.classes, Secrets: w.secrets, Pools: w.pools},
		Driver: vms, Cluster: cluster{w.nodes},
		Policies: manager.Policies{Safety: safety.DefaultPolicy()},
		Runtime:  manager.Runtime{Now: func() time.Time { return w.now }, Jitter: testkit.NoJitter},
	})
	require.NoError(t, err)
	_, err = w.machines.Create(t.Context(), &machine.Machine{
		Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "another"}}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	for range 120 {
		for _, r := range m.Reconcilers() {
			if r.Kind().Fleet() {
				_, err := r.Reconcile(t.Context(), manager.Fleet)
				require.NoError(t, err)
			}
		}
		w.now = w.now.Add(time.Minute)
	}
	left := vms.VMs()
	require.Len(t, left, 1, "only the orphan VM is deleted")
	require.Equal(t, ours, left[0].ID)
	marked := 0
	nodes, err := w.nodes.List(t.Context(), store.Query{})
	require.NoError(t, err)
	for _, n := range nodes {
		marked += len(n.Annotations)
		require.False(t, n.ProviderID == ours && len(n.Annotations) > 0, "the pool's node is called unmanaged")
	}
	require.Equal(t, 1, marked)
}

// TestPoolTakesItsNodesBack: a node that was marked as unmanaged, because its pool did not know it yet, belongs to
// the pool once it does.
// Invariants: P39
func TestPoolTakesItsNodesBack(t *testing.T) {
	w := newPoolWorld(t)
	n := &machine.Node{ProviderID: "late"}
	n.Name = "late"
	_, err := w.nodes.Create(t.Context(), n)
	require.NoError(t, err)
	m, err := manager.New(manager.Options{
		Store:   manager.Store{Machines: w.machines, Classes: w.classes, Secrets: w.secrets, Pools: w.pools},
		Driver:  drivertest.NewMemory(drivertest.MemoryOptions{}),
		Cluster: cluster{w.nodes}, Policies: manager.Policies{Safety: safety.DefaultPolicy()},
		Runtime: manager.Runtime{Now: func() time.Time { return w.now }},
	})
	require.NoError(t, err)
	marks := func() int {
		for range 60 {
			for _, r := range m.Reconcilers() {
				if r.Kind().Fleet() {
					_, err := r.Reconcile(t.Context(), manager.Fleet)
					require.NoError(t, err)
				}
			}
			w.now = w.now.Add(time.Minute)
		}
		now, err := w.nodes.Live().Get(t.Context(), n.Key)
		require.NoError(t, err)
		return len(now.Annotations)
	}
	require.Equal(t, 1, marks())
	w.edit(func(p *machinepool.Pool) { p.Spec.ProviderIDs = []string{"late"} })
	require.Zero(t, marks())
}

// TestPoolKeepsItsClass: a class is deleted only after the last pool that uses it.
// Invariants: P39
func TestPoolKeepsItsClass(t *testing.T) {
	w := newPoolWorld(t)
	m, err := manager.New(manager.Options{
		Store: manager.Store{Machines: w.machines, Classes: w.classes, Secrets: w.secrets, Pools: w.pools},
		Pools: manager.PoolOptions{Driver: w.provider}, Classes: manager.ClassOptions{Keep: true},
		Driver:   drivertest.NewMemory(drivertest.MemoryOptions{}),
		Runtime:  manager.Runtime{Now: func() time.Time { return w.now }},
		Policies: manager.Policies{Safety: safety.Off()},
	})
	require.NoError(t, err)
	key := object.Key{Namespace: "fleet", Name: "small"}
	reconcile := func() {
		for _, r := range m.Reconcilers() {
			if r.Kind() == manager.KindClass {
				_, err := r.Reconcile(t.Context(), key)
				require.NoError(t, err)
			}
		}
	}
	reconcile()
	class, err := w.classes.Get(t.Context(), key)
	require.NoError(t, err)
	require.True(t, class.HasFinalizer(machine.Finalizer))
	require.NoError(t, w.classes.Delete(t.Context(), key, class.UID))
	reconcile()
	_, err = w.classes.Live().Get(t.Context(), key)
	require.NoError(t, err, "a pool still needs it")
	require.NoError(t, w.pools.Delete(t.Context(), poolKey, w.pool().UID))
	reconcile()
	_, err = w.classes.Live().Get(t.Context(), key)
	require.ErrorIs(t, err, store.ErrNotFound)
	woken := 0
	for _, wake := range m.Wakes() {
		if wake.From == manager.KindPool && wake.To == manager.KindClass {
			woken++
		}
	}
	require.Equal(t, 1, woken)
}

// watched is a driver that reports creates.
type watched struct {
	pooldriver.Driver
	create func(*pooldriver.CreatePoolRequest)
}

func (w *watched) CreatePool(ctx context.Context, req *pooldriver.CreatePoolRequest) (*pooldriver.Response, error) {
	w.create(req)
	return w.Driver.CreatePool(ctx, req)
}

// TestDryRunOfAPool runs an observer at every point between a pool's creation and its end: it writes, calls and
// drains nothing.
func TestDryRunOfAPool(t *testing.T) {
	l := startUnkilled(newPoolWorld(t))
	looked, reported := 0, 0
	look := func() {
		l.observe = true
		onlooker := &poolLife{poolWorld: l.poolWorld, process: l.start(&testkit.Fuse{})}
		l.observe = false
		before := []any{l.writes, maps.Clone(l.groups), maps.Clone(l.made), maps.Clone(l.drained), l.pool()}
		result, err := onlooker.reconciler().Reconcile(t.Context(), poolKey)
		require.NoError(t, err)
		require.Equal(t, before, []any{l.writes, l.groups, l.made, l.drained, l.pool()}, "%v", result.Why)
		looked++
		if result.At.IsZero() || result.At.After(l.now) {
			reported++
		}
	}
	size := func(n int32) { l.edit(func(p *machinepool.Pool) { p.Spec.Replicas = &n }) }
	for _, n := range []int32{3, 5, 2} {
		size(n)
		for range 90 {
			look()
			l.runFor(2 * time.Second)
		}
	}
	require.NoError(t, l.pools.Delete(t.Context(), poolKey, ""))
	for range 30 {
		look()
		if l.runFor(2 * time.Second); l.pool() == nil {
			break
		}
	}
	require.Equal(t, looked, reported, "no look is followed by another at once")
	require.Nil(t, l.pool())
}

// TestP56PoolsWait: for each kind of call about a pool, the provider limits calls. The call counts as not made,
// and no other is made until the wait is over.
// Invariants: P56
func TestP56PoolsWait(t *testing.T) {
	for _, method := range []machinepool.Call{
		machinepool.CreatePool, machinepool.GetPoolStatus, machinepool.ScalePool, machinepool.DeleteInstances, machinepool.DeletePool, machinepool.UpdatePool,
	} {
		t.Run(method.String(), func(t *testing.T) {
			w := newPoolWorld(t)
			w.safety = safety.DefaultPolicy()
			s := &testkit.SlowedOnce{Method: method}
			w.refuse = func(c driver.CallInfo) error { return s.Refuse(c.Method, w.now) }
			l := startUnkilled(w)
			size := func(n int32) {
				l.edit(func(p *machinepool.Pool) { p.Spec.Replicas = &n })
				l.runFor(25 * time.Minute)
				l.settled(n)
			}
			l.runFor(25 * time.Minute)
			l.settled(3)
			size(5)
			size(2)
			l.edit(func(p *machinepool.Pool) {
				p.Spec.Template.NodeTemplate.Labels = map[string]string{"zone": "b"}
			})
			l.runFor(25 * time.Minute)
			l.settled(2)
			require.NoError(t, l.pools.Delete(t.Context(), poolKey, l.pool().UID))
			l.runFor(25 * time.Minute)
			require.Nil(t, l.pool())
			require.False(t, s.Until.IsZero(), "the call was never made")
			require.Zero(t, s.Early, "calls that do not wait")
			require.Zero(t, l.warned, "to wait is no failure")
			require.Len(t, l.groups, 1)
		})
	}
}

// TestP56PacedPools: pools are complete in the end although the provider takes one call in twenty seconds:
// GetPoolStatus before a call does not use up the call's turn.
// Invariants: P56
func TestP56PacedPools(t *testing.T) {
	w := newPoolWorld(t)
	w.safety = safety.DefaultPolicy()
	last, refused := w.now.Add(-time.Hour), 0
	w.refuse = func(driver.CallInfo) error {
		if next := last.Add(20 * time.Second); w.now.Before(next) {
			refused++
			err := codes.New(codes.ResourceExhausted, "too many requests")
			err.RetryAfter = next.Sub(w.now)
			return err
		}
		last = w.now
		return nil
	}
	l := startUnkilled(w)
	l.runFor(20 * time.Minute)
	l.settled(3)
	n := int32(5)
	l.edit(func(p *machinepool.Pool) { p.Spec.Replicas = &n })
	l.runFor(20 * time.Minute)
	l.settled(5)
	require.NoError(t, l.pools.Delete(t.Context(), poolKey, l.pool().UID))
	l.runFor(20 * time.Minute)
	require.Nil(t, l.pool())
	require.LessOrEqual(t, refused, 30)
	require.Zero(t, l.warned, "to wait is no failure")
}
