package manager_test

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// refusing is a store that refuses writes.
type refusing[T object.Object[T]] struct {
	store.Collection[T]
	creates, updates, reads func() error
}

func (r *refusing[T]) Create(ctx context.Context, o T) (T, error) {
	return guarded(r.creates, func() (T, error) { return r.Collection.Create(ctx, o) })
}

func (r *refusing[T]) Update(ctx context.Context, o T) (T, error) {
	return guarded(r.updates, func() (T, error) { return r.Collection.Update(ctx, o) })
}

func (r *refusing[T]) Get(ctx context.Context, k object.Key) (T, error) {
	return guarded(r.reads, func() (T, error) { return r.Collection.Get(ctx, k) })
}

func (r *refusing[T]) Live() store.Reader[T] { return r }

func guarded[T any](refuse func() error, do func() (T, error)) (T, error) {
	if refuse != nil {
		if err := refuse(); err != nil {
			var none T
			return none, err
		}
	}
	return do()
}

var errNo = errors.New("the store says no")

// reconciler returns the reconciler of a kind, in a manager with these options.
func reconciler(t *testing.T, o manager.Options, kind manager.Kind) manager.Reconciler {
	o.Policies.Safety = cmp.Or(o.Policies.Safety, safety.Off())
	m, err := manager.New(o)
	require.NoError(t, err)
	for _, r := range m.Reconcilers() {
		if r.Kind() == kind {
			return r
		}
	}
	t.Fatal("no reconciler of kind", kind)
	return nil
}

func (w *world) options() manager.Options {
	o := manager.InMemory(w.now)
	o.Store.Machines, o.Store.Sets, o.Store.Deployments, o.Store.Classes, o.Store.Secrets = w.machines, w.sets, w.deployments, w.classes, w.secrets
	o.Cluster, o.Driver, o.Policies.Safety = nodes{w.nodes}, w.provider, safety.Off()
	o.Runtime.Jitter = testkit.NoJitter
	o.Hooks.Event = func(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
		w.events = append(w.events, strings.Join([]string{string(typ), string(kind), reason, why}, " "))
	}
	o.Runtime.Each = testkit.InOrder
	return o
}

func (w *world) loneSet(n int32) {
	labels := map[string]string{"app": "web"}
	s := &machineset.Set{Meta: object.Meta{Key: fleetKey}, Spec: machineset.Spec{Replicas: n}}
	s.Spec.Selector.Labels = labels
	s.Spec.Template = machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}}
	_, err := w.sets.Create(ctx, s)
	require.NoError(w.t, err)
}

// TestRefusedOrdersBackOff: however often a set is woken, refused orders are tried ever more rarely. If they are
// refused again later, that is reported again.
func TestRefusedOrdersBackOff(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	tries, bad := 0, true
	o := w.options()
	o.Store.Deployments = nil
	o.Store.Machines = &refusing[*machine.Machine]{Collection: w.machines, creates: func() error {
		if tries++; bad {
			return errNo
		}
		return nil
	}}
	r := reconciler(t, o, manager.KindSet)
	wakeFor := func(d time.Duration) {
		for end := w.at.Add(d); w.at.Before(end); w.at = w.at.Add(500 * time.Millisecond) {
			_, err := r.Reconcile(ctx, fleetKey)
			require.NoError(t, err)
		}
	}
	warnings := func() int { return strings.Count(strings.Join(w.events, "\n"), "Warning set") }
	w.loneSet(1)
	wakeFor(2 * time.Minute)
	require.LessOrEqual(t, tries, 6, "attempts in 2 min")
	require.GreaterOrEqual(t, tries, 3, "attempts in 2 min")
	first := warnings()
	require.Positive(t, first)
	require.Less(t, first, 6, "reported: %v", w.events)

	bad = false
	wakeFor(20 * time.Minute)
	require.Len(t, keysOf(w.machines), 1)
	bad = true
	s, err := w.sets.Get(ctx, fleetKey)
	require.NoError(t, err)
	s = s.Clone()
	s.Spec.Replicas = 2
	_, err = w.sets.Update(ctx, s)
	require.NoError(t, err)
	wakeFor(time.Second)
	require.Greater(t, warnings(), first, "the second trouble was not reported")
}

// TestRefusedSetWaits: however often a deployment is woken, a refused set is not tried early, unless the
// deployment changes.
func TestRefusedSetWaits(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	tries := 0
	o := w.options()
	o.Store.Sets = &refusing[*machineset.Set]{Collection: w.sets, creates: func() error { tries++; return errNo }}
	r := reconciler(t, o, manager.KindDeployment)
	w.fleet()
	wake := func(times int) {
		for range times {
			_, err := r.Reconcile(ctx, fleetKey)
			require.NoError(t, err)
		}
	}
	wake(20)
	require.Equal(t, 1, tries)
	require.Equal(t, 1, strings.Count(strings.Join(w.events, "\n"), "Warning deployment"), "%v", w.events)
	w.at = w.at.Add(6 * time.Second)
	wake(20)
	require.Equal(t, 2, tries)
	w.change(func(d *deployment.Deployment) { d.Spec.Replicas = 4 })
	wake(20)
	require.Equal(t, 3, tries)
}

// TestOrdersAreReportedOnce: a conflict begins a pass again, which reports nothing twice.
func TestOrdersAreReportedOnce(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	conflicts := 1
	o := w.options()
	o.Store.Sets = &refusing[*machineset.Set]{Collection: w.sets, updates: func() error {
		if conflicts--; conflicts == 0 {
			return store.ErrConflict
		}
		return nil
	}}
	w.fleet()
	_, err := reconciler(t, o, manager.KindDeployment).Reconcile(ctx, fleetKey)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(strings.Join(w.events, "\n"), "ScaleSet"), "%v", w.events)
}

// TestFailedPassPauses: a pass that writes and then fails is not repeated at once because of its own write.
func TestFailedPassPauses(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	o := w.options()
	o.Runtime.Now, o.Runtime.Jitter, o.Store.Sets, o.Store.Deployments = nil, nil, nil, nil
	o.Policies.Machine = machine.DefaultPolicy()
	o.Policies.Machine.CreationTimeout = 1000 * time.Hour // the stores' clock stands still
	o.Cluster = nodes{&refusing[*machine.Node]{Collection: w.nodes, reads: func() error { return errNo }}}
	within, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	var passes atomic.Int64
	o.Hooks = manager.Hooks{Pass: func(_ manager.Kind, _ object.Key, _ int, _ manager.Result, err error) {
		if passes.Add(1); err != nil && passes.Load() >= 3 {
			stop() // no earlier than after the second pause
		}
	}}
	m, err := manager.New(o)
	require.NoError(t, err)
	_, err = w.machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	began := time.Now()
	require.NoError(t, m.Run(within))
	require.GreaterOrEqual(t, time.Since(began), 3*200*time.Millisecond, "three passes in less than their pauses")
}

// TestHalfDoneSyncIsFinished: virtual capacity that a class no longer has is removed from the node, even if the
// first attempt stops half-way.
func TestHalfDoneSyncIsFinished(t *testing.T) {
	for _, after := range []bool{false, true} {
		w := newWorld(t, drivertest.MemoryOptions{})
		w.capacity(map[string]string{"example.com/fpga": "2"})
		w.bounded = true
		w.fleet()
		p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
		w.capacity(nil)
		for kill := 1; kill < 200; kill++ {
			f := &testkit.Fuse{BlowAt: kill, BlowAfter: after}
			w.round(w.start(f, false))
			if !f.Dead {
				break
			}
		}
		w.round(p)
		for _, key := range keysOf(w.nodes) {
			n, err := w.nodes.Get(ctx, key)
			require.NoError(t, err)
			require.Empty(t, n.Capacity, "node %s", key)
		}
	}
}

func (w *world) capacity(virtual map[string]string) {
	class, err := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: "small"})
	require.NoError(w.t, err)
	class = class.Clone()
	class.NodeTemplate = &machine.NodeShape{VirtualCapacity: virtual}
	_, err = w.classes.Update(ctx, class)
	require.NoError(w.t, err)
}

// TestMissingIndex: a manager does not start if a collection lacks an index.
func TestMissingIndex(t *testing.T) {
	o := manager.InMemory(nil)
	o.Driver = drivertest.NewMemory(drivertest.MemoryOptions{})
	o.Store.Machines = store.NewMemory[*machine.Machine](nil, nil)
	m, err := manager.New(o)
	require.NoError(t, err)
	err = m.Run(ctx)
	require.ErrorIs(t, err, manager.ErrOptions)
	require.ErrorContains(t, err, "Store.Machines, index owner")
}

// TestNoVerdictFromACache: a machine whose node is healthy again is not marked failed because a cache does not
// show it yet.
func TestNoVerdictFromACache(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.bounded = true
	p := w.start(&testkit.Fuse{}, true)
	w.fleet()
	w.until(p, w.settled(3), neverDies(t))
	ill, err := w.nodes.Get(ctx, keysOf(w.nodes)[0])
	require.NoError(t, err)
	w.ready(ill, object.Unknown)
	p.sync()
	w.round(p)
	p.sync() // the caches show the machine as Unknown; from here on they stand still
	well, err := w.nodes.Get(ctx, ill.Key)
	require.NoError(t, err)
	w.ready(well, object.True)
	w.at = w.at.Add(11 * time.Minute)
	w.round(p)
	require.Zero(t, w.lost, "a healthy machine was given up\n%s", w.dump())
}

// late is a provider whose VM joins while it is being deleted.
type late struct {
	*drivertest.Memory
	join func(name string)
}

func (d *late) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	d.join(req.Machine.Name)
	return d.Memory.DeleteMachine(ctx, req)
}

// TestNodeThatJoinsDuringDeletion: such a node is deleted with its machine.
func TestNodeThatJoinsDuringDeletion(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	o := w.options()
	o.Driver = &late{w.provider, func(name string) {
		_, err := w.nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: name}}})
		require.NoError(t, err)
	}}
	r := reconciler(t, o, manager.KindMachine)
	_, err := w.machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	_, err = r.Reconcile(ctx, fleetKey)
	require.NoError(t, err)
	require.NoError(t, w.machines.Delete(ctx, fleetKey, ""))
	_, err = r.Reconcile(ctx, fleetKey)
	require.NoError(t, err)
	require.Empty(t, keysOf(w.machines))
	require.Empty(t, keysOf(w.nodes), "a node was left behind")
}

// broken is a collection whose watches end at once. enough ends a test that begins too many.
type broken struct {
	store.Collection[*machine.Class]
	watches int
	enough  func()
}

func (b *broken) Watch(context.Context) iter.Seq2[store.Change[*machine.Class], error] {
	return func(yield func(store.Change[*machine.Class], error) bool) {
		if b.watches++; b.watches == 100 {
			b.enough()
		}
		yield(store.Change[*machine.Class]{}, errNo)
	}
}

// TestBrokenWatchesPause: a watch that ends is begun again after a pause.
func TestBrokenWatchesPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		within, stop := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer stop()
		o := manager.InMemory(nil)
		o.Driver, o.Policies.Safety = driver.Unimplemented{}, safety.Off()
		classes := &broken{Collection: o.Store.Classes, enough: stop}
		o.Store.Classes = classes
		m, err := manager.New(o)
		require.NoError(t, err)
		require.NoError(t, m.Run(within))
		require.Equal(t, 11, classes.watches, "watches in ten seconds")
	})
}
