package manager_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// script is a drainer with prepared answers.
type script struct {
	w        *world
	drain    func(*machine.DrainNode) (machine.DrainAnswer, error)
	detach   func(*machine.DetachVolumes) (machine.DrainAnswer, error)
	drains   int
	detaches int
	effects  map[string]int
}

func (s *script) Drain(_ context.Context, m *machine.Machine, e *machine.DrainNode) (machine.DrainAnswer, error) {
	s.drains++
	require.Equal(s.w.t, m.Spec.NodeName, e.Node.Name)
	if s.drain == nil {
		return machine.DrainAnswer{Done: true}, nil
	}
	return s.drain(e)
}

func (s *script) Detach(_ context.Context, _ *machine.Machine, e *machine.DetachVolumes) (machine.DrainAnswer, error) {
	s.detaches++
	if s.detach == nil {
		return machine.DrainAnswer{Done: true}, nil
	}
	return s.detach(e)
}

// drained returns a machine that runs, in a manager with a scripted drainer.
func drained(t *testing.T) (*world, *script, manager.Reconciler) {
	w := newWorld(t, drivertest.MemoryOptions{})
	o, s := w.options(), &script{w: w, effects: map[string]int{}}
	o.Drainer = s
	o.Hooks.Effect = func(_ manager.Kind, _ object.Key, name string, _ time.Duration, _ error) { s.effects[name]++ }
	r := reconciler(t, o, manager.KindMachine)
	_, err := w.machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	w.look(r)
	w.join()
	w.look(r)
	require.Equal(t, machine.PhaseRunning, w.machine().Status.Phase)
	w.events = nil
	return w, s, r
}

func (w *world) look(r manager.Reconciler) manager.Result {
	result, err := r.Reconcile(ctx, fleetKey)
	require.NoError(w.t, err)
	return result
}

func (w *world) machine() *machine.Machine {
	m, err := w.machines.Get(ctx, fleetKey)
	require.NoError(w.t, err)
	return m
}

func (w *world) countEvents(text string) int {
	return strings.Count(strings.Join(w.events, "\n"), text)
}

// TestDrainBeforeDeletion: the VM stays until the drainer is done. What holds the drain up is reported once, no
// matter how many passes see it.
func TestDrainBeforeDeletion(t *testing.T) {
	w, s, r := drained(t)
	at := w.at.Add(20 * time.Second)
	s.drain = func(e *machine.DrainNode) (machine.DrainAnswer, error) {
		require.False(t, e.Forced)
		require.Equal(t, w.machine().DeletedAt, e.Since)
		return machine.DrainAnswer{At: at, Why: "pod a/db-0 is held by budget db", Blocked: true}, nil
	}
	require.NoError(t, w.machines.Delete(ctx, fleetKey, ""))
	for range 5 {
		require.Equal(t, at, w.look(r).At)
	}
	require.Equal(t, 5, s.drains)
	require.Equal(t, 1, w.countEvents("Warning machine DrainProgress"), w.events)
	require.Equal(t, "pod a/db-0 is held by budget db", w.machine().Status.LastOperation.Message)
	require.Equal(t, 1, w.provider.Count())
	s.drain = nil
	w.look(r)
	require.Empty(t, keysOf(w.machines))
	require.Zero(t, w.provider.Count())
	require.Zero(t, s.detaches, "no force, no volumes")
}

// TestDrainByForce: when its time is up the drain is forced, volumes get a time of their own, and then the VM is
// deleted.
func TestDrainByForce(t *testing.T) {
	w, s, r := drained(t)
	s.drain = func(e *machine.DrainNode) (machine.DrainAnswer, error) {
		return machine.DrainAnswer{Done: e.Forced, Forced: e.Forced, Why: "pods"}, nil
	}
	s.detach = func(*machine.DetachVolumes) (machine.DrainAnswer, error) {
		return machine.DrainAnswer{Why: "volumes"}, nil
	}
	require.NoError(t, w.machines.Delete(ctx, fleetKey, ""))
	w.at = w.look(r).At
	require.Equal(t, w.machine().DeletedAt.Add(2*time.Hour+time.Second), w.at)
	w.at = w.look(r).At
	require.Equal(t, machine.StageDeleteVolumeAttachments, w.machine().Status.LastOperation.Stage)
	require.Equal(t, 1, w.provider.Count())
	w.look(r)
	require.Empty(t, keysOf(w.machines))
	require.Equal(t, 2, s.detaches)
	require.Equal(t, 1, w.countEvents("Warning machine DetachTimeout"), w.events)
}

// TestDrainFails: an error is a failure with its code, and the drain is tried again later. After a conflict the
// pass begins again.
func TestDrainFails(t *testing.T) {
	w, s, r := drained(t)
	failure := error(store.ErrConflict)
	s.drain = func(*machine.DrainNode) (machine.DrainAnswer, error) {
		defer func() { failure = errors.New("the API server is down") }()
		return machine.DrainAnswer{}, failure
	}
	require.NoError(t, w.machines.Delete(ctx, fleetKey, ""))
	result := w.look(r)
	require.Equal(t, 2, s.drains)
	op := w.machine().Status.LastOperation
	require.Equal(t, machine.StateFailed, op.State)
	require.Equal(t, codes.Unavailable, op.Code)
	require.Contains(t, op.Message, "API server")
	for range 3 {
		w.look(r)
	}
	require.Equal(t, 2, s.drains, "the drain is tried again too early")
	s.drain = nil
	w.at = result.At
	w.look(r)
	require.Empty(t, keysOf(w.machines))
}

// TestForceAfterALongDrain: a node becomes ready again while a drain of it fails. It does not count as silent,
// although the pass has read it before and force would be due.
// Invariants: P22
func TestForceAfterALongDrain(t *testing.T) {
	w, s, r := drained(t)
	nodeIs := func(status object.ConditionStatus) {
		n, err := w.nodes.Get(ctx, object.Key{Name: w.machine().Spec.NodeName})
		require.NoError(t, err)
		w.ready(n, status)
	}
	nodeIs(object.Unknown)
	w.at = w.at.Add(machine.DefaultPolicy().Unresponsive - 10*time.Second)
	s.drain = func(e *machine.DrainNode) (machine.DrainAnswer, error) {
		require.False(t, e.Forced)
		w.at = w.at.Add(20 * time.Second)
		nodeIs(object.True)
		return machine.DrainAnswer{}, errors.New("the API server is down")
	}
	require.NoError(t, w.machines.Delete(ctx, fleetKey, ""))
	w.look(r)
	require.Equal(t, machine.StageInitiateDrain, w.machine().Status.LastOperation.Stage)
	require.Equal(t, 1, s.drains)
	require.Zero(t, s.detaches)
	require.Equal(t, 1, w.provider.Count())
	s.drain = nil
	w.at = w.at.Add(time.Minute)
	w.look(r)
	require.Empty(t, keysOf(w.machines))
	require.Zero(t, s.detaches, "no force, no volumes")
}

// TestDrainerWithoutCluster: a drainer without a cluster is an error.
func TestDrainerWithoutCluster(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	o := w.options()
	o.Cluster, o.Drainer = nil, &script{w: w}
	_, err := manager.New(o)
	require.ErrorIs(t, err, manager.ErrOptions)
}

// answer acts as the update agent on a node, once the node asks for an update.
func (w *world) answer(result string) {
	n, err := w.nodes.Get(ctx, object.Key{Name: w.machine().Spec.NodeName})
	require.NoError(w.t, err)
	reported := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate)
	require.NotNil(w.t, reported)
	require.Equal(w.t, object.True, reported.Status)
	require.Equal(w.t, machine.ReasonReadyForUpdate, reported.Reason)
	require.True(w.t, n.Unschedulable)
	n = n.Clone()
	n.Labels[machine.DefaultPolicy().Keys.UpdateResult] = result
	_, err = w.nodes.Update(ctx, n)
	require.NoError(w.t, err)
}

func (w *world) wants(r machine.InPlaceRequest) {
	m := w.machine().Clone()
	m.Spec.InPlace = r
	_, err := w.machines.Update(ctx, m)
	require.NoError(w.t, err)
}

// TestInPlaceUpdate updates a machine in place, with real stores and a drainer that writes the node.
func TestInPlaceUpdate(t *testing.T) {
	w, s, r := drained(t)
	s.drain = func(e *machine.DrainNode) (machine.DrainAnswer, error) {
		n := e.Node.Clone()
		n.Annotations = map[string]string{"drained": "yes"}
		n, err := w.nodes.Update(ctx, n)
		return machine.DrainAnswer{Done: true, Node: n}, err
	}
	w.wants(machine.InPlaceSelected)
	w.look(r)
	require.Equal(t, machine.StageReady, w.machine().Status.LastOperation.Stage)
	w.answer(machine.UpdateSuccessful)
	w.look(r)
	require.Equal(t, machine.PhaseInPlaceUpdateSuccessful, w.machine().Status.Phase)
	w.wants(machine.InPlaceNone)
	w.look(r)
	require.Equal(t, machine.PhaseRunning, w.machine().Status.Phase)
	n, err := w.nodes.Get(ctx, object.Key{Name: w.machine().Spec.NodeName})
	require.NoError(t, err)
	require.False(t, n.Unschedulable)
	require.Equal(t, machine.UpdateMarks{}, n.Applied.Update)
	require.Equal(t, "yes", n.Annotations["drained"])
	version := w.machine().Version
	for range 3 {
		w.look(r)
	}
	require.Equal(t, version, w.machine().Version, "P28: written again")
	require.Equal(t, 1, s.drains)
	require.Equal(t, 3, s.effects["MarkNode"], "the marks are drained, ready and updated: no mark is repeated after a write of the drainer")
	for _, event := range []string{"Progress machine SelectedForUpdate ", "Normal machine Updated ", "Normal machine BackInService "} {
		require.Equal(t, 1, w.countEvents(event), event)
	}
}

// database is a pod with a volume, on a node whose kubelet moves a deleted pod to Succeeded
// before the pod's object is gone (Kubernetes 1.27 and later).
type database struct {
	drains.Pods
	drains.Volumes
	attachments []*drain.Attachment
	now         func() time.Time
	evicted     bool
	ends        time.Time // when its containers end
	gone        time.Time // when its object is gone
}

func (p *database) On(context.Context, string) ([]*drain.Pod, bool, error) {
	pod := &drain.Pod{
		Key: object.Key{Namespace: "apps", Name: "db-0"}, UID: "1", Owner: &object.Owner{Kind: "StatefulSet"},
		Grace: 30 * time.Second, Claims: []string{"data-db-0"},
	}
	switch now := p.now(); {
	case !p.evicted:
	case !now.Before(p.gone):
		return nil, true, nil
	default:
		pod.GraceEnds, pod.Finished = p.ends, !now.Before(p.ends)
	}
	return []*drain.Pod{pod}, true, nil
}

func (p *database) Evict(context.Context, drain.Order) (drain.Answer, error) {
	if !p.evicted {
		p.evicted, p.ends = true, p.now().Add(30*time.Second)
		p.gone = p.ends.Add(time.Minute)
	}
	return drain.Answer{Result: drain.Accepted}, nil
}

func (p *database) Bound(context.Context, []object.Key) ([]*drain.Volume, bool, error) {
	return []*drain.Volume{{Name: "pv", Claim: object.Key{Namespace: "apps", Name: "data-db-0"}, Handle: "vol"}}, true, nil
}

func (p *database) VolumeAttachments(context.Context, string, []string) ([]*drain.Attachment, error) {
	return p.attachments, nil
}

func (p *database) VolumesAttached(context.Context, string) ([]string, error) { return nil, nil }

// TestDrainOfAFinishedPodWithAVolume: the last pod with a volume has finished, but its object still exists. The
// drain goes on, and waits only for the volume.
// Invariants: P11
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
	require.True(t, work.evicted)
	require.Equal(t, []string{"pv"}, order.Node.Drain.Turn.Volumes)

	now = now.Add(40 * time.Second) // finished, and its object is there
	answer := look()
	require.False(t, answer.Done)
	require.Contains(t, answer.Why, "pv")

	work.attachments = []*drain.Attachment{}
	require.True(t, look().Done)
}

// contended is a collection of nodes to which another client writes just before the first turn is recorded.
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

// TestConflictOnTheTurnOfADrain: a pod with a volume was evicted, the write of its turn meets a conflict, and by
// the next pass the pod has finished or is gone. The VM stays until the volume is detached (P22), or until the
// time for that is over (P21).
// Invariants: P22
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
	evictedAt := w.at
	result := w.look(r)
	require.Equal(t, 1, nodes.met)
	require.Equal(t, 1, w.provider.Count(), "the VM is gone and its volume is attached")
	require.Contains(t, w.machine().Status.LastOperation.Message, "pv")
	if detaches {
		work.attachments = []*drain.Attachment{}
	} else {
		require.WithinDuration(t, evictedAt.Add(30*time.Second+2*time.Minute), result.At, 2*time.Second)
		w.at = result.At
	}
	w.look(r)
	require.Zero(t, w.provider.Count())
}
