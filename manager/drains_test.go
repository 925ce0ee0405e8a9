package manager_test

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

// lodgers is what runs on nodes: nothing, until a node is cordoned; then a pod
// that was bound just before.
type lodgers struct {
	nodes   store.Collection[*machine.Node]
	evicted int
}

func (l *lodgers) On(ctx context.Context, node string) ([]*drain.Pod, bool, error) {
	n, err := l.nodes.Get(ctx, object.Key{Name: node})
	if err != nil || !n.Unschedulable || l.evicted > 0 {
		return nil, true, err
	}
	pod := &drain.Pod{Key: object.Key{Namespace: "apps", Name: "late"}, UID: "1", Owner: &object.Owner{Kind: "ReplicaSet"}}
	return []*drain.Pod{pod}, true, nil
}

func (l *lodgers) Evict(context.Context, drain.Order) (drain.Answer, error) {
	l.evicted++
	return drain.Answer{Result: drain.Accepted}, nil
}

func (l *lodgers) Delete(ctx context.Context, o drain.Order) (drain.Answer, error) {
	return l.Evict(ctx, o)
}

func (l *lodgers) Watch(context.Context) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}

// drainsInTwoPasses requires that a drain evicts the lodger of a node in its first pass, and ends
// in the second. pods are the lodgers, as the drain reads them.
func drainsInTwoPasses(t *testing.T, pods drains.Pods, lodgers *lodgers) {
	t.Helper()
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	nodes := store.NewMemory(clock, manager.NodeIndexes("machine"))
	node, err := nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: "n"}}})
	require.NoError(t, err)
	lodgers.nodes = nodes
	d, err := drains.New(drains.Options{Nodes: nodes, Workload: drains.Workload{Pods: pods}, Now: clock})
	require.NoError(t, err)
	answer, err := d.Drain(ctx, &machine.Machine{}, &machine.DrainNode{Node: node, Since: now, Until: now.Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, 1, lodgers.evicted)
	require.False(t, answer.Done, "%s", answer.Why)
	answer, err = d.Drain(ctx, &machine.Machine{}, &machine.DrainNode{Node: answer.Node, Since: now, Until: now.Add(time.Hour)})
	require.NoError(t, err)
	require.True(t, answer.Done, "%s", answer.Why)
}

// TestPodsAreReadOnceTheNodeIsCordoned: a pod that is bound between a first look
// at a node and its cordon is no less evicted (P22).
func TestPodsAreReadOnceTheNodeIsCordoned(t *testing.T) {
	pods := &lodgers{}
	drainsInTwoPasses(t, pods, pods)
}

// stubborn is a pod whose eviction is refused each time.
type stubborn struct {
	lodgers
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

// TestAttemptsOfAMachine: a machine's own limit of attempts bounds its drain, in place of the policy's.
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

// lagging are pods whose cache does not know the one that was bound last.
type lagging struct{ lodgers }

func (*lagging) On(context.Context, string) ([]*drain.Pod, bool, error) { return nil, true, nil }

func (l *lagging) Live(ctx context.Context, node string) ([]*drain.Pod, error) {
	pods, _, err := l.lodgers.On(ctx, node)
	return pods, err
}

// TestPodsOfACacheAreReadLiveAtTheEnd: a pod that a cache does not know is evicted, and the
// drain ends when it has gone (P22).
func TestPodsOfACacheAreReadLiveAtTheEnd(t *testing.T) {
	pods := &lagging{}
	drainsInTwoPasses(t, pods, &pods.lodgers)
}

// moved is a workload of one volume that is still attached, and no pods.
type moved struct {
	lodgers
	attachments []*drain.Attachment
}

func (m *moved) On(context.Context, string) ([]*drain.Pod, bool, error) { return nil, true, nil }

func (m *moved) Bound(context.Context, []object.Key) ([]*drain.Volume, bool, error) {
	return nil, true, nil
}

func (m *moved) Attachments(context.Context, string, []string) ([]*drain.Attachment, error) {
	return m.attachments, nil
}

func (m *moved) Attached(context.Context, string) ([]string, error) { return nil, nil }

func (m *moved) Detach(context.Context, string) (drain.Answer, error) { return drain.Answer{}, nil }

// TestNoDrainEndsOnAnOldNode: a node from a cache, which does not show yet that
// volumes are waited for, ends no drain (P22). One that is gone does.
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
