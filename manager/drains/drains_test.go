package drains_test

import (
	"cmp"
	"context"
	"iter"
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

var ctx = context.Background()

// latePod is a workload of one pod, which is bound to a node just before the node is cordoned.
type latePod struct {
	nodes   store.Collection[*machine.Node]
	evicted int
}

func (l *latePod) On(ctx context.Context, node string) ([]*drain.Pod, bool, error) {
	n, err := l.nodes.Get(ctx, object.Key{Name: node})
	if err != nil || !n.Unschedulable || l.evicted > 0 {
		return nil, true, err
	}
	pod := &drain.Pod{Key: object.Key{Namespace: "apps", Name: "late"}, UID: "1", Owner: &object.Owner{Kind: "ReplicaSet"}}
	return []*drain.Pod{pod}, true, nil
}

func (l *latePod) Evict(context.Context, drain.Order) (drain.Answer, error) {
	l.evicted++
	return drain.Answer{Result: drain.Accepted}, nil
}

func (l *latePod) Delete(ctx context.Context, o drain.Order) (drain.Answer, error) {
	return l.Evict(ctx, o)
}

func (l *latePod) Watch(context.Context) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}

// drainsInTwoPasses requires that a drain evicts the pod of a node in its first pass, and ends in the second. pods
// is what the drain reads.
func drainsInTwoPasses(t *testing.T, pods drains.Pods, latePod *latePod) {
	t.Helper()
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	nodes := store.NewMemory(clock, manager.NodeIndexes("machine"))
	node, err := nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: "n"}}})
	require.NoError(t, err)
	latePod.nodes = nodes
	d, err := drains.New(drains.Options{Nodes: nodes, Workload: drains.Workload{Pods: pods}, Now: clock})
	require.NoError(t, err)
	answer, err := d.Drain(ctx, &machine.Machine{}, &machine.DrainNode{Node: node, Since: now, Until: now.Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, 1, latePod.evicted)
	require.False(t, answer.Done, "%s", answer.Why)
	answer, err = d.Drain(ctx, &machine.Machine{}, &machine.DrainNode{Node: answer.Node, Since: now, Until: now.Add(time.Hour)})
	require.NoError(t, err)
	require.True(t, answer.Done, "%s", answer.Why)
}

// TestPodsAreReadOnceTheNodeIsCordoned: a pod that is bound to a node after the first read, and before the node is
// cordoned, is evicted, too (P22).
// Invariants: P22
func TestPodsAreReadOnceTheNodeIsCordoned(t *testing.T) {
	pods := &latePod{}
	drainsInTwoPasses(t, pods, pods)
}

// stubborn is a pod whose eviction is always refused.
type stubborn struct {
	latePod
	deleted int
}

func (*stubborn) On(context.Context, string) ([]*drain.Pod, bool, error) {
	return []*drain.Pod{{Key: object.Key{Namespace: "apps", Name: "p"}, UID: "1", Owner: &object.Owner{Kind: "ReplicaSet"}}}, true, nil
}

func (s *stubborn) Evict(context.Context, drain.Order) (drain.Answer, error) {
	s.evicted++
	return drain.Answer{Result: drain.Refused}, nil
}

func (s *stubborn) Delete(context.Context, drain.Order) (drain.Answer, error) {
	s.deleted++
	return drain.Answer{Result: drain.Accepted}, nil
}

// TestAttemptsOfAMachine: a machine's own limit of attempts replaces that of the policy.
func TestAttemptsOfAMachine(t *testing.T) {
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	begun, clock := now, func() time.Time { return now }
	nodes := store.NewMemory(clock, manager.NodeIndexes("machine"))
	node, err := nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: "n"}}})
	require.NoError(t, err)
	pod, policy := &stubborn{}, drain.DefaultPolicy()
	policy.MaxEvictRetries = 20
	d, err := drains.New(drains.Options{Nodes: nodes, Workload: drains.Workload{Pods: pod}, Policy: policy, Now: clock})
	require.NoError(t, err)
	m := &machine.Machine{Spec: machine.Spec{Config: machine.Configuration{MaxEvictRetries: 3}}}
	for range 3 {
		require.Zero(t, pod.deleted)
		answer, err := d.Drain(ctx, m, &machine.DrainNode{Node: node, Since: begun, Until: begun.Add(time.Hour)})
		require.NoError(t, err)
		require.False(t, answer.At.IsZero(), answer.Why)
		now, node = answer.At, cmp.Or(answer.Node, node)
	}
	require.Equal(t, begun.Add(time.Minute), now, "three slots of 20 s")
	_, err = d.Drain(ctx, m, &machine.DrainNode{Node: node, Since: begun, Until: begun.Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, []int{3, 1}, []int{pod.evicted, pod.deleted})
}

// lagging are pods whose cache does not show the pod that was bound last.
type lagging struct{ latePod }

func (*lagging) On(context.Context, string) ([]*drain.Pod, bool, error) { return nil, true, nil }

func (l *lagging) Live(ctx context.Context, node string) ([]*drain.Pod, error) {
	pods, _, err := l.latePod.On(ctx, node)
	return pods, err
}

// TestPodsOfACacheAreReadLiveAtTheEnd: a pod that the cache does not show is evicted, and the drain ends when it
// is gone (P22).
// Invariants: P22
func TestPodsOfACacheAreReadLiveAtTheEnd(t *testing.T) {
	pods := &lagging{}
	drainsInTwoPasses(t, pods, &pods.latePod)
}

// moved is a workload of one volume that is still attached, and no pods.
type moved struct {
	latePod
	attachments []*drain.Attachment
}

func (m *moved) On(context.Context, string) ([]*drain.Pod, bool, error) { return nil, true, nil }

func (m *moved) Bound(context.Context, []object.Key) ([]*drain.Volume, bool, error) {
	return nil, true, nil
}

func (m *moved) VolumeAttachments(context.Context, string, []string) ([]*drain.Attachment, error) {
	return m.attachments, nil
}

func (m *moved) VolumesAttached(context.Context, string) ([]string, error) { return nil, nil }

func (m *moved) Detach(context.Context, string) (drain.Answer, error) { return drain.Answer{}, nil }

// TestNoDrainEndsOnAnOldNode: a cached node that does not show yet that volumes are waited for does not end the
// drain (P22). A node that is gone does.
// Invariants: P22
func TestNoDrainEndsOnAnOldNode(t *testing.T) {
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	nodes := store.NewMemory(clock, manager.NodeIndexes("machine"))
	old, err := nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: "n"}}, Unschedulable: true, Drain: &machine.DrainRecord{Since: now}})
	require.NoError(t, err)
	fresh := old.Clone()
	fresh.Drain = &machine.DrainRecord{Since: now, Turn: machine.DrainTurn{UID: "1", Since: now, Volumes: []string{"pv"}}}
	fresh, err = nodes.Update(ctx, fresh)
	require.NoError(t, err)
	work := &moved{attachments: []*drain.Attachment{{Name: "a", Volume: "pv", Node: "n", Attached: true}}}
	d, err := drains.New(drains.Options{Nodes: nodes, Workload: drains.Workload{Pods: work, Volumes: work}, Now: clock})
	require.NoError(t, err)
	order := &machine.DrainNode{Node: old, Since: now, Until: now.Add(time.Hour)}
	answer, err := d.Drain(ctx, &machine.Machine{}, order)
	require.NoError(t, err)
	require.False(t, answer.Done, "%s", answer.Why)
	require.Equal(t, fresh.Version, answer.Node.Version)

	work.attachments = []*drain.Attachment{}
	answer, err = d.Drain(ctx, &machine.Machine{}, order)
	require.NoError(t, err)
	require.True(t, answer.Done, "%s", answer.Why)

	work.attachments = []*drain.Attachment{{Name: "a", Volume: "pv", Node: "n", Attached: true}}
	require.NoError(t, nodes.Delete(ctx, old.Key, ""))
	answer, err = d.Drain(ctx, &machine.Machine{}, order)
	require.NoError(t, err)
	require.True(t, answer.Done, "%s", answer.Why)
	require.Nil(t, answer.Node)
}

// podPerNode is a workload of one pod on each node, which an eviction removes.
type podPerNode struct {
	moved
	stay      map[string]bool // nodes whose pod can't be evicted
	gone      map[string]bool // pods, by UID
	evictions int
	part      bool // the volumes are not all known yet
}

func (l *podPerNode) On(_ context.Context, node string) ([]*drain.Pod, bool, error) {
	if l.gone[node] {
		return nil, true, nil
	}
	return []*drain.Pod{{Key: object.Key{Namespace: "apps", Name: node}, UID: node, Owner: &object.Owner{Kind: "ReplicaSet"}}}, true, nil
}

func (l *podPerNode) Evict(_ context.Context, o drain.Order) (drain.Answer, error) {
	l.evictions++
	l.gone[o.UID] = !l.stay[o.UID]
	return drain.Answer{Result: drain.Accepted}, nil
}

func (l *podPerNode) Bound(context.Context, []object.Key) ([]*drain.Volume, bool, error) {
	return nil, !l.part, nil
}

// drainWorld is a cluster whose nodes begin to be drained now.
type drainWorld struct {
	*testing.T
	now    time.Time
	nodes  *store.Memory[*machine.Node]
	work   *podPerNode
	drains manager.Drainer
}

func newDrainWorld(t *testing.T, nodes ...string) *drainWorld {
	b := &drainWorld{T: t, now: time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)}
	b.work = &podPerNode{stay: map[string]bool{}, gone: map[string]bool{}}
	b.nodes = store.NewMemory(func() time.Time { return b.now }, manager.NodeIndexes("machine"))
	for _, name := range nodes {
		_, err := b.nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: name}}})
		require.NoError(t, err)
	}
	b.restart()
	return b
}

// restart begins another process, which knows only what is written on the nodes.
func (b *drainWorld) restart() {
	var err error
	b.drains, err = drains.New(drains.Options{
		Nodes: b.nodes, Workload: drains.Workload{Pods: b.work, Volumes: b.work}, Now: func() time.Time { return b.now },
		Limit: drains.Limit{Max: 1, Group: func(n *machine.Node) string { return n.Name[:1] }},
	})
	require.NoError(b, err)
}

// drain makes one step of a node's drain.
func (b *drainWorld) drain(n *machine.Node) machine.DrainAnswer {
	answer, err := b.drains.Drain(ctx, &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "of-" + n.Name}}},
		&machine.DrainNode{Node: n, Since: b.now, Until: b.now.Add(time.Hour)})
	require.NoError(b, err)
	return answer
}

// empties drains a node whose pod can be evicted.
func (b *drainWorld) empties(name string) {
	require.False(b, b.drain(b.node(name)).Done, "the pod is evicted first")
	require.True(b, b.drain(b.node(name)).Done)
}

func (b *drainWorld) node(name string) *machine.Node {
	n, err := b.nodes.Get(ctx, object.Key{Name: name})
	require.NoError(b, err)
	return n
}

// TestDrainSlots: one node of a group is drained at a time, even by a process that starts during a drain. The slot
// is free once the node is gone.
// Invariants: P22 P26
func TestDrainSlots(t *testing.T) {
	b := newDrainWorld(t, "a1", "a2", "b1")
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

// TestDrainOfANodeThatGoesMeanwhile: a node that is gone when its drain is recorded counts as drained.
func TestDrainOfANodeThatGoesMeanwhile(t *testing.T) {
	b := newDrainWorld(t, "a1")
	n := b.node("a1")
	require.NoError(t, b.nodes.Delete(ctx, n.Key, ""))
	require.True(t, b.drain(n).Done)
	require.Zero(t, b.work.evictions)
}

// TestDrainWaitsForVolumes: while the volumes of the pods are not all known, no pod is evicted.
// Invariants: P22
func TestDrainWaitsForVolumes(t *testing.T) {
	b := newDrainWorld(t, "a1")
	b.work.part = true
	require.False(t, b.drain(b.node("a1")).Done)
	require.Zero(t, b.work.evictions)
	b.work.part = false
	b.empties("a1")
	require.Equal(t, 1, b.work.evictions)
}

// unread is a collection of nodes that can't be read for a while.
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
	pods := &podPerNode{gone: map[string]bool{}}
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
