package manager_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
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

// update lets every machine take the next step of its update in place, as its own controller and an agent on its
// node would do together.
func (w *world) update() {
	machines, err := w.machines.List(ctx, store.Query{})
	require.NoError(w.t, err)
	for _, m := range machines {
		next := m.Status.Phase
		switch request := m.Spec.InPlace; {
		case m.Deleted():
		case next == machine.PhaseRunning && request == machine.InPlaceSelected:
			next = machine.PhaseInPlaceUpdating
		case next == machine.PhaseInPlaceUpdating:
			next = machine.PhaseInPlaceUpdateSuccessful
		case next == machine.PhaseInPlaceUpdateSuccessful && request == machine.InPlaceNone:
			next = machine.PhaseRunning
		}
		if next == m.Status.Phase {
			continue
		}
		m = m.Clone()
		m.Status.Phase, m.Status.Since = next, w.at
		_, err := w.machines.UpdateStatus(ctx, m)
		require.NoError(w.t, err)
		w.writes++
	}
}

// inPlaceFleet stores a fleet of three that is updated in place, one machine at a time.
func (w *world) inPlaceFleet() {
	w.bounded, w.agents = true, true
	w.fleet()
	w.change(func(d *deployment.Deployment) {
		d.Spec.Strategy = deployment.Strategy{Kind: deployment.InPlaceUpdate}
		d.Spec.Strategy.MaxUnavailable.Value = 1
		version("1")(d)
	})
}

func version(v string) func(*deployment.Deployment) {
	return func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"version": v} }
}

// requireUpdated requires that the first machines still exist, have the template of a version, are in one set, and
// show no trace of an update.
func (w *world) requireUpdated(v string) {
	machines, err := w.machines.List(ctx, store.Query{})
	require.NoError(w.t, err)
	require.Len(w.t, w.made, 3, w.dump())
	for _, m := range machines {
		require.Equal(w.t, map[string]string{"version": v}, m.Annotations, w.dump())
		require.Empty(w.t, m.Spec.InPlace)
		require.Equal(w.t, machines[0].Owner, m.Owner)
	}
	for _, key := range keysOf(w.sets) {
		set, err := w.sets.Get(ctx, key)
		require.NoError(w.t, err)
		require.Empty(w.t, set.Instructions.Handover.Arriving, w.dump())
		require.Empty(w.t, set.Instructions.Handover.Leaving, w.dump())
	}
}

// inPlaceLife makes a fleet, updates it in place, and rolls it back.
func (w *world) inPlaceLife(p *process, died func() *process) {
	w.inPlaceFleet()
	p = w.until(p, w.settled(3), died)
	for _, v := range []string{"2", "1"} {
		w.change(version(v))
		p = w.until(p, w.settled(3), died)
		w.requireUpdated(v)
	}
}

// TestInPlaceThroughTheManager: three machines are updated three times. They stay the same machines, no
// further VM is made and none is deleted, at most one machine is not ready at a time, and each move is
// reported.
func TestInPlaceThroughTheManager(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.inPlaceFleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	least := 3
	for _, v := range []string{"2", "3", "2"} {
		w.change(version(v))
		w.until(p, func() bool {
			ready := 0
			machines, err := w.machines.List(ctx, store.Query{})
			require.NoError(t, err)
			for _, m := range machines {
				if m.Ready() {
					ready++
				}
			}
			least = min(least, ready)
			return w.settled(3)()
		}, neverDies(t))
		w.requireUpdated(v)
	}
	require.Equal(t, 2, least, "ready machines")
	require.Equal(t, 3, count(w, codes.CreateMachine))
	require.Zero(t, count(w, codes.DeleteMachine))
	require.Equal(t, 9, w.reported(deployment.ReasonMove))
	require.Zero(t, w.failedEffects, "an effect failed: the manager did not know its own last write")
}

// TestSelectionByHandWakes: a machine that is selected by hand wakes its deployment.
func TestSelectionByHandWakes(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.inPlaceFleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	machines, err := w.machines.List(ctx, store.Query{})
	require.NoError(t, err)
	selected := machines[0].Clone()
	selected.Spec.InPlace = machine.InPlaceSelected
	selected.Generation++
	woken := 0
	for _, wake := range p.Wakes() {
		if wake.From == manager.KindMachine && wake.To == manager.KindDeployment {
			require.Equal(t, []object.Key{fleetKey}, wake.Keys(ctx, machines[0], selected))
			woken++
		}
	}
	require.Equal(t, 1, woken)
}

// TestInPlaceManually: with manual selection, the deployment selects no machine by itself.
func TestInPlaceManually(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.inPlaceFleet()
	w.change(func(d *deployment.Deployment) { d.Spec.Strategy.Orchestration = deployment.Manual })
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	w.change(version("2"))
	marked := func(n int) func() bool {
		return func() bool {
			d, err := w.deployments.Get(ctx, fleetKey)
			require.NoError(t, err)
			return int(d.Status.InPlace.Candidates) == n && int(d.Status.Updated) == 3-n && d.Status.Available == 3
		}
	}
	for left := 3; left > 0; left-- {
		p = w.until(p, marked(left), neverDies(t))
		machines, err := w.machines.List(ctx, store.Query{})
		require.NoError(t, err)
		i := slices.IndexFunc(machines, func(m *machine.Machine) bool { return m.Spec.InPlace == machine.InPlaceCandidate })
		m := machines[i].Clone()
		m.Spec.InPlace = machine.InPlaceSelected
		_, err = w.machines.Update(ctx, m)
		require.NoError(t, err)
	}
	w.until(p, w.settled(3), neverDies(t))
	w.requireUpdated("2")
}

// TestInPlaceKilledAnywhere kills the manager once at each call, at odd ones before the call takes effect,
// at even ones after it. The same three machines exist all the time.
// Invariants: P10 P26
func TestInPlaceKilledAnywhere(t *testing.T) {
	total := &testkit.Fuse{}
	undisturbed := newWorld(t, drivertest.MemoryOptions{})
	undisturbed.inPlaceLife(undisturbed.start(total, false), neverDies(t))
	for n := range testkit.EveryCall(total.Calls, 7) {
		w := newWorld(t, drivertest.MemoryOptions{})
		w.inPlaceLife(w.start(&testkit.Fuse{BlowAt: n, BlowAfter: n%2 == 0}, false), func() *process { return w.start(&testkit.Fuse{}, false) })
	}
}

// TestInPlaceStaleAndKilled kills processes at random, while their caches lag.
// Invariants: P5 P26
func TestInPlaceStaleAndKilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drivertest.MemoryOptions{})
		kills := rapid.IntRange(0, 4).Draw(t, "kills")
		begin := func() *process {
			f := &testkit.Fuse{}
			if kills > 0 {
				kills--
				f.BlowAt = rapid.IntRange(1, 400).Draw(t, "dies at call")
				f.BlowAfter = rapid.Bool().Draw(t, "after it took effect")
			}
			return w.startLagging(t, f)
		}
		w.inPlaceLife(begin(), begin)
	})
}

// interrupting is a store that calls before just before each live list.
type interrupting struct {
	store.Collection[*machine.Machine]
	before func()
}

func (c interrupting) Live() store.Reader[*machine.Machine] {
	return interruptingReader{c.Collection.Live(), c.before}
}

type interruptingReader struct {
	store.Reader[*machine.Machine]
	before func()
}

func (r interruptingReader) List(ctx context.Context, q store.Query) ([]*machine.Machine, error) {
	r.before()
	return r.Reader.List(ctx, q)
}

// TestMovedBetweenTwoReads: a machine moves to a set after the set was read, and before its machines are. The set
// does not count it as one too many.
// Invariants: P10
func TestMovedBetweenTwoReads(t *testing.T) {
	for name, owner := range map[string]*object.Owner{"owned": {Kind: "Fleet", Name: "f", UID: "f"}, "ownerless": nil} {
		t.Run(name, func(t *testing.T) { movedBetweenTwoReads(t, owner) })
	}
}

func movedBetweenTwoReads(t *testing.T, owner *object.Owner) {
	t.Helper()
	w := newWorld(t, drivertest.MemoryOptions{})
	labels := map[string]string{"app": "web"}
	set := &machineset.Set{Meta: object.Meta{Key: fleetKey, Owner: owner}}
	set.Finalizers = []string{machineset.Finalizer}
	set.Spec = machineset.Spec{Replicas: 1, Selector: object.Selector{Labels: labels}}
	set.Spec.Template = machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}}
	set, err := w.sets.Create(ctx, set)
	require.NoError(t, err)
	join := func(name string) {
		m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: name}, Labels: labels}, Spec: set.Spec.Template.Spec}
		m.Finalizers = []string{machine.Finalizer}
		m.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: set.Name, UID: set.UID}
		_, err := w.machines.Create(ctx, m)
		require.NoError(t, err)
	}
	for n := range 2 { // there is one machine too many, so the set reads live
		join(fmt.Sprintf("web-%d", n))
	}
	moved := false
	m, err := manager.New(manager.Options{
		Policies: manager.Policies{Safety: safety.Off()},
		Store: manager.Store{
			Sets: w.sets, Classes: w.classes, Secrets: w.secrets,
			Machines: interrupting{w.machines, func() {
				if moved {
					return
				}
				moved = true
				s, err := w.sets.Get(ctx, fleetKey)
				require.NoError(t, err)
				s = s.Clone()
				s.Spec.Replicas, s.Instructions.Handover.Arriving = 2, []string{"web-2"}
				_, err = w.sets.Update(ctx, s)
				require.NoError(t, err)
				join("web-2")
			}},
		}, Driver: w.provider, Runtime: manager.Runtime{Now: w.now},
	})
	require.NoError(t, err)
	for _, r := range m.Reconcilers() {
		if r.Kind() == manager.KindSet {
			_, err := r.Reconcile(ctx, fleetKey)
			require.NoError(t, err)
		}
	}
	require.True(t, moved)
	machines, err := w.machines.List(ctx, store.Query{})
	require.NoError(t, err)
	deleted := 0
	for _, m := range machines {
		if m.Deleted() {
			deleted++
		}
	}
	require.Equal(t, 1, deleted, "of three, of which two are wanted")
}

// TestInPlaceWaitsForItsClass: a machine is not updated in place to a class from which none could be created.
// The deployment says why, and the rollout goes on once the class is repaired.
func TestInPlaceWaitsForItsClass(t *testing.T) {
	secret := func(name string) *machine.Secret {
		return &machine.Secret{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: name}}}
	}
	foreign := object.Key{Namespace: "theirs", Name: "boot"}
	for name, c := range map[string]struct {
		class  *machine.Class  // nil: there is none
		secret *machine.Secret // nil: none is stored
		why    string
	}{
		"missing":                     {why: "class large does not exist"},
		"invalid":                     {class: &machine.Class{SecretRef: &object.Key{}}, why: "secretRef.name must not be empty"},
		"secret missing":              {class: &machine.Class{SecretRef: &object.Key{Name: "absent"}}, why: "secret fleet/absent, which does not exist"},
		"secret of another namespace": {class: &machine.Class{SecretRef: &foreign}, why: "classes may not take secrets from namespace theirs"},
		"no user data":                {class: &machine.Class{SecretRef: &object.Key{Name: "empty"}}, secret: secret("empty"), why: "hold no userData"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, drivertest.MemoryOptions{})
			w.setOptions = func(o *manager.Options, _ *testkit.Fuse) { o.Classes.SecretNamespaces = []string{} }
			w.inPlaceFleet()
			p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
			good, err := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: "small"})
			require.NoError(t, err)
			large := object.Key{Namespace: namespace, Name: "large"}
			if c.secret != nil {
				_, err := w.secrets.Create(ctx, c.secret)
				require.NoError(t, err)
			}
			if c.class != nil {
				class := good.Clone()
				class.Meta, class.SecretRef = object.Meta{Key: large}, c.class.SecretRef
				_, err := w.classes.Create(ctx, class)
				require.NoError(t, err)
			}
			w.change(func(d *deployment.Deployment) { d.Spec.Template.Spec.Class.Name = large.Name })
			end := w.at.Add(time.Hour)
			w.until(p, func() bool {
				machines, err := w.machines.List(ctx, store.Query{})
				require.NoError(t, err)
				for _, m := range machines {
					require.Equal(t, "small", m.Spec.Class.Name)
					require.Empty(t, m.Spec.InPlace)
				}
				return !w.at.Before(end)
			}, neverDies(t))
			d, err := w.deployments.Get(ctx, fleetKey)
			require.NoError(t, err)
			require.Contains(t, deployment.Missing(d), c.why)
			require.Contains(t, w.warnings[len(w.warnings)-1], c.why)

			if err := w.classes.Delete(ctx, large, ""); err != nil {
				require.ErrorIs(t, err, store.ErrNotFound)
			}
			class := good.Clone()
			class.Meta = object.Meta{Key: large}
			_, err = w.classes.Create(ctx, class)
			require.NoError(t, err)
			w.until(p, w.settled(3), neverDies(t))
			require.Len(t, w.made, 3, "no machine was replaced")
			require.Nil(t, w.condition(fleetKey.Name, deployment.ConditionClassInvalid))
		})
	}
}
