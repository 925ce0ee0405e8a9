package manager_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

var (
	smallKey = object.Key{Namespace: namespace, Name: "small"}
	bootKey  = object.Key{Namespace: namespace, Name: "boot"}
)

// classNames returns the names of the classes that exist, and of those that are referred to.
func (w *world) classNames() []object.Key {
	keys := keysOf(w.classes)
	if !slices.Contains(keys, smallKey) {
		keys = append(keys, smallKey)
	}
	return keys
}

// keeping makes the world's processes keep classes and secrets.
func (w *world) keeping() {
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) { o.Classes.Keep = true }
}

// classless reports whether class and secret are gone.
func (w *world) classless() bool { return len(keysOf(w.classes))+len(keysOf(w.secrets)) == 0 }

// held reports whether class and secret both carry our finalizer.
func (w *world) held() bool {
	class, err := w.classes.Get(ctx, smallKey)
	secret, failed := w.secrets.Get(ctx, bootKey)
	return err == nil && failed == nil && class.HasFinalizer(machine.Finalizer) && secret.HasFinalizer(machine.SecretFinalizer)
}

// outlived makes a fleet whose class and secret are deleted while its machines run.
func (w *world) outlived(p *process, died func() *process) {
	w.fleet()
	p = w.until(p, func() bool { return w.settled(3)() && w.held() }, died)
	require.NoError(w.t, w.classes.Delete(ctx, smallKey, ""))
	require.NoError(w.t, w.secrets.Delete(ctx, bootKey, ""))
	require.NoError(w.t, w.deployments.Delete(ctx, fleetKey, ""))
	gone := func() bool {
		if len(keysOf(w.machines)) > 0 && !w.held() {
			w.t.Fatalf("a class or its secret is gone before its machines\n%s", w.dump())
		}
		return w.empty() && w.classless()
	}
	w.until(p, gone, died)
}

// TestClassesOutliveTheirMachines: a class and a secret that are deleted while machines use them stay until the
// last machine is gone.
// Invariants: P14
func TestClassesOutliveTheirMachines(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.keeping()
	w.outlived(w.start(&testkit.Fuse{}, false), neverDies(t))
	require.Contains(t, strings.Join(w.events, "\n"),
		"class fleet/small: ClassDeletionHeld: class small is being deleted, and stays while it is used by 3 machines")
	require.Contains(t, strings.Join(w.events, "\n"), "secret fleet/boot: SecretDeletionHeld: ")
}

// TestClassesKilledAnywhere kills the manager at every call of outlived (P26).
// Invariants: P26
func TestClassesKilledAnywhere(t *testing.T) {
	total := &testkit.Fuse{}
	undisturbed := newWorld(t, drivertest.MemoryOptions{})
	undisturbed.keeping()
	undisturbed.outlived(undisturbed.start(total, false), neverDies(t))
	for n := range testkit.EveryCall(total.Calls, 7) {
		w := newWorld(t, drivertest.MemoryOptions{})
		w.keeping()
		w.outlived(w.start(&testkit.Fuse{BlowAt: n, BlowAfter: n%2 == 0}, false), func() *process { return w.start(&testkit.Fuse{}, false) })
		require.Len(t, w.made, 3, "machines made; killed at call %d", n)
	}
}

// TestClassesStaleAndKilled kills the manager at random calls of outlived, with caches that lag.
func TestClassesStaleAndKilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drivertest.MemoryOptions{})
		w.keeping()
		lives := 2
		begin := func() *process {
			f := &testkit.Fuse{}
			if lives > 0 {
				lives--
				f.BlowAt = rapid.IntRange(1, 300).Draw(t, "dies at call")
			}
			return w.startLagging(t, f)
		}
		w.outlived(begin(), begin)
	})
}

// TestClassGoneTooEarly: if classes are not kept, a class can be deleted while machines use it. They say what is
// missing, none is forgotten, and all go on when the class is back.
func TestClassGoneTooEarly(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	class, err := w.classes.Get(ctx, smallKey)
	require.NoError(t, err)
	require.NoError(t, w.classes.Delete(ctx, smallKey, ""))
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	for range 20 {
		w.round(p)
		w.at = w.at.Add(time.Minute)
	}
	require.Equal(t, 3, w.provider.Count())
	require.Len(t, keysOf(w.machines), 3)
	require.Contains(t, strings.Join(w.events, "\n"), "class small does not exist, and the provider can't be called without it")
	_, err = w.classes.Create(ctx, class)
	require.NoError(t, err)
	w.until(p, w.empty, neverDies(t))
}

// TestUnusedClassesLoseTheirFinalizer: a class without references has no finalizer, even while it is not being
// deleted. A settled class is not written.
// Invariants: P28
func TestUnusedClassesLoseTheirFinalizer(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.keeping()
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), func() bool { return w.settled(3)() && w.held() }, neverDies(t))
	quiet := func() {
		for range 5 {
			w.at = w.at.Add(time.Second)
			w.round(p)
		}
		writes, calls := w.writes, w.calls
		fresh := w.start(&testkit.Fuse{}, false)
		for range 5 {
			w.at = w.at.Add(10 * time.Minute)
			w.round(p)
			w.round(fresh)
		}
		require.Equal(t, writes, w.writes, "P28: writes")
		require.Equal(t, calls, w.calls, "P28: driver calls")
	}
	quiet()
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	released := func() bool {
		class, err := w.classes.Get(ctx, smallKey)
		require.NoError(t, err)
		return w.empty() && !class.HasFinalizer(machine.Finalizer)
	}
	w.until(p, released, neverDies(t))
	secret, err := w.secrets.Get(ctx, bootKey)
	require.NoError(t, err)
	require.True(t, secret.HasFinalizer(machine.SecretFinalizer), "the class is still there, and refers to it")
	quiet()
	require.NoError(t, w.classes.Delete(ctx, smallKey, ""))
	w.round(p)
	secret, err = w.secrets.Get(ctx, bootKey)
	require.NoError(t, err)
	require.Empty(t, secret.Finalizers)
}

// TestWhoUsesAClass: sets that are kept as history, and objects that are being deleted and create nothing any
// more, do not count as users of a class. All others do.
func TestWhoUsesAClass(t *testing.T) {
	ref := machine.ClassRef{Name: "small"}
	owned := &object.Owner{Kind: deployment.OwnerKind, Name: "web", UID: "1"}
	set := func(replicas int32, owner *object.Owner) *machineset.Set {
		s := &machineset.Set{Meta: object.Meta{Key: fleetKey, Owner: owner, Finalizers: []string{"x"}}, Spec: machineset.Spec{Replicas: replicas}}
		s.Spec.Template.Spec.Class = ref
		return s
	}
	for _, c := range []struct {
		name string
		make func(*world) error
		uses bool
	}{
		{"nobody", func(*world) error { return nil }, false},
		{"an old set", func(w *world) error { _, err := w.sets.Create(ctx, set(0, owned)); return err }, false},
		{"a set of a deployment", func(w *world) error { _, err := w.sets.Create(ctx, set(1, owned)); return err }, true},
		{"a lone set of none", func(w *world) error { _, err := w.sets.Create(ctx, set(0, nil)); return err }, true},
		{"a set that is being deleted", func(w *world) error {
			_, err := w.sets.Create(ctx, set(1, nil))
			return errors.Join(err, w.sets.Delete(ctx, fleetKey, ""))
		}, false},
		{"a deployment", func(w *world) error { w.fleet(); return nil }, true},
		{"a machine that is being deleted", func(w *world) error {
			m := &machine.Machine{Meta: object.Meta{Key: fleetKey, Finalizers: []string{"x"}}, Spec: machine.Spec{Class: ref}}
			_, err := w.machines.Create(ctx, m)
			return errors.Join(err, w.machines.Delete(ctx, fleetKey, ""))
		}, true},
		{"a machine by another kind", func(w *world) error {
			_, err := w.machines.Create(ctx, &machine.Machine{Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: olderKind}})
			return err
		}, true},
		{"a machine of another namespace", func(w *world) error {
			_, err := w.machines.Create(ctx, &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "a"}}, Spec: machine.Spec{Class: ref}})
			return err
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, drivertest.MemoryOptions{})
			require.NoError(t, c.make(w))
			o := w.options()
			o.Classes.Keep = true
			_, err := reconciler(t, o, manager.KindClass).Reconcile(ctx, smallKey)
			require.NoError(t, err)
			class, err := w.classes.Get(ctx, smallKey)
			require.NoError(t, err)
			require.Equal(t, c.uses, class.HasFinalizer(machine.Finalizer))
		})
	}
}

// TestSecretsRotate: a secret that changes, or appears, ends the wait of a failed create at once. The driver gets
// the new data, and running machines are left alone.
func TestSecretsRotate(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{Token: "new"})
	put := func(token string) {
		secret, err := w.secrets.Get(ctx, bootKey)
		require.NoError(t, err)
		secret = secret.Clone()
		secret.Data["token"] = []byte(token)
		_, err = w.secrets.Update(ctx, secret)
		require.NoError(t, err)
	}
	put("old")
	w.fleet()
	p := w.start(&testkit.Fuse{}, false)
	for range 4 {
		w.round(p)
	}
	require.Zero(t, w.provider.Count())
	m, err := w.machines.Get(ctx, keysOf(w.machines)[0])
	require.NoError(t, err)
	require.Equal(t, machine.PhaseCrashLoopBackOff, m.Status.Phase)
	calls := count(w, codes.CreateMachine) + count(w, codes.GetMachineStatus)
	w.round(p)
	require.Equal(t, calls, count(w, codes.CreateMachine)+count(w, codes.GetMachineStatus), "the create is tried too early")

	before, err := w.secrets.Get(ctx, bootKey)
	require.NoError(t, err)
	put("new")
	after, err := w.secrets.Get(ctx, bootKey)
	require.NoError(t, err)
	require.Len(t, woken(t, p, manager.KindSecret, manager.KindMachine, before, after), 3)
	w.round(p) // no time has passed
	require.Equal(t, 3, w.provider.Count())

	w.until(p, w.settled(3), neverDies(t))
	calls, writes := count(w, codes.CreateMachine), w.writes
	put("newer")
	w.round(p)
	require.Equal(t, calls, count(w, codes.CreateMachine))
	require.Equal(t, writes, w.writes)
}

// woken returns the keys of one kind that a change of another kind wakes.
func woken(t tb, p *process, from, to manager.Kind, old, new any) (keys []object.Key) {
	for _, wake := range p.Wakes() {
		if wake.From == from && wake.To == to {
			keys = append(keys, wake.Keys(ctx, old, new)...)
		}
	}
	return keys
}

// TestClassWakes: a changed class wakes its machines, and some others.
func TestClassWakes(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.keeping()
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	class, err := w.classes.Get(ctx, smallKey)
	require.NoError(t, err)
	require.Len(t, woken(t, p, manager.KindClass, manager.KindMachine, class, class), 3)
	require.Equal(t, []object.Key{smallKey}, woken(t, p, manager.KindClass, manager.KindClass, nil, class))

	other := class.Clone()
	other.CredentialsRef = &object.Key{Namespace: "vault", Name: "keys"}
	require.Empty(t, woken(t, p, manager.KindClass, manager.KindSecret, class, class.Clone()))
	require.Equal(t, []object.Key{bootKey, bootKey, *other.CredentialsRef}, woken(t, p, manager.KindClass, manager.KindSecret, class, other))
	require.Equal(t, []object.Key{bootKey}, woken(t, p, manager.KindClass, manager.KindSecret, class, nil))
	require.Equal(t, []object.Key{bootKey}, woken(t, p, manager.KindSecret, manager.KindSecret, &machine.Secret{Meta: object.Meta{Key: bootKey}}, nil))

	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	scaled := d.Clone()
	scaled.Spec.Replicas++
	require.Empty(t, woken(t, p, manager.KindDeployment, manager.KindClass, d, scaled))
	scaled.Spec.Template.Spec.Class.Name = "large"
	require.Len(t, woken(t, p, manager.KindDeployment, manager.KindClass, d, scaled), 2)
	s, err := w.sets.Get(ctx, keysOf(w.sets)[0])
	require.NoError(t, err)
	history := s.Clone()
	history.Spec.Replicas = 0
	require.Equal(t, []object.Key{smallKey}, woken(t, p, manager.KindSet, manager.KindClass, s, history))
	m, err := w.machines.Get(ctx, keysOf(w.machines)[0])
	require.NoError(t, err)
	require.Empty(t, woken(t, p, manager.KindMachine, manager.KindClass, m, m.Clone()))
	require.Equal(t, []object.Key{smallKey}, woken(t, p, manager.KindMachine, manager.KindClass, m, nil))
}

// TestKeepersRun: Run keeps class and secret while there is a machine, and releases them then, although only
// watches wake it.
func TestKeepersRun(t *testing.T) {
	o := manager.InMemory(nil)
	provider := drivertest.NewMemory(drivertest.MemoryOptions{})
	o.Driver, o.Classes.Keep = provider, true
	o.Tuning.Resync = time.Second // a machine that goes before machines are watched wakes nothing
	class := provider.Class(smallKey, drivertest.MemorySpec{Cluster: "blue", Size: "s"})
	class.SecretRef = &object.Key{Name: bootKey.Name}
	_, err := o.Store.Classes.Create(ctx, class)
	require.NoError(t, err)
	_, err = o.Store.Secrets.Create(ctx, provider.Secret(bootKey))
	require.NoError(t, err)
	m, err := manager.New(o)
	require.NoError(t, err)
	within, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- m.Run(within) }()

	_, err = o.Store.Machines.Create(ctx, &machine.Machine{Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}})
	require.NoError(t, err)
	classes, secrets := watch(within, t, o.Store.Classes), watch(within, t, o.Store.Secrets)
	classes(func(c *machine.Class) bool { return c != nil && c.HasFinalizer(machine.Finalizer) })
	secrets(func(s *machine.Secret) bool { return s != nil && s.HasFinalizer(machine.SecretFinalizer) })
	watch(within, t, o.Store.Machines)(func(m *machine.Machine) bool { return m.Status.Phase == machine.PhaseAvailable })
	require.NoError(t, o.Store.Classes.Delete(ctx, smallKey, ""))
	require.NoError(t, o.Store.Secrets.Delete(ctx, bootKey, ""))
	require.NoError(t, o.Store.Machines.Delete(ctx, fleetKey, ""))
	classes(func(c *machine.Class) bool { return c == nil })
	secrets(func(s *machine.Secret) bool { return s == nil })
	require.Zero(t, provider.Count())
	stop()
	require.NoError(t, <-ended)
}

// watch follows the one object of a collection from now on. The function it returns waits until the object is as
// wanted; nil: gone.
func watch[T object.Object[T]](ctx context.Context, t *testing.T, c store.Collection[T]) func(func(T) bool) {
	next, stop := iter.Pull2(c.Watch(ctx))
	t.Cleanup(stop)
	change, err, ok := next() // from here on nothing is missed
	return func(wanted func(T) bool) {
		for ok && !wanted(change.New) {
			change, err, ok = next()
		}
		require.NoError(t, err)
		require.True(t, ok, "the watch ended before the object was as wanted")
	}
}

// TestClassIndexesAreProbed: a manager does not start if sets or deployments can't be found by their class.
func TestClassIndexesAreProbed(t *testing.T) {
	for _, kind := range []string{"Sets", "Deployments"} {
		o := manager.InMemory(nil)
		o.Driver, o.Classes.Keep = driver.Unimplemented{}, true
		sets, deployments := manager.SetIndexes(), manager.DeploymentIndexes()
		delete(sets, manager.IndexClass)
		delete(deployments, manager.IndexClass)
		if kind == "Sets" {
			o.Store.Sets = store.NewMemory(nil, sets)
		} else {
			o.Store.Deployments = store.NewMemory(nil, deployments)
		}
		m, err := manager.New(o)
		require.NoError(t, err)
		require.ErrorContains(t, m.Run(ctx), kind)
		require.ErrorContains(t, m.Run(ctx), fmt.Sprintf("%q", manager.IndexClass))
	}
}

// TestMissingClassIsACondition: a deployment says that its class does not exist, until the class is there.
func TestMissingClassIsACondition(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	key := object.Key{Namespace: namespace, Name: "small"}
	class, err := w.classes.Get(ctx, key)
	require.NoError(t, err)
	require.NoError(t, w.classes.Delete(ctx, key, ""))
	w.fleet()
	reported := func() *object.Condition { return w.condition(fleetKey.Name, deployment.ConditionClassMissing) }
	p := w.until(w.start(&testkit.Fuse{}, false), func() bool { return reported() != nil }, neverDies(t))
	require.Equal(t, object.True, reported().Status)
	require.Equal(t, "class small does not exist; no VM is created until it does", reported().Message)
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.Contains(t, deployment.Missing(d), "class small does not exist")

	_, err = w.classes.Create(ctx, class)
	require.NoError(t, err)
	w.until(p, func() bool { return w.settled(3)() && reported() == nil }, neverDies(t))
	machines, err := w.machines.List(ctx, store.Query{})
	require.NoError(t, err)
	require.Len(t, machines, 3)
}
