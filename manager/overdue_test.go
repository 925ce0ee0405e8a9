package manager_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// hangingProvider is a provider some of whose calls ignore their context, and return only when released. The fleet
// has no cluster.
type hangingProvider struct {
	t        *testing.T
	provider *drivertest.Memory
	options  manager.Options
	// hangs reports whether a call hangs before it takes effect, or after it.
	hangs func(driver.CallInfo) (before, after bool)

	mu         sync.Mutex
	release    chan struct{}
	under      map[object.Key]int // calls under way, by machine
	most       int                // the most calls under way at a time
	overlapped bool               // two calls about one machine were under way
	events     map[string][]object.Key
	overdue    []int
	log        bytes.Buffer
	machines   map[string]int // creates that took effect, by name
	longest    time.Duration  // the longest time that a caller waited for a call
}

func newHangingProvider(t *testing.T, o drivertest.MemoryOptions) *hangingProvider {
	d := &hangingProvider{
		t: t, provider: drivertest.NewMemory(o), options: manager.InMemory(time.Now), release: make(chan struct{}),
		under: map[object.Key]int{}, events: map[string][]object.Key{}, machines: map[string]int{},
		hangs: func(driver.CallInfo) (bool, bool) { return false, false },
	}
	t.Cleanup(d.releaseAll)
	d.options.Driver = driver.Intercept(d.provider, d.call)
	d.options.Policies.Safety = safety.DefaultPolicy()
	d.options.Tuning.CallTimeout, d.options.Tuning.CallGrace = time.Second, 2*time.Second
	d.options.Log = slog.New(slog.NewTextHandler(d, nil))
	d.options.Hooks.Event = func(_ manager.Kind, key object.Key, _ manager.EventType, reason, _ string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.events[reason] = append(d.events[reason], key)
	}
	d.options.Hooks.Call = func(_ string, _ codes.Code, took time.Duration) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.longest = max(d.longest, took)
	}
	d.options.Hooks.Overdue = func(_ string, n int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.overdue = append(d.overdue, n)
	}
	return d
}

// Write implements io.Writer.
func (d *hangingProvider) Write(line []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Write(line)
}

// call is a driver.Interceptor.
func (d *hangingProvider) call(ctx context.Context, call driver.CallInfo, next func(context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	d.mu.Lock()
	before, after := d.hangs(call)
	release := d.release
	if call.Object != (object.Key{}) {
		d.under[call.Object]++
		d.overlapped = d.overlapped || d.under[call.Object] > 1
	}
	all := 0
	for _, n := range d.under {
		all += n
	}
	d.most = max(d.most, all)
	d.mu.Unlock()
	if before {
		<-release
	}
	err := next(ctx)
	if after {
		<-release
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if call.Method == codes.CreateMachine && err == nil {
		d.machines[call.Object.Name]++
	}
	if call.Object != (object.Key{}) {
		d.under[call.Object]--
	}
	return err
}

// releaseAll releases the calls that hang, and lets no later call hang.
func (d *hangingProvider) releaseAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hangs = func(driver.CallInfo) (bool, bool) { return false, false }
	close(d.release)
	d.release = make(chan struct{})
}

// reported returns the objects of the events with a reason.
func (d *hangingProvider) reported(reason string) []object.Key {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]object.Key(nil), d.events[reason]...)
}

// class makes a class, and a deployment of the same name.
func (d *hangingProvider) class(name string, replicas int32) {
	key := object.Key{Namespace: namespace, Name: name}
	_, err := d.options.Store.Classes.Create(ctx, d.provider.Class(key, drivertest.MemorySpec{Cluster: name, Size: "s"}))
	require.NoError(d.t, err)
	labels := map[string]string{"app": name}
	_, err = d.options.Store.Deployments.Create(ctx, &deployment.Deployment{Meta: object.Meta{Key: key}, Spec: deployment.Spec{
		Replicas: replicas, Selector: object.Selector{Labels: labels},
		Template: machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: name}}},
	}})
	require.NoError(d.t, err)
}

func (d *hangingProvider) available(name string) int32 {
	got, err := d.options.Store.Deployments.Get(ctx, object.Key{Namespace: namespace, Name: name})
	require.NoError(d.t, err)
	return got.Status.Available
}

// startManager starts a manager. The function that it returns ends the manager, and returns the error of Run.
func (d *hangingProvider) startManager() (*manager.Manager, func() error) {
	m, err := manager.New(d.options)
	require.NoError(d.t, err)
	within, cancel := context.WithCancel(d.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(within) }()
	return m, func() error {
		cancel()
		return <-ended
	}
}

// waitFor waits, by the bubble's clock, until a goal is reached.
func (d *hangingProvider) waitFor(limit time.Duration, goal func() bool, what string) {
	for end := time.Now().Add(limit); !goal(); {
		require.False(d.t, time.Now().After(end), "not in time: "+what)
		<-time.After(time.Second)
	}
}

// creates returns a function that makes the creates of a class hang.
func creates(class string) func(driver.CallInfo) (bool, bool) {
	return func(c driver.CallInfo) (bool, bool) {
		return c.Method == codes.CreateMachine && c.Class.Name == class, false
	}
}

// TestOthersProceedWhileCallsHang: as many creates hang as there are workers. Each is reported once, with its
// machine. Other deployments get their machines, even those of the same class.
// Invariants: P52
func TestOthersProceedWhileCallsHang(t *testing.T) {
	for _, class := range []string{"web", "stuck"} {
		synctest.Test(t, func(t *testing.T) {
			d := newHangingProvider(t, drivertest.MemoryOptions{})
			stuck := map[object.Key]bool{}
			d.hangs = func(c driver.CallInfo) (bool, bool) {
				hangs := c.Method == codes.CreateMachine && c.Class.Name == "stuck" && (len(stuck) < 64 || stuck[c.Object])
				if hangs {
					stuck[c.Object] = true
				}
				return hangs, false
			}
			d.class("stuck", 64)
			m, end := d.startManager()
			d.waitFor(time.Minute, func() bool { return len(d.reported("CallOverdue")) == 64 }, "64 calls are overdue")
			if class == "stuck" {
				grown, err := d.options.Store.Deployments.Get(ctx, object.Key{Namespace: namespace, Name: "stuck"})
				require.NoError(t, err)
				grown = grown.Clone()
				grown.Spec.Replicas += 3
				_, err = d.options.Store.Deployments.Update(ctx, grown)
				require.NoError(t, err)
			} else {
				d.class(class, 3)
			}
			d.waitFor(2*time.Minute, func() bool { return d.available(class) == 3 }, "the other machines are available")
			require.Len(t, d.reported("CallOverdue"), 64)
			require.Contains(t, d.log.String(), "CallOverdue")
			require.Equal(t, 64, d.overdue[63])
			require.NoError(t, m.Health())

			d.releaseAll()
			d.waitFor(10*time.Minute, func() bool { return d.available("stuck") == 64+map[string]int32{"stuck": 3}[class] }, "all machines are available")
			require.Len(t, d.reported("OverdueCallReturned"), 64)
			require.Zero(t, d.overdue[len(d.overdue)-1])
			require.False(t, d.overlapped, "two calls about one machine")
			require.NoError(t, end())
		})
	}
}

// TestRunNamesWhatItLeft: a call of the driver, a hook or a store does not return. Run returns once its context
// and the grace after it have ended, and says what it did not wait for. It waits for calls that end in time, which
// is no error.
// Invariants: P52
func TestRunNamesWhatItLeft(t *testing.T) {
	t.Run("driver", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newHangingProvider(t, drivertest.MemoryOptions{})
			d.options.Tuning.CallTimeout = time.Hour
			d.hangs = creates("stuck")
			d.class("stuck", 1)
			_, end := d.startManager()
			<-time.After(time.Minute)
			began := time.Now()
			err := end()
			require.LessOrEqual(t, time.Since(began), 3*time.Second)
			var left *manager.LeftError
			require.ErrorAs(t, err, &left)
			require.Len(t, left.Calls, 1)
			require.Equal(t, codes.CreateMachine, left.Calls[0].Method)
			require.Equal(t, keysOf(d.options.Store.Machines.(*store.Memory[*machine.Machine]))[0], left.Calls[0].Object)
			require.Empty(t, left.Places)
			require.Contains(t, err.Error(), "CreateMachine for machine fleet/stuck-")

			m, end := d.startManager() // another process
			d.releaseAll()
			d.waitFor(10*time.Minute, func() bool { return d.available("stuck") == 1 }, "the machine is available")
			require.NoError(t, m.Health())
			require.NoError(t, end())
		})
	})
	t.Run("hook", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newHangingProvider(t, drivertest.MemoryOptions{})
			release := make(chan struct{})
			d.options.Hooks.Pass = func(kind manager.Kind, _ object.Key, _ int, _ manager.Result, _ error) {
				if kind == manager.KindDeployment {
					<-release
				}
			}
			d.class("web", 1)
			_, end := d.startManager()
			<-time.After(time.Minute)
			var left *manager.LeftError
			require.ErrorAs(t, end(), &left)
			require.Equal(t, &manager.LeftError{Calls: []driver.OverdueCall{}, Places: []manager.Place{
				{In: "pass", Kind: string(manager.KindDeployment), Key: object.Key{Namespace: namespace, Name: "web"}},
			}}, left)
			close(release)
		})
	})
	t.Run("queue hook", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newHangingProvider(t, drivertest.MemoryOptions{})
			release := make(chan struct{})
			d.options.Hooks.Queue = func(kind manager.Kind, _ int) {
				if kind == manager.KindDeployment {
					<-release
				}
			}
			d.class("web", 1)
			_, end := d.startManager()
			<-time.After(time.Minute)
			var left *manager.LeftError
			require.ErrorAs(t, end(), &left)
			require.Equal(t, []manager.Place{{In: "hook"}}, left.Places)
			close(release)
		})
	})
	t.Run("watch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newHangingProvider(t, drivertest.MemoryOptions{})
			release := make(chan struct{})
			d.options.Store.Sets = unended{d.options.Store.Sets, release}
			_, end := d.startManager()
			<-time.After(time.Minute)
			var left *manager.LeftError
			require.ErrorAs(t, end(), &left)
			require.Equal(t, []manager.Place{{In: "watch", Kind: string(manager.KindSet)}}, left.Places)
			close(release)
		})
	})
	t.Run("indexes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newHangingProvider(t, drivertest.MemoryOptions{})
			release := make(chan struct{})
			d.options.Store.Sets = hungLists{d.options.Store.Sets, release}
			_, end := d.startManager()
			<-time.After(time.Minute)
			var left *manager.LeftError
			require.ErrorAs(t, end(), &left)
			require.Equal(t, []manager.Place{{In: "look at indexes"}}, left.Places)
			close(release)
		})
	})
	t.Run("first look", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newHangingProvider(t, drivertest.MemoryOptions{})
			release := make(chan struct{})
			d.options.Store.Machines = hungReads{d.options.Store.Machines, release}
			_, end := d.startManager()
			<-time.After(time.Minute)
			var left *manager.LeftError
			require.ErrorAs(t, end(), &left)
			require.Equal(t, []manager.Place{{In: "pass", Kind: string(manager.KindReachability), Key: manager.Fleet}}, left.Places)
			close(release)
		})
	})
	t.Run("nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newHangingProvider(t, drivertest.MemoryOptions{})
			d.options.Driver = driver.Intercept(d.provider, func(ctx context.Context, c driver.CallInfo, next func(context.Context) error) error {
				if c.Method != codes.CreateMachine {
					return next(ctx)
				}
				<-ctx.Done()
				<-time.After(time.Second)
				return ctx.Err()
			})
			d.class("web", 1)
			_, end := d.startManager()
			<-time.After(500 * time.Millisecond)
			require.NoError(t, end())
		})
	})
}

// hungLists is a collection whose lists hang.
type hungLists struct {
	store.Collection[*machineset.Set]
	release chan struct{}
}

func (u hungLists) List(context.Context, store.Query) ([]*machineset.Set, error) {
	<-u.release
	return nil, nil
}

// hungReads is a collection whose live reads hang.
type hungReads struct {
	store.Collection[*machine.Machine]
	release chan struct{}
}

func (u hungReads) Live() store.Reader[*machine.Machine] { return u }

func (u hungReads) Get(context.Context, object.Key) (*machine.Machine, error) {
	<-u.release
	return nil, store.ErrNotFound
}

// unended is a collection whose watch does not end with its context.
type unended struct {
	store.Collection[*machineset.Set]
	release chan struct{}
}

func (u unended) Watch(context.Context) iter.Seq2[store.Change[*machineset.Set], error] {
	return func(func(store.Change[*machineset.Set], error) bool) { <-u.release }
}

// TestHungListIsReported: ListMachines of one class hangs. That is reported, and orphans of other classes are found
// and deleted. The orphans of the class are deleted once the call has returned.
// Invariants: P52
func TestHungListIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newHangingProvider(t, drivertest.MemoryOptions{})
		d.class("stuck", 1)
		d.class("web", 1)
		d.hangs = func(c driver.CallInfo) (bool, bool) {
			return c.Method == codes.ListMachines && c.Class.Name == "stuck", false
		}
		d.provider.Add(drivertest.MemoryVM{Name: "lost", Cluster: "web", Size: "s", Initialized: true})
		d.provider.Add(drivertest.MemoryVM{Name: "lost-too", Cluster: "stuck", Size: "s", Initialized: true})
		_, end := d.startManager()
		d.waitFor(5*time.Minute, func() bool { return d.provider.Count() == 3 && d.available("web") == 1 }, "orphans of another class are deleted")
		require.Equal(t, []object.Key{{Namespace: namespace, Name: "stuck"}}, d.reported("CallOverdue"))
		d.releaseAll()
		d.waitFor(30*time.Minute, func() bool { return d.provider.Count() == 2 }, "orphans of the class are deleted")
		require.NoError(t, end())
	})
}

// TestOverdueCallsOfAManagerAreBounded: more calls hang than allowed. Except for those that were under way, no
// more calls are made for the class. That is reported, the process counts as stuck, and machines of another class
// are made.
// Invariants: P52
func TestOverdueCallsOfAManagerAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newHangingProvider(t, drivertest.MemoryOptions{})
		d.options.Tuning.OverdueCalls, d.options.Tuning.Workers = 40, 5
		d.hangs = creates("stuck")
		d.class("stuck", 60)
		m, end := d.startManager()
		<-time.After(5 * time.Minute)
		require.LessOrEqual(t, d.most, 10+5)
		require.GreaterOrEqual(t, d.most, 10)
		require.Equal(t, []object.Key{{Namespace: namespace, Name: "stuck"}}, d.reported("TooManyOverdueCalls"))
		require.ErrorIs(t, m.Health(), manager.ErrStuck)
		d.class("web", 3)
		d.waitFor(5*time.Minute, func() bool { return d.available("web") == 3 }, "machines of another class are available")
		d.releaseAll()
		d.waitFor(20*time.Minute, func() bool { return d.available("stuck") == 60 }, "all machines are available")
		require.NoError(t, m.Health())
		require.False(t, d.overlapped)
		require.NoError(t, end())
	})
}

// TestStuckProcess: one call that never returns makes the process unhealthy after an hour, and so does a pass that
// a hook holds up.
func TestStuckProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newHangingProvider(t, drivertest.MemoryOptions{})
		d.hangs = creates("stuck")
		d.class("stuck", 1)
		m, end := d.startManager()
		<-time.After(time.Hour)
		require.NoError(t, m.Health())
		<-time.After(time.Minute)
		require.ErrorIs(t, m.Health(), manager.ErrStuck)
		require.ErrorContains(t, m.Health(), "CreateMachine for machine fleet/stuck-")
		d.releaseAll()
		synctest.Wait()
		require.NoError(t, m.Health())
		require.NoError(t, end())
	})
	synctest.Test(t, func(t *testing.T) {
		d := newHangingProvider(t, drivertest.MemoryOptions{})
		release := make(chan struct{})
		d.options.Hooks.Pass = func(kind manager.Kind, _ object.Key, _ int, _ manager.Result, _ error) {
			if kind == manager.KindDeployment {
				<-release
			}
		}
		d.class("web", 1)
		m, end := d.startManager()
		<-time.After(time.Hour)
		require.NoError(t, m.Health())
		<-time.After(time.Minute)
		require.ErrorIs(t, m.Health(), manager.ErrStuck)
		require.ErrorContains(t, m.Health(), "a pass of deployment fleet/web")
		close(release)
		require.NoError(t, end())
	})
}

// createsOnly is a driver that makes a VM at every create, and can't look for VMs: the answer of a create can't be had
// again.
type createsOnly struct {
	driver.Driver
	d *hangingProvider
}

// Unwrap returns the driver that is wrapped.
func (m createsOnly) Unwrap() driver.Driver { return m.Driver }

// CreateMachine implements driver.Driver.
func (m createsOnly) CreateMachine(_ context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	id := m.d.provider.Add(drivertest.MemoryVM{Name: req.Machine.Name, Cluster: req.Class.Name, Size: "s", Initialized: true, UID: req.Machine.UID})
	return &driver.CreateMachineResponse{ProviderID: id, NodeName: req.Machine.Name}, nil
}

// GetMachineStatus implements driver.Driver.
func (createsOnly) GetMachineStatus(context.Context, *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	return nil, codes.New(codes.Unimplemented, "VMs can't be looked for")
}

// TestLateCreateIsRecorded: a create returns long after its caller has given it up, with the ID of a VM that no
// other call can find. The machine records that VM, and no other is made.
// Invariants: P52
func TestLateCreateIsRecorded(t *testing.T) {
	for _, after := range []bool{true, false} { // the VM exists early, or only in the end
		synctest.Test(t, func(t *testing.T) {
			d := newHangingProvider(t, drivertest.MemoryOptions{})
			d.options.Driver = driver.Intercept(createsOnly{d.provider, d}, d.call)
			d.hangs = func(c driver.CallInfo) (bool, bool) {
				return c.Method == codes.CreateMachine && !after, c.Method == codes.CreateMachine && after
			}
			d.class("web", 3)
			_, end := d.startManager()
			<-time.After(10 * time.Minute)
			require.Len(t, d.reported("CallOverdue"), 3)
			d.releaseAll()
			d.waitFor(5*time.Minute, func() bool { return d.available("web") == 3 }, "the VMs are recorded")
			<-time.After(time.Hour)
			d.requireOneVMEach(3)
			require.Len(t, d.machines, 3)
			for name, creates := range d.machines {
				require.Equal(t, 1, creates, name)
			}
			require.False(t, d.overlapped)
			require.NoError(t, end())
		})
	}
}

// TestNoVMIsCollectedBesideItsCreate: a create has made a VM and does not return. The deletion of its machine
// waits for it, and then a person removes the machine's finalizer. The VM is not deleted as an orphan before the
// create has returned.
// Invariants: P52
func TestNoVMIsCollectedBesideItsCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newHangingProvider(t, drivertest.MemoryOptions{})
		d.hangs = func(c driver.CallInfo) (bool, bool) { return false, c.Method == codes.CreateMachine }
		d.class("web", 1)
		_, end := d.startManager()
		d.waitFor(time.Minute, func() bool { return len(d.reported("CallOverdue")) == 1 }, "the create hangs")
		d.resize(0)
		<-time.After(time.Hour)
		all, err := d.options.Store.Machines.List(ctx, store.Query{})
		require.NoError(t, err)
		require.Len(t, all, 1, "the deletion must wait for the create")
		require.True(t, all[0].Deleted())
		require.Equal(t, 1, d.provider.Count())

		gone := all[0].Clone()
		gone.Finalizers = nil
		_, err = d.options.Store.Machines.Update(ctx, gone)
		require.NoError(t, err)
		<-time.After(time.Hour)
		require.Equal(t, 1, d.provider.Count(), "the VM was deleted while its create runs")
		require.False(t, d.overlapped)
		d.releaseAll()
		d.waitFor(20*time.Minute, func() bool { return d.provider.Count() == 0 }, "the orphan VM is deleted")
		require.False(t, d.overlapped)
		require.NoError(t, end())
	})
}

// requireOneVMEach requires that there are n machines with a VM each, and no other VM.
func (d *hangingProvider) requireOneVMEach(n int) {
	all, err := d.options.Store.Machines.List(ctx, store.Query{})
	require.NoError(d.t, err)
	require.Len(d.t, all, n)
	ids := map[string]string{}
	for _, vm := range d.provider.VMs() {
		ids[vm.ID] = vm.Name
	}
	require.Len(d.t, ids, n)
	for _, m := range all {
		require.Equal(d.t, m.Name, ids[m.Spec.ProviderID])
	}
}

// TestP52CallsThatHang: calls of any kind hang, before or after they take effect, for any time. Meanwhile the
// fleet is resized, machines are deleted, also by force, and the manager is ended and another starts. One manager
// never has two calls under way for a machine, no VM is deleted as an orphan while its create runs, and in the end
// there is one VM per machine.
// Invariants: P52
func TestP52CallsThatHang(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		hang := rapid.IntRange(1, 4).Draw(rt, "of ten calls that hang")
		steps := rapid.SliceOfN(rapid.IntRange(0, 5), 3, 10).Draw(rt, "steps")
		waits := rapid.SliceOfN(rapid.IntRange(1, 1500), len(steps), len(steps)).Draw(rt, "waits")
		var problem error
		synctest.Test(t, func(t *testing.T) {
			d := newHangingProvider(t, drivertest.MemoryOptions{})
			d.hangs = func(driver.CallInfo) (bool, bool) {
				seed = seed*6364136223846793005 + 1442695040888963407
				if int(seed>>33)%10 >= hang {
					return false, false
				}
				return seed>>60%2 == 0, seed>>60%2 == 1
			}
			d.class("web", 3)
			_, end := d.startManager()
			for i, step := range steps {
				<-time.After(time.Duration(waits[i]) * time.Second)
				d.step(step)
				if step == 0 {
					_ = end()
					d.releaseHanging() // the calls of a process end with it
					_, end = d.startManager()
				}
			}
			d.releaseAll()
			d.resize(4)
			for until := time.Now().Add(3 * time.Hour); time.Now().Before(until); {
				<-time.After(time.Minute)
			}
			problem = d.problem()
			if err := end(); err != nil {
				problem = errors.Join(problem, err)
			}
		})
		if problem != nil {
			rt.Fatal(problem)
		}
	})
}

// step does something to the fleet.
func (d *hangingProvider) step(step int) {
	machines := d.options.Store.Machines
	all, err := machines.List(ctx, store.Query{})
	require.NoError(d.t, err)
	switch {
	case step == 1:
		d.resize(2)
	case step == 2:
		d.resize(5)
	case step == 3 && len(all) > 0:
		_ = machines.Delete(ctx, all[0].Key, all[0].UID)
	case step == 4:
		d.releaseHanging()
	case step == 5 && len(all) > 0: // by hand
		gone := all[0].Clone()
		gone.Finalizers = nil
		if _, err := machines.Update(ctx, gone); err == nil {
			_ = machines.Delete(ctx, gone.Key, gone.UID)
		}
	}
}

// releaseHanging releases the calls that hang at present.
func (d *hangingProvider) releaseHanging() {
	d.mu.Lock()
	close(d.release)
	d.release = make(chan struct{})
	d.mu.Unlock()
	synctest.Wait()
}

func (d *hangingProvider) resize(n int32) {
	for {
		have, err := d.options.Store.Deployments.Get(ctx, object.Key{Namespace: namespace, Name: "web"})
		require.NoError(d.t, err)
		have = have.Clone()
		have.Spec.Replicas = n
		if _, err = d.options.Store.Deployments.Update(ctx, have); err == nil {
			return
		}
	}
}

func (d *hangingProvider) problem() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	all, err := d.options.Store.Machines.List(ctx, store.Query{})
	if limit := d.options.Tuning.CallTimeout + d.options.Tuning.CallGrace; d.longest > limit {
		return fmt.Errorf("a worker was held for %s", d.longest)
	}
	if err != nil || d.overlapped {
		return errors.Join(err, fmt.Errorf("two calls about one machine at a time: %t", d.overlapped))
	}
	ids := map[string]string{}
	for _, vm := range d.provider.VMs() {
		ids[vm.ID] = vm.Name
	}
	if len(all) != 4 || len(ids) != 4 {
		return fmt.Errorf("%d machines, %d VMs", len(all), len(ids))
	}
	for _, m := range all {
		if ids[m.Spec.ProviderID] != m.Name {
			return fmt.Errorf("machine %s records %q", m.Key, m.Spec.ProviderID)
		}
	}
	return nil
}
