package manager_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
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

// TestSettledIsSilent: if nothing is to be done, no pass of any manager writes or calls the provider (P28).
// Invariants: P28
func TestSettledIsSilent(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.bounded = true
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	for range 5 { // a status may be written once a second
		w.at = w.at.Add(time.Second)
		w.round(p)
	}
	writes, calls := w.writes, w.calls
	for range 3 {
		fresh := w.start(&testkit.Fuse{}, false)
		for range 10 {
			w.at = w.at.Add(10 * time.Minute)
			w.round(p)
			w.round(fresh)
		}
	}
	require.Equal(t, writes, w.writes, "writes")
	require.Equal(t, calls, w.calls, "driver calls")
}

// TestWriteBudget: three machines cost the store what docs/reference/performance.md says: four writes each, and
// one more because this driver notes a VM's state.
func TestWriteBudget(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.bounded = true
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	require.Equal(t, map[reflect.Type]int{
		reflect.TypeFor[*machine.Machine](): 3 * (4 + 1),
		reflect.TypeFor[*machine.Node]():    3,
	}, w.spent(), "creation")

	clear(w.written)
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	w.until(p, w.empty, neverDies(t))
	require.Equal(t, map[reflect.Type]int{
		reflect.TypeFor[*machine.Machine](): 3 * 7,
		reflect.TypeFor[*machine.Node]():    3 * 3, // its condition, its finalizer, its deletion
	}, w.spent(), "deletion")
}

// spent counts the writes of machines and nodes, by type. It leaves out the few writes of their parents.
func (w *world) spent() map[reflect.Type]int {
	out := maps.Clone(w.written)
	delete(out, reflect.TypeFor[*machineset.Set]())
	delete(out, reflect.TypeFor[*deployment.Deployment]())
	return out
}

// TestBadObjects: an object that can't be acted upon is reported once, with the field that is wrong. It holds up
// no other object, and is acted upon once it is repaired.
func TestBadObjects(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	key := func(name string) object.Key { return object.Key{Namespace: namespace, Name: name} }
	_, err := w.machines.Create(ctx, &machine.Machine{Meta: object.Meta{Key: key("classless")}})
	require.NoError(t, err)
	odd, err := w.machines.Create(ctx, &machine.Machine{Meta: object.Meta{Key: key("odd")}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}})
	require.NoError(t, err)
	odd = odd.Clone()
	odd.Status.Phase = "Dreaming"
	_, err = w.machines.UpdateStatus(ctx, odd)
	require.NoError(t, err)
	_, err = w.sets.Create(ctx, &machineset.Set{Meta: object.Meta{Key: key("negative")}, Spec: machineset.Spec{Replicas: -1}})
	require.NoError(t, err)
	_, err = w.deployments.Create(ctx, &deployment.Deployment{Meta: object.Meta{Key: key("everything")}})
	require.NoError(t, err)

	p := w.start(&testkit.Fuse{}, false)
	for range 40 {
		w.round(p)
		w.join()
		w.at = w.at.Add(time.Second)
	}
	for _, reported := range []string{
		"machine fleet/classless: SpecInvalid: spec.class.name must not be empty",
		"machine fleet/odd: PhaseUnknown: unknown phase Dreaming",
		"set fleet/negative: ", "spec.replicas must not be negative",
		"deployment fleet/everything: ", "spec.selector",
	} {
		require.Contains(t, strings.Join(w.events, "\n"), reported)
	}
	require.Equal(t, 1, strings.Count(strings.Join(w.events, "\n"), "spec.class.name"), "reported once")
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.EqualValues(t, 3, d.Status.Available, "the other machines are not affected")

	repaired, err := w.machines.Get(ctx, key("classless"))
	require.NoError(t, err)
	repaired = repaired.Clone()
	repaired.Spec.Class.Name = "small"
	_, err = w.machines.Update(ctx, repaired)
	require.NoError(t, err)
	require.NoError(t, w.machines.Delete(ctx, key("odd"), ""))
	running := func() bool {
		m, err := w.machines.Get(ctx, key("classless"))
		require.NoError(t, err)
		_, gone := w.machines.Get(ctx, key("odd"))
		return m.Status.Phase == machine.PhaseRunning && errors.Is(gone, store.ErrNotFound)
	}
	w.until(p, running, neverDies(t))
}

// secretReader is a driver that reads the secrets it gets, and complains about them.
type secretReader struct {
	*drivertest.Memory
	saw map[string]string
}

func (d *secretReader) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	d.saw[req.Machine.Name] = string(req.Secret.Data[machine.UserData])
	req.Secret.Data[machine.UserData] = []byte("scribbled over")
	return d.Memory.CreateMachine(ctx, req)
}

// TestSecretsStayInside: only the driver's copy of the user data names the machine, and no secret is in a log, an
// event, a hook or an object.
func TestSecretsStayInside(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	const hush = "hush-7391"
	stored, err := w.secrets.Get(ctx, object.Key{Namespace: namespace, Name: "boot"})
	require.NoError(t, err)
	stored = stored.Clone()
	stored.Data[machine.UserData] = []byte("join <<MACHINE_NAME>> %3C%3CMACHINE_NAME%3E%3E " + hush)
	_, err = w.secrets.Update(ctx, stored)
	require.NoError(t, err)

	var log bytes.Buffer
	d := &secretReader{w.provider, map[string]string{}}
	w.provider.FailNext(codes.CreateMachine, codes.New(codes.Unavailable, "later"))
	o := manager.InMemory(w.now)
	o.Store.Machines, o.Store.Sets, o.Store.Deployments, o.Store.Classes, o.Store.Secrets = w.machines, w.sets, w.deployments, w.classes, w.secrets
	o.Cluster, o.Driver, o.Runtime.Now = nodes{w.nodes}, d, w.now
	o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.Hooks = manager.Hooks{
		Event:  func(_ manager.Kind, _ object.Key, _ manager.EventType, r, why string) { fmt.Fprintln(&log, r, why) },
		Effect: func(_ manager.Kind, _ object.Key, _ string, _ time.Duration, err error) { fmt.Fprintln(&log, err) },
		Pass:   func(_ manager.Kind, _ object.Key, _ int, r manager.Result, err error) { fmt.Fprintln(&log, r.Why, err) },
	}
	o.Runtime.Each = testkit.InOrder
	m, err := manager.New(o)
	require.NoError(t, err)
	w.bounded = true
	w.fleet()
	w.until(&process{Manager: m, fuse: &testkit.Fuse{}, look: func() bool { return true }}, w.driven(3), neverDies(t))

	require.Len(t, d.saw, 3)
	for name, data := range d.saw {
		require.Equal(t, "join "+name+" "+name+" "+hush, data)
	}
	unchanged, err := w.secrets.Get(ctx, stored.Key)
	require.NoError(t, err)
	require.Contains(t, string(unchanged.Data[machine.UserData]), "<<MACHINE_NAME>>")
	require.NotEmpty(t, log.String())
	require.NotContains(t, log.String()+w.dump(), hush)
}

// driven is settled, but ignores the writes of other tests.
func (w *world) driven(n int) func() bool {
	return func() bool {
		w.at = w.at.Add(time.Second)
		return w.settled(n)()
	}
}

// TestNoUserDataNoNode: in a cluster, a machine without user data could not join. The machine says so, and no VM
// is made.
func TestNoUserDataNoNode(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	require.NoError(t, w.secrets.Delete(ctx, object.Key{Namespace: namespace, Name: "boot"}, ""))
	_, err := w.machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	w.round(w.start(&testkit.Fuse{}, false))
	m, err := w.machines.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.Equal(t, machine.PhaseCrashLoopBackOff, m.Status.Phase)
	require.Equal(t, codes.InvalidArgument, m.Status.LastOperation.Code)
	require.Contains(t, m.Status.LastOperation.Message, "no userData")
	require.Zero(t, w.provider.Count())
	require.Contains(t, strings.Join(w.events, "\n"), "refers to secret fleet/boot, which does not exist")
}

func TestOptionsAreChecked(t *testing.T) {
	complete := func() manager.Options {
		o := manager.InMemory(nil)
		o.Driver = driver.Unimplemented{}
		return o
	}
	_, err := manager.New(complete())
	require.NoError(t, err)
	for says, spoil := range map[string]func(*manager.Options){
		"no Store.Machines":                   func(o *manager.Options) { o.Store.Machines = nil },
		"no Store.Classes":                    func(o *manager.Options) { o.Store.Classes = nil },
		"no Driver":                           func(o *manager.Options) { o.Driver = nil },
		"no Store.Sets for Store.Deployments": func(o *manager.Options) { o.Store.Sets = nil },
		"no Store.Secrets for a Cluster":      func(o *manager.Options) { o.Cluster, o.Store.Secrets = nodes{}, nil },
		"negative Tuning.Workers":             func(o *manager.Options) { o.Tuning.Workers = -1 },
		"negative Tuning.Resync":              func(o *manager.Options) { o.Tuning.Resync = -1 },
		"negative Tuning.CallTimeout":         func(o *manager.Options) { o.Tuning.CallTimeout = -1 },
		"negative Tuning.Settle":              func(o *manager.Options) { o.Tuning.Settle = -1 },
		"Policies.Machine: policy.healthTimeout": func(o *manager.Options) {
			o.Policies.Machine = machine.DefaultPolicy()
			o.Policies.Machine.HealthTimeout = 1
		},
		"Policies.Set: policy.burst": func(o *manager.Options) { o.Policies.Set = &machineset.Policy{Burst: -1} },
		"Policies.Deployment: policy.maxReplicas": func(o *manager.Options) {
			o.Policies.Deployment = &deployment.Policy{MaxReplicas: -2}
		},
		"Policies.Safety: policy.brake": func(o *manager.Options) { o.Policies.Safety = &safety.Policy{Brake: -1} },
	} {
		o := complete()
		spoil(&o)
		_, err := manager.New(o)
		require.ErrorIs(t, err, manager.ErrOptions, says)
		require.ErrorContains(t, err, says)
	}
}

// slow is a provider whose creates hang until their context ends, or until the test releases them.
type slow struct {
	*drivertest.Memory
	began chan string
	mu    sync.Mutex
	gates int // the number of creates that still hang
}

func (d *slow) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	d.mu.Lock()
	hang := d.gates > 0
	d.gates--
	d.mu.Unlock()
	if hang {
		d.began <- req.Machine.Name
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return d.Memory.CreateMachine(ctx, req)
}

// TestShutdown: when its context ends, Run cancels what is under way, waits for it, and writes no failure. A new
// manager finishes the work.
func TestShutdown(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	d := &slow{Memory: w.provider, began: make(chan string, 3), gates: 3}
	o := manager.InMemory(nil)
	o.Store.Machines, o.Store.Sets, o.Store.Deployments, o.Store.Classes, o.Store.Secrets, o.Driver = w.machines, w.sets, w.deployments, w.classes, w.secrets, d
	o.Policies.Machine = machine.DefaultPolicy()
	o.Policies.Machine.CreationTimeout = 1000 * time.Hour // the stores' clock stands still
	w.fleet()
	within, giveUp := context.WithTimeout(ctx, time.Minute)
	defer giveUp()

	first, err := manager.New(o)
	require.NoError(t, err)
	running, stop := context.WithCancel(within)
	ended := make(chan error, 1)
	go func() { ended <- first.Run(running) }()
	for range 3 {
		select {
		case <-d.began:
		case <-within.Done():
			t.Fatal("no create was issued")
		}
	}
	stop()
	require.NoError(t, <-ended)
	require.NoError(t, within.Err())
	for _, key := range keysOf(w.machines) {
		m, err := w.machines.Get(ctx, key)
		require.NoError(t, err)
		require.Equal(t, machine.StateProcessing, m.Status.LastOperation.State, "a shutdown is no failure")
	}

	second, err := manager.New(o)
	require.NoError(t, err)
	running, stop = context.WithCancel(within)
	go func() { ended <- second.Run(running) }()
	_, err = store.Await(within, w.deployments, fleetKey, deployment.Missing)
	require.NoError(t, err)
	stop()
	require.NoError(t, <-ended)
	require.NoError(t, within.Err(), "the second manager did not finish the work")
	require.Equal(t, 3, w.provider.Count())
	require.Len(t, keysOf(w.machines), 3)
}

// panicking is a driver with a bug.
type panicking struct {
	driver.Unimplemented
	end func()
}

func (d panicking) CreateMachine(context.Context, *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	d.end()
	return &driver.CreateMachineResponse{}, nil
}

// TestDriverPanics: if the driver panics or ends its goroutine, that is a failure of the machine, not of the
// manager. It is reported without the value of the panic.
func TestDriverPanics(t *testing.T) {
	for text, end := range map[string]func(){
		"CreateMachine: panic with a value of type string": func() { panic("a bug and hush-7391") },
		"CreateMachine: runtime.Goexit was called":         runtime.Goexit,
	} {
		w := newWorld(t, drivertest.MemoryOptions{})
		var log bytes.Buffer
		var reported []string
		o := manager.InMemory(w.now)
		o.Store.Machines, o.Store.Classes, o.Driver, o.Runtime.Now = w.machines, w.classes, panicking{end: end}, w.now
		o.Policies.Safety = safety.Off()
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Hooks.Panic = func(kind manager.Kind, key object.Key, in, what string) {
			reported = append(reported, string(kind)+" "+key.String()+" "+in+" "+what)
		}
		o.Hooks.Event = func(_ manager.Kind, _ object.Key, _ manager.EventType, reason, why string) {
			fmt.Fprintln(&log, reason, why)
		}
		m, err := manager.New(o)
		require.NoError(t, err)
		_, err = w.machines.Create(ctx, &machine.Machine{
			Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
		})
		require.NoError(t, err)
		result, err := m.Reconcilers()[0].Reconcile(ctx, fleetKey)
		require.NoError(t, err)
		require.False(t, result.At.IsZero())
		after, err := w.machines.Get(ctx, fleetKey)
		require.NoError(t, err)
		require.Equal(t, codes.Internal, after.Status.LastOperation.Code)
		require.Equal(t, []string{"machine fleet/web driver " + text}, reported)
		require.Contains(t, log.String(), "manager_test.panicking.CreateMachine", "the stack")
		require.NotContains(t, log.String(), "hush")
	}
}

// TestSafetyIsOnUnlessTurnedOff: a manager without a safety policy has the default one, unless its options say
// Off.
func TestSafetyIsOnUnlessTurnedOff(t *testing.T) {
	kinds := func(p *safety.Policy) (all []manager.Kind) {
		o := manager.InMemory(time.Now)
		o.Driver, o.Policies.Safety = drivertest.NewMemory(drivertest.MemoryOptions{}), p
		m, err := manager.New(o)
		require.NoError(t, err)
		for _, r := range m.Reconcilers() {
			all = append(all, r.Kind())
		}
		return all
	}
	care := []manager.Kind{manager.KindReachability, manager.KindOrphans, manager.KindOwnerless}
	require.Subset(t, kinds(nil), care)
	require.Equal(t, kinds(nil), kinds(safety.DefaultPolicy()))
	require.Equal(t, kinds(nil), kinds(&safety.Policy{}), "an empty policy does not turn safety off")
	for _, kind := range care {
		require.NotContains(t, kinds(safety.Off()), kind)
	}
	o := manager.InMemory(time.Now)
	o.Driver, o.Policies.Safety = drivertest.NewMemory(drivertest.MemoryOptions{}), &safety.Policy{Brake: -1}
	_, err := manager.New(o)
	require.ErrorIs(t, err, manager.ErrOptions)
}
