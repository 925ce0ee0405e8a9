package manager_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// database is a pod with a volume, on a node whose kubelet moves a deleted pod to Succeeded
// before the pod's object is gone (Kubernetes 1.27 and later).
type database struct {
	moved
	now  func() time.Time
	told bool
	ends time.Time // of its containers
	gone time.Time // of its object
}

func (p *database) On(context.Context, string) ([]*drain.Pod, bool, error) {
	pod := &drain.Pod{
		Key: object.Key{Namespace: "apps", Name: "db-0"}, UID: "1", Owner: &object.Owner{Kind: "StatefulSet"},
		Grace: 30 * time.Second, Claims: []string{"data-db-0"},
	}
	switch now := p.now(); {
	case !p.told:
	case !now.Before(p.gone):
		return nil, true, nil
	default:
		pod.GraceEnds, pod.Finished = p.ends, !now.Before(p.ends)
	}
	return []*drain.Pod{pod}, true, nil
}

func (p *database) Evict(context.Context, drain.Order) (drain.Answer, error) {
	if !p.told {
		p.told, p.ends = true, p.now().Add(30*time.Second)
		p.gone = p.ends.Add(time.Minute)
	}
	return drain.Answer{Result: drain.Accepted}, nil
}

func (p *database) Bound(context.Context, []object.Key) ([]*drain.Volume, bool, error) {
	return []*drain.Volume{{Name: "pv", Claim: object.Key{Namespace: "apps", Name: "data-db-0"}, Handle: "vol"}}, true, nil
}

// TestDrainOfAFinishedPodWithAVolume: the last pod with a volume has finished and is not gone
// yet. The drain goes on, and waits for the volume only.
func TestDrainOfAFinishedPodWithAVolume(t *testing.T) {
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	nodes := store.NewMemory(clock, manager.NodeIndexes("machine"))
	node, err := nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: "n"}}})
	require.NoError(t, err)
	work := &database{now: clock}
	work.attachments = []*drain.Attachment{{Name: "a", Volume: "pv", Node: "n", Attached: true}}
	d, err := drains.New(drains.Options{Nodes: nodes, Workload: drains.Workload{Pods: work, Volumes: work}, Now: clock})
	require.NoError(t, err)
	order := &machine.DrainNode{Node: node, Since: now, Until: now.Add(2 * time.Hour)}
	look := func() machine.DrainAnswer {
		answer, err := d.Drain(ctx, &machine.Machine{}, order)
		require.NoError(t, err)
		if answer.Node != nil {
			order.Node = answer.Node
		}
		return answer
	}
	require.False(t, look().Done)
	require.True(t, work.told)
	require.Equal(t, []string{"pv"}, order.Node.Drain.Turn.Volumes)

	now = now.Add(40 * time.Second) // finished, and its object is there
	answer := look()
	require.False(t, answer.Done)
	require.Contains(t, answer.Why, "pv")

	work.attachments = []*drain.Attachment{}
	require.True(t, look().Done)
}

// contended are nodes of which another client writes one just before the first turn is recorded.
type contended struct {
	store.Collection[*machine.Node]
	meanwhile func()
	met       int
}

// Update implements store.Collection.
func (c *contended) Update(ctx context.Context, n *machine.Node) (*machine.Node, error) {
	if n.Drain != nil && n.Drain.Turn.UID != "" && c.met == 0 {
		c.met++
		c.meanwhile()
		return nil, store.ErrConflict
	}
	return c.Collection.Update(ctx, n)
}

// TestConflictOnTheTurnOfADrain: a pod with a volume was told to go, the write of its turn meets a
// conflict, and the pod has finished, or is gone, by the next pass. The VM lives until the volume is
// detached (P22), or until that had its time (P21).
func TestConflictOnTheTurnOfADrain(t *testing.T) {
	for name, later := range map[string]time.Duration{"finished": 40 * time.Second, "gone": 100 * time.Second} {
		t.Run(name, func(t *testing.T) {
			conflictOnTheTurn(t, later, true)
			conflictOnTheTurn(t, later, false)
		})
	}
}

func conflictOnTheTurn(t *testing.T, later time.Duration, detaches bool) {
	w := newWorld(t, drivertest.MemoryOptions{})
	o := w.options()
	nodes := &contended{Collection: w.nodes, meanwhile: func() { w.at = w.at.Add(later) }}
	work := &database{now: func() time.Time { return w.at }}
	var err error
	o.Drainer, err = drains.New(drains.Options{
		Nodes: nodes, Workload: drains.Workload{Pods: work, Volumes: work}, Now: o.Runtime.Now,
	})
	require.NoError(t, err)
	r := reconciler(t, o, manager.KindMachine)
	_, err = w.machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	w.look(r)
	w.join()
	w.look(r)
	work.attachments = []*drain.Attachment{{Name: "a", Volume: "pv", Node: w.machine().Spec.NodeName, Attached: true}}
	require.NoError(t, w.machines.Delete(ctx, fleetKey, ""))
	told := w.at
	result := w.look(r)
	require.Equal(t, 1, nodes.met)
	require.Equal(t, 1, w.provider.Count(), "the VM is gone and its volume is attached")
	require.Contains(t, w.machine().Status.LastOperation.Message, "pv")
	if detaches {
		work.attachments = []*drain.Attachment{}
	} else {
		require.WithinDuration(t, told.Add(30*time.Second+2*time.Minute), result.At, 2*time.Second)
		w.at = result.At
	}
	w.look(r)
	require.Zero(t, w.provider.Count())
}
