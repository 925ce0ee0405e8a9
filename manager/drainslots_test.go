package manager_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// cursed are pods that can't be listed once their node is cordoned: what lists them panics.
type cursed struct {
	guests
	nodes store.Collection[*machine.Node]
	on    bool
}

// On implements drains.Pods.
func (c *cursed) On(ctx context.Context, node string) ([]*drain.Pod, bool, error) {
	if n, err := c.nodes.Get(ctx, object.Key{Name: node}); err == nil && n.Unschedulable && c.on {
		panic("again")
	}
	return c.guests.On(ctx, node)
}

// TestPanickingDrainsKeepTheLimit: where the drain of each node panics, no more than twice the limit
// are begun; where none does any more, all end.
func TestPanickingDrainsKeepTheLimit(t *testing.T) {
	const limit = 1
	w := newWorld(t, drivertest.MemoryOptions{})
	w.shaky = true
	pods := &cursed{nodes: w.nodes, guests: guests{call: func(do func() error) error { return do() }, gone: map[string]bool{}}}
	w.classed = func(o *manager.Options, _ *testkit.Fuse) {
		var err error
		o.Drainer, err = drains.New(drains.Options{
			Nodes: o.Cluster.Nodes(), Workload: drains.Workload{Pods: pods}, Now: o.Runtime.Now, Each: o.Runtime.Each,
			Limit: drains.Limit{Max: limit},
		})
		require.NoError(t, err)
		o.Hooks.Panicked = func(_ manager.Kind, _ object.Key, in, what string) { w.panics = append(w.panics, in+": "+what) }
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

// unread are nodes that can't be read for a while.
type unread struct {
	store.Collection[*machine.Node]
	err error
}

// Get implements store.Collection.
func (u *unread) Get(ctx context.Context, key object.Key) (*machine.Node, error) {
	if u.err != nil {
		return nil, u.err
	}
	return u.Collection.Get(ctx, key)
}

// TestUnreadNodesKeepTheirSlots: a drain whose node can't be read is not over.
func TestUnreadNodesKeepTheirSlots(t *testing.T) {
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	nodes := &unread{Collection: store.NewMemory(func() time.Time { return now }, manager.NodeIndexes("machine"))}
	pods := &guests{call: func(do func() error) error { return do() }, gone: map[string]bool{}}
	d, err := drains.New(drains.Options{
		Nodes: nodes, Workload: drains.Workload{Pods: pods}, Now: func() time.Time { return now }, Limit: drains.Limit{Max: 1},
	})
	require.NoError(t, err)
	look := func(name string) *machine.Node {
		n, err := nodes.Collection.Get(ctx, object.Key{Name: name})
		require.NoError(t, err)
		_, err = d.Drain(ctx, &machine.Machine{Meta: object.Meta{Key: object.Key{Name: name}}},
			&machine.DrainNode{Node: n, Since: now, Until: now.Add(time.Hour)})
		require.NoError(t, err)
		n, err = nodes.Collection.Get(ctx, n.Key)
		require.NoError(t, err)
		return n
	}
	for _, name := range []string{"a", "b"} {
		_, err := nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: name}, UID: name}})
		require.NoError(t, err)
	}
	require.NotNil(t, look("a").Drain)
	nodes.err = context.DeadlineExceeded
	require.Nil(t, look("b").Drain)
}
