package manager_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

type tags = map[string]string

// tag gives a class these tags. It makes the class if there is none of that name.
func (w *world) tag(name, size string, tags tags) {
	key := object.Key{Namespace: namespace, Name: name}
	class := w.provider.Class(key, drivertest.MemorySpec{Cluster: "blue", Size: size, Tags: tags})
	class.SecretRef = &object.Key{Name: "boot"}
	found, err := w.classes.Get(ctx, key)
	if err != nil {
		_, err = w.classes.Create(ctx, class)
		require.NoError(w.t, err)
		return
	}
	class.Meta = found.CloneMeta()
	_, err = w.classes.Update(ctx, class)
	require.NoError(w.t, err)
}

// tagged returns whether n machines run, their VMs have these tags, and no status mentions an update any more.
func (w *world) tagged(n int, want tags) func() bool {
	return func() bool {
		for _, vm := range w.provider.VMs() {
			if !maps.Equal(vm.Tags, want) {
				return false
			}
		}
		for _, m := range w.allMachines() {
			if m.Status.VMSpec.Begun != "" {
				return false
			}
		}
		d, err := w.deployments.Get(ctx, fleetKey)
		return err == nil && w.settled(n)() && d.Status.Outdated == 0 &&
			object.FindCondition(d.Status.Conditions, deployment.ConditionVMsOutdated) == nil
	}
}

func (w *world) allMachines() []*machine.Machine {
	all, err := w.machines.List(ctx, store.Query{})
	require.NoError(w.t, err)
	return all
}

// noMoreThan fails the test if more VMs than the limit are being updated.
func (w *world) noMoreThan(limit int) {
	n := 0
	for _, m := range w.allMachines() {
		if m.Status.VMSpec.Begun != "" && !m.Deleted() {
			n++
		}
	}
	require.LessOrEqual(w.t, n, limit, "VMs are updated at the same time")
}

// killedAnywhere makes a change with a process that dies at each call to a port in turn, before the call or after
// it, with caches that lag and without.
func killedAnywhere(t *testing.T, prepare, change func(*world), goal func(*world) func() bool, then func(*world)) {
	for n := 0; n < 1600; n++ {
		w := newWorld(t, drivertest.MemoryOptions{})
		w.bounded = true
		w.tag("small", "s", tags{"team": "a", "old": "yes"})
		w.fleet()
		if prepare != nil {
			prepare(w)
		}
		w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
		change(w)
		died := n == 0
		fresh := w.start(&testkit.Fuse{BlowAt: n, BlowAfter: n%2 == 0}, n%3 == 0)
		w.until(fresh, goal(w), func() *process {
			died = true
			return w.start(&testkit.Fuse{}, false)
		})
		then(w)
		if !died {
			require.Greater(t, n, 30)
			return
		}
	}
	t.Fatal("it takes no end")
}

// TestTagsOfAClassReachItsVMs: a class gets other tags. In the end its VMs have them, updated one at a time and
// none replaced, wherever the manager dies (P13, P26).
// Invariants: P26
func TestTagsOfAClassReachItsVMs(t *testing.T) {
	want := tags{"team": "b"}
	killedAnywhere(t, nil, func(w *world) { w.tag("small", "s", want) }, func(w *world) func() bool {
		return func() bool { w.noMoreThan(1); return w.tagged(3, want)() }
	}, func(w *world) { require.Len(t, w.made, 3) })
}

// TestAClassWithOtherTagsReplacesNothing: a template names another class that differs only in its tags. In the end
// the same three VMs have them, wherever the manager dies (P4).
// Invariants: P4
func TestAClassWithOtherTagsReplacesNothing(t *testing.T) {
	want := tags{"team": "b"}
	killedAnywhere(t, func(w *world) { w.tag("small-b", "s", want) },
		func(w *world) {
			w.change(func(d *deployment.Deployment) { d.Spec.Template.Spec.Class.Name = "small-b" })
		},
		func(w *world) func() bool { return w.tagged(3, want) },
		func(w *world) {
			require.Len(t, w.made, 3)
			require.Len(t, keysOf(w.sets), 1)
			for _, m := range w.allMachines() {
				require.Equal(t, "small-b", m.Spec.Class.Name)
			}
			d, err := w.deployments.Get(ctx, fleetKey)
			require.NoError(t, err)
			require.EqualValues(t, 2, d.Revision)
		})
}

// TestAClassOfAnotherSizeIsRolledOut: VMs that can't be updated are replaced. So are VMs of a class that differs
// in its secrets, or in what its nodes offer.
// Invariants: P4
func TestAClassOfAnotherSizeIsRolledOut(t *testing.T) {
	for name, differ := range map[string]func(*machine.Class){
		"size":     func(c *machine.Class) { c.ProviderSpec = drivertest.MemorySpec{Cluster: "blue", Size: "l"}.Encode() },
		"secret":   func(c *machine.Class) { c.SecretRef = &object.Key{Name: "boot-2"} },
		"no keys":  func(c *machine.Class) { c.CredentialsRef = &object.Key{Name: "boot"} },
		"zone":     func(c *machine.Class) { c.NodeTemplate.Zone = "b" },
		"capacity": func(c *machine.Class) { c.NodeTemplate.Capacity = map[string]string{"cpu": "2"} },
		"none":     func(c *machine.Class) { c.NodeTemplate = nil },
	} {
		w := newWorld(t, drivertest.MemoryOptions{})
		w.bounded = true
		_, err := w.secrets.Create(ctx, w.provider.Secret(object.Key{Namespace: namespace, Name: "boot-2"}))
		require.NoError(t, err)
		w.shape("small", nil)
		w.tag("other", "s", tags{"team": "b"})
		w.shape("other", differ)
		w.fleet()
		p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
		w.change(func(d *deployment.Deployment) { d.Spec.Template.Spec.Class.Name = "other" })
		w.until(p, func() bool { return w.settled(3)() && len(w.made) == 6 }, neverDies(t))
		require.Zero(t, count(w, codes.UpdateMachine), name)
	}
}

// shape makes a class say what its nodes offer, and then calls differ.
func (w *world) shape(name string, differ func(*machine.Class)) {
	class, err := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: name})
	require.NoError(w.t, err)
	class = class.Clone()
	class.NodeTemplate = &machine.NodeShape{Zone: "a"}
	if differ != nil {
		class.NodeTemplate.VirtualCapacity = map[string]string{"example.org/slots": "1"}
		differ(class)
	}
	_, err = w.classes.Update(ctx, class)
	require.NoError(w.t, err)
}

// TestVMsThatCannotBeChangedAreReplaced: VMs that can't be changed are replaced within the bounds of a rollout.
func TestVMsThatCannotBeChangedAreReplaced(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.bounded = true
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	for range 3 {
		w.provider.FailNext(codes.UpdateMachine, codes.New(codes.Unimplemented, "not after all"))
	}
	want := tags{"team": "b"}
	w.tag("small", "s", want)
	w.until(p, w.tagged(3, want), neverDies(t))
	require.Len(t, w.made, 6)
	require.Equal(t, 3, count(w, codes.UpdateMachine))
}

// TestAChangeThatFailsReachesFewVMs: while a change fails, no more VMs than the limit are tried, for any time.
// Once it works, all VMs are changed.
func TestAChangeThatFailsReachesFewVMs(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	w.policy = deployment.DefaultPolicy()
	w.policy.UpdateLimit = rollout.IntOrPercent{Value: 40, Percent: true}
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	for range 100 {
		w.provider.FailNext(codes.UpdateMachine, codes.New(codes.InvalidArgument, "no such team"))
	}
	w.tag("small", "s", tags{"team": "no"})
	for range 20 {
		w.round(p)
		w.noMoreThan(2)
		w.at = w.at.Add(30 * time.Second)
	}
	failing := 0
	for _, m := range w.allMachines() {
		if m.Status.LastOperation.State == machine.StateFailed {
			failing++
		}
	}
	require.Equal(t, 2, failing)
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.EqualValues(t, 3, d.Status.Outdated)
	require.Equal(t, deployment.OutdatedFailing, object.FindCondition(d.Status.Conditions, deployment.ConditionVMsOutdated).Reason)
	for w.failsStill() { // until nothing is in store any more
		w.at = w.at.Add(10 * time.Minute)
	}
	want := tags{"team": "b"}
	w.tag("small", "s", want)
	w.until(p, w.tagged(3, want), neverDies(t))
	require.Len(t, w.made, 3)
}

// failsStill uses up one of the driver's prepared failures; false: there was none.
func (w *world) failsStill() bool {
	class, _ := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: "small"})
	_, err := w.provider.UpdateMachine(ctx, &driver.UpdateMachineRequest{Machine: w.allMachines()[0], Class: class, LastApplied: class.ProviderSpec, Wanted: class.ProviderSpec})
	return err != nil
}

// TestPausedVMsAreLeftAlone: VMs of a paused deployment are changed only when it is resumed.
func TestPausedVMsAreLeftAlone(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	w.change(func(d *deployment.Deployment) { d.Spec.Paused = true })
	want := tags{"team": "b"}
	w.tag("small", "s", want)
	for range 10 {
		w.round(p)
		w.at = w.at.Add(time.Minute)
	}
	require.Zero(t, count(w, codes.UpdateMachine))
	w.change(func(d *deployment.Deployment) { d.Spec.Paused = false })
	w.until(p, w.tagged(3, want), neverDies(t))
}

// TestTurnsOutliveTheProcess: a new process counts the updates that the one before has begun.
func TestTurnsOutliveTheProcess(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	for range 100 {
		w.provider.FailNext(codes.UpdateMachine, codes.New(codes.InvalidArgument, "no such team"))
	}
	w.tag("small", "s", tags{"team": "no"})
	for range 10 {
		w.round(p)
		w.noMoreThan(1)
		w.at = w.at.Add(time.Minute)
		p = w.start(&testkit.Fuse{}, false)
	}
	require.Positive(t, count(w, codes.UpdateMachine))
}

// featureless is a driver that declares no features.
type featureless struct{ driver.Driver }

// TestSilentDriversCostNothing: if VMs can't be updated, their tags cause no record, write or call (P28), and a
// template that names another class is rolled out.
// Invariants: P28
func TestSilentDriversCostNothing(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) { o.Driver = featureless{o.Driver} }
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	before := w.writes
	w.tag("small", "s", tags{"team": "b"})
	for range 3 {
		w.round(p)
	}
	require.Equal(t, before, w.writes)
	for _, m := range w.allMachines() {
		require.Equal(t, machine.VMSpec{}, m.Status.VMSpec)
	}
	w.tag("small-b", "s", tags{"team": "c"})
	w.change(func(d *deployment.Deployment) { d.Spec.Template.Spec.Class.Name = "small-b" })
	w.until(p, func() bool { return w.settled(3)() && len(w.made) == 6 }, neverDies(t))
	require.Zero(t, count(w, codes.UpdateMachine))
}

// TestUpdatedMachinesWakeTheirDeployment: a deployment is woken by changes that its status counts, and by a change
// of its class.
func TestUpdatedMachinesWakeTheirDeployment(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	before := w.allMachines()[0]
	after := before.Clone()
	after.Status.VMSpec.Updatable = `{"tags":{"team":"b"}}`
	class, err := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: "small"})
	require.NoError(t, err)
	machines, classes := 0, 0
	for _, wake := range p.Wakes() {
		if wake.To != manager.KindDeployment {
			continue
		}
		if wake.From == manager.KindMachine {
			machines += len(wake.Keys(context.Background(), before, after))
		}
		if wake.From == manager.KindClass {
			classes += len(wake.Keys(context.Background(), class, class))
		}
	}
	require.Equal(t, 1, machines)
	require.Equal(t, 1, classes)

	o := w.options()
	o.Driver = driver.Unimplemented{}
	fixed, err := manager.New(o)
	require.NoError(t, err)
	for _, wake := range fixed.Wakes() {
		require.False(t, wake.From == manager.KindClass && wake.To == manager.KindDeployment, "no VM can be updated to a class")
	}
}

// TestTurnsPassOn: as soon as one VM is changed, the next may be.
func TestTurnsPassOn(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	began, want := w.at, tags{"team": "b"}
	w.tag("small", "s", want)
	w.until(p, w.tagged(3, want), neverDies(t))
	require.Less(t, w.at.Sub(began), 35*time.Second)
}

// TestAVMThatIsGoneHoldsNoTurn: the other VMs are changed, and each is reported.
func TestAVMThatIsGoneHoldsNoTurn(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	w.provider.FailNext(codes.UpdateMachine, codes.New(codes.NotFound, "no such VM"))
	w.tag("small", "s", tags{"team": "b"})
	for range 10 {
		w.round(p)
		w.at = w.at.Add(15 * time.Second)
	}
	changed := 0
	for _, vm := range w.provider.VMs() {
		changed += len(vm.Tags)
	}
	require.Equal(t, 2, changed)
	require.Equal(t, 2, w.reported(machine.ReasonVMUpdated))
	require.Equal(t, 3, count(w, codes.UpdateMachine))
}

// behindOn is a collection of classes whose cache does not show one of them yet.
type behindOn struct {
	store.Collection[*machine.Class]
	to string
}

func (b behindOn) Get(ctx context.Context, key object.Key) (*machine.Class, error) {
	if key.Name == b.to {
		return nil, store.ErrNotFound
	}
	return b.Collection.Get(ctx, key)
}

// TestAClassIsReadLiveBeforeARollout: no machine is replaced because a cache does not show a new class yet.
func TestAClassIsReadLiveBeforeARollout(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	p.sync()
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) { o.Store.Classes = behindOn{o.Store.Classes, "small-b"} }
	p = w.start(&testkit.Fuse{}, false)
	w.tag("small-b", "s", tags{"team": "b"})
	w.change(func(d *deployment.Deployment) { d.Spec.Template.Spec.Class.Name = "small-b" })
	w.round(p)
	require.Len(t, keysOf(w.sets), 1)
	set, err := w.sets.Get(ctx, keysOf(w.sets)[0])
	require.NoError(t, err)
	require.Equal(t, "small-b", set.Spec.Template.Spec.Class.Name)
}
