package manager_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// tenants is a workload of one pod on each node, which goes when it is told to.
type tenants struct {
	moved
	stay map[string]bool // by node: its pod does not go
	gone map[string]bool // by UID
	told int
	part bool // the volumes are not all known yet
}

func (l *tenants) On(_ context.Context, node string) ([]*drain.Pod, bool, error) {
	if l.gone[node] {
		return nil, true, nil
	}
	return []*drain.Pod{{Key: object.Key{Namespace: "apps", Name: node}, UID: node, Owner: &object.Owner{Kind: "ReplicaSet"}}}, true, nil
}

func (l *tenants) Evict(_ context.Context, o drain.Order) (drain.Answer, error) {
	l.told++
	l.gone[o.UID] = !l.stay[o.UID]
	return drain.Answer{Result: drain.Accepted}, nil
}

func (l *tenants) Bound(context.Context, []object.Key) ([]*drain.Volume, bool, error) {
	return nil, !l.part, nil
}

// building are nodes whose drains begin now.
type building struct {
	*testing.T
	now    time.Time
	nodes  *store.Memory[*machine.Node]
	work   *tenants
	drains manager.Drainer
}

func newBuilding(t *testing.T, nodes ...string) *building {
	b := &building{T: t, now: time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)}
	b.work = &tenants{stay: map[string]bool{}, gone: map[string]bool{}}
	b.nodes = store.NewMemory(func() time.Time { return b.now }, manager.NodeIndexes("machine"))
	for _, name := range nodes {
		_, err := b.nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: name}}})
		require.NoError(t, err)
	}
	b.restart()
	return b
}

// restart has another process drain: it knows what the nodes say, and no more.
func (b *building) restart() {
	var err error
	b.drains, err = drains.New(drains.Options{
		Nodes: b.nodes, Workload: drains.Workload{Pods: b.work, Volumes: b.work}, Now: func() time.Time { return b.now },
		Limit: drains.Limit{Max: 1, Group: func(n *machine.Node) string { return n.Name[:1] }},
	})
	require.NoError(b, err)
}

// drain drains a node as it is given.
func (b *building) drain(n *machine.Node) machine.DrainAnswer {
	answer, err := b.drains.Drain(ctx, &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "of-" + n.Name}}},
		&machine.DrainNode{Node: n, Since: b.now, Until: b.now.Add(time.Hour)})
	require.NoError(b, err)
	return answer
}

// empties drains a node whose pod goes when it is told to.
func (b *building) empties(name string) {
	require.False(b, b.drain(b.node(name)).Done, "the pod is told to go")
	require.True(b, b.drain(b.node(name)).Done)
}

func (b *building) node(name string) *machine.Node {
	n, err := b.nodes.Get(ctx, object.Key{Name: name})
	require.NoError(b, err)
	return n
}

// TestDrainSlots: one node of a group is drained at a time, also by a process that
// begins amid a drain. The slot is free once the node is gone.
func TestDrainSlots(t *testing.T) {
	b := newBuilding(t, "a1", "a2", "b1")
	b.work.stay["a1"] = true
	require.False(t, b.drain(b.node("a1")).Done)
	waits := machine.DrainAnswer{At: b.now.Add(10 * time.Second), Why: "no more than 1 nodes are drained at a time in a"}
	require.Equal(t, waits, b.drain(b.node("a2")))
	b.empties("b1") // of another group
	b.restart()
	require.Equal(t, waits, b.drain(b.node("a2")))
	require.Nil(t, b.node("a2").Drain)
	require.NoError(t, b.nodes.Delete(ctx, object.Key{Name: "a1"}, ""))
	b.empties("a2")
}

// TestDrainOfANodeThatGoesMeanwhile: a node that is gone when its drain is to be
// recorded has been drained.
func TestDrainOfANodeThatGoesMeanwhile(t *testing.T) {
	b := newBuilding(t, "a1")
	n := b.node("a1")
	require.NoError(t, b.nodes.Delete(ctx, n.Key, ""))
	require.True(t, b.drain(n).Done)
	require.Zero(t, b.work.told)
}

// TestDrainWaitsForVolumes: while the volumes of the pods are not all known, no
// pod is told to go.
func TestDrainWaitsForVolumes(t *testing.T) {
	b := newBuilding(t, "a1")
	b.work.part = true
	require.False(t, b.drain(b.node("a1")).Done)
	require.Zero(t, b.work.told)
	b.work.part = false
	b.empties("a1")
	require.Equal(t, 1, b.work.told)
}
