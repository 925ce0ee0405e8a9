package manager_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// set returns the only set.
func (w *world) set() *machineset.Set {
	sets, err := w.sets.List(ctx, store.Query{})
	require.NoError(w.t, err)
	require.Len(w.t, sets, 1)
	return sets[0]
}

// addUnrequested adds machines to a set that it did not ask for.
func (w *world) addUnrequested(s *machineset.Set, n int) {
	for range n {
		w.unrequested++
		m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: fmt.Sprint("unrequested-", w.unrequested)}}}
		m.Labels = s.Spec.Template.Labels
		m.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: s.Name, UID: s.UID}
		m.Spec = s.Spec.Template.Spec
		_, err := w.machines.Create(ctx, m)
		require.NoError(w.t, err)
	}
}

// pass makes one pass over one object.
func (p *process) pass(kind manager.Kind, key object.Key) error {
	for _, r := range p.Reconcilers() {
		if r.Kind() == kind {
			_, err := r.Reconcile(ctx, key)
			return err
		}
	}
	return p.lookAt(kind)
}

// crowded returns a settled fleet of three whose set has three machines too many, while its deployment wants
// another template.
func crowded(t tb) (*world, *process) {
	w := guardedWorld(t)
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	w.addUnrequested(w.set(), 3)
	w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"version": "2"} })
	return w, p
}

// TestOvershootFreezesAndThaws: a set with too many machines freezes with its deployment. No new machine is
// created before it has thawed; then all are.
func TestOvershootFreezesAndThaws(t *testing.T) {
	w, p := crowded(t)
	clear(w.written)
	require.NoError(t, p.pass(manager.KindDeployment, fleetKey))
	require.Equal(t, 1, w.written[reflect.TypeFor[*machineset.Set]()])
	require.Equal(t, "True", w.set().Labels["freeze"], "the set is frozen, and no other was created")
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.Equal(t, "True", d.Labels["freeze"])
	require.Equal(t, object.True, object.FindCondition(d.Status.Conditions, machineset.ConditionFrozen).Status)
	require.Equal(t, 1, w.countEvents("deployment fleet/web: Overshoot: web is frozen: it has 6 machines, 6 or more are too many"))

	w.until(p, w.settled(3), neverDies(t))
	d, err = w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.Empty(t, d.Labels)
	require.Nil(t, object.FindCondition(d.Status.Conditions, machineset.ConditionFrozen))
	sets, err := w.sets.List(ctx, store.Query{})
	require.NoError(t, err)
	require.Len(t, sets, 2)
	for _, s := range sets {
		require.NotContains(t, s.Labels, "freeze")
	}
	require.Equal(t, 1, w.countEvents("Overshoot: "))
	require.Equal(t, 1, w.countEvents("OvershootOver: "))
}

// TestOvershootKilledAnywhere: the end is the same wherever the process dies between freeze and thaw.
func TestOvershootKilledAnywhere(t *testing.T) {
	total := 0
	killed := func(n int, after bool) {
		w, p := crowded(t)
		p.fuse.Calls, p.fuse.BlowAt, p.fuse.BlowAfter = 0, n, after
		if err := p.pass(manager.KindDeployment, fleetKey); err == nil {
			require.Equal(t, 1, w.countEvents("Overshoot: "))
		} else {
			require.ErrorIs(t, err, testkit.ErrDead)
		}
		settled := w.settled(3)
		w.until(p, func() bool {
			if n == 0 && w.countEvents("OvershootOver: ") > 0 && total == 0 {
				total = p.fuse.Calls // all calls up to the thaw, and the rest of its round
			}
			return settled()
		}, func() *process { return w.start(&testkit.Fuse{}, false) })
		d, err := w.deployments.Get(ctx, fleetKey)
		require.NoError(t, err)
		require.Empty(t, d.Labels, "call %d, after %t", n, after)
		require.Nil(t, object.FindCondition(d.Status.Conditions, machineset.ConditionFrozen))
	}
	killed(0, false)
	require.Greater(t, total, 20)
	for n := range testkit.EveryCall(total, 3) {
		killed(n, false)
		killed(n, true)
	}
}

// TestUnfreeze: the owner's annotation keeps a fleet from freezing. That is reported once, and the annotation is
// removed when it is not needed any more.
func TestUnfreeze(t *testing.T) {
	w, p := crowded(t)
	unfreeze := w.safety.Keys.Unfreeze
	w.change(func(d *deployment.Deployment) { d.Annotations = map[string]string{unfreeze: "yes"} })
	require.NoError(t, p.pass(manager.KindDeployment, fleetKey))
	w.until(p, w.settled(3), neverDies(t))
	require.Zero(t, w.countEvents("Overshoot: "))
	require.Equal(t, 1, w.countEvents("UnfrozenByUser: "))
	require.Equal(t, 1, w.countEvents("UnfreezeDone: "))
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.NotContains(t, d.Annotations, unfreeze)
}

// TestFrozenSetsFollowTheirDeployment: a label on a set stops its creations until its deployment removes the
// label.
func TestFrozenSetsFollowTheirDeployment(t *testing.T) {
	w := guardedWorld(t)
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	s := w.set().Clone()
	s.Labels["freeze"] = "True"
	_, err := w.sets.Update(ctx, s)
	require.NoError(t, err)
	require.NoError(t, w.machines.Delete(ctx, keysOf(w.machines)[0], ""))
	for range 5 {
		w.at = w.at.Add(time.Minute)
		require.NoError(t, p.lookAt(manager.KindReachability))
		for _, key := range keysOf(w.machines) {
			require.NoError(t, p.pass(manager.KindMachine, key))
		}
		require.NoError(t, p.pass(manager.KindSet, s.Key))
	}
	require.Len(t, keysOf(w.machines), 2)
	require.NotNil(t, object.FindCondition(w.set().Status.Conditions, machineset.ConditionFrozen))
	w.until(p, w.settled(3), neverDies(t))
	require.NotContains(t, w.set().Labels, "freeze")

	w.safety = nil // without a policy the label means nothing
	s = w.set().Clone()
	s.Labels["freeze"] = "True"
	_, err = w.sets.Update(ctx, s)
	require.NoError(t, err)
	require.NoError(t, w.machines.Delete(ctx, keysOf(w.machines)[0], ""))
	w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
}

// TestLoneSetFreezes: a set without a deployment freezes by itself.
func TestLoneSetFreezes(t *testing.T) {
	w := guardedWorld(t)
	w.loneSet(1)
	p := w.start(&testkit.Fuse{}, false)
	running := func() bool {
		return w.provider.Count() == 1 && w.phases()[machine.PhaseRunning] == 1 && len(keysOf(w.machines)) == 1
	}
	p = w.until(p, running, neverDies(t))
	w.addUnrequested(w.set(), 3)
	w.until(p, func() bool { return running() && w.set().Labels["freeze"] == "" }, neverDies(t))
	require.Equal(t, 1, w.countEvents("Overshoot: "))
	require.Equal(t, 1, w.countEvents("OvershootOver: "))
}

// TestUnmanagedNodes: a node that no machine owns is marked once it is old enough, and the mark is removed when a
// machine claims the node.
func TestUnmanagedNodes(t *testing.T) {
	w := guardedWorld(t)
	p := w.start(&testkit.Fuse{}, false)
	key := object.Key{Name: "node-1"}
	_, err := w.nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: key, Finalizers: []string{machine.NodeFinalizer, "other"}}, ProviderID: "x"})
	require.NoError(t, err)
	mark := w.safety.Keys.NotManaged
	node := func() *machine.Node {
		n, err := w.nodes.Get(ctx, key)
		require.NoError(t, err)
		return n
	}
	require.NoError(t, w.watch(p, manager.KindUnmanaged, 20*time.Minute))
	require.NotContains(t, node().Annotations, mark, "a young node is not marked")
	require.True(t, node().HasFinalizer(machine.NodeFinalizer))
	require.NoError(t, w.watch(p, manager.KindUnmanaged, time.Minute))
	require.Contains(t, node().Annotations, mark)
	require.Equal(t, []string{"other"}, node().Finalizers)
	require.Equal(t, 1, w.countEvents("unmanaged fleet: NotManaged: no machine owns node node-1, which is older than 20m0s"))

	m := &machine.Machine{Meta: object.Meta{Key: fleetKey}}
	m.Spec.ProviderID = "x"
	_, err = w.machines.Create(ctx, m)
	require.NoError(t, err)
	writes := w.written
	require.NoError(t, w.watch(p, manager.KindUnmanaged, time.Hour))
	require.NotContains(t, node().Annotations, mark)
	require.Equal(t, 1, w.countEvents("ManagedAgain: node node-1 has an owner, web"))
	require.Equal(t, writes, w.written)
}

// TestUnmanagedNodesOfAnOutage: while nodes can't be written no node is judged, and a node whose write is refused
// waits for the next pass.
func TestUnmanagedNodesOfAnOutage(t *testing.T) {
	w := guardedWorld(t)
	w.at = w.at.Add(time.Hour)
	p := w.start(&testkit.Fuse{}, false)
	for i := range 3 {
		_, err := w.nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: fmt.Sprint("node-", i)}}})
		require.NoError(t, err)
	}
	w.at = w.at.Add(time.Hour)
	require.NoError(t, p.lookAt(manager.KindReachability))
	w.targetDown = true // for a moment only
	calls := p.fuse.Calls
	require.NoError(t, p.lookAt(manager.KindUnmanaged))
	require.Equal(t, 3, w.countEvents("NodeNotWritten: "))
	require.Equal(t, calls+6, p.fuse.Calls, "three reads, and each node is written once")
	calls = p.fuse.Calls
	require.NoError(t, w.watch(p, manager.KindUnmanaged, 10*time.Minute))
	require.Greater(t, p.fuse.Calls, calls)
	require.Equal(t, 3, w.countEvents("NodeNotWritten: "), "the failures are reported once, and none while frozen")
	w.targetDown = false
	require.NoError(t, w.watch(p, manager.KindUnmanaged, 20*time.Minute))
	require.Equal(t, 3, w.countEvents("NotManaged: "))
}

// TestUnmanagedNodesMayBeGone: a deleted node that the cache still shows is written once. While everything is
// frozen, not even machines are read.
func TestUnmanagedNodesMayBeGone(t *testing.T) {
	w := guardedWorld(t)
	node, err := w.nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: "node-1"}}})
	require.NoError(t, err)
	p := w.start(&testkit.Fuse{}, true)
	require.NoError(t, w.nodes.Delete(ctx, node.Key, ""))
	w.at = w.at.Add(time.Hour)
	require.NoError(t, p.lookAt(manager.KindReachability))
	calls := p.fuse.Calls
	require.NoError(t, p.lookAt(manager.KindUnmanaged))
	require.Equal(t, calls+4, p.fuse.Calls)

	w.controlDown = true
	for range 10 {
		w.at = w.at.Add(time.Minute)
		require.NoError(t, p.lookAt(manager.KindReachability))
	}
	require.NoError(t, p.lookAt(manager.KindUnmanaged))
}

// TestRunLooksAfterTheFleet: Run checks the API servers first, and makes passes over the whole fleet although
// nothing has changed.
func TestRunLooksAfterTheFleet(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	o := manager.InMemory(nil)
	o.Store.Classes, o.Store.Secrets, o.Driver, o.Policies.Safety = w.classes, w.secrets, w.provider, safety.DefaultPolicy()
	o.Policies.Safety.OrphanGap = time.Second
	gone := make(chan string, 9)
	orphanID := w.addOrphanVM("blue", "web-lost")
	began := time.Now()
	joined := make(chan time.Time, 9)
	o.Hooks = manager.Hooks{
		Event: func(kind manager.Kind, _ object.Key, _ manager.EventType, reason, _ string) {
			if kind == manager.KindOrphans {
				gone <- reason
			}
		},
		Effect: func(_ manager.Kind, _ object.Key, name string, _ time.Duration, _ error) {
			if name == "CreateVM" {
				joined <- time.Now()
			}
		},
	}
	m, err := manager.New(o)
	require.NoError(t, err)
	_, err = o.Store.Machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	running, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- m.Run(running) }()
	select {
	case at := <-joined:
		require.Less(t, at.Sub(began), 900*time.Millisecond, "the VM was not created in the first passes")
	case <-running.Done():
		t.Fatal("no VM was created")
	}
	select {
	case reason := <-gone:
		require.Equal(t, "OrphanVM", reason)
	case <-running.Done():
		t.Fatal("the orphan VM was not deleted")
	}
	stop()
	require.NoError(t, <-ended)
	require.False(t, w.vmExists(orphanID))
}
