package manager_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// instant is a provider that answers at once, and whose machines join at once.
type instant struct {
	driver.Unimplemented
	nodes store.Collection[*machine.Node]
	vms   sync.Map // name to provider ID
}

func (d *instant) GetMachineStatus(_ context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	id, ok := d.vms.Load(req.Machine.Name)
	if !ok {
		return nil, codes.New(codes.NotFound, "no such VM")
	}
	return &driver.GetMachineStatusResponse{ProviderID: id.(string), NodeName: req.Machine.Name}, nil
}

func (d *instant) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	id := "instant:///" + req.Machine.Name
	d.vms.Store(req.Machine.Name, id)
	node := &machine.Node{Meta: object.Meta{Key: object.Key{Name: req.Machine.Name}}, ProviderID: id}
	made, err := d.nodes.Create(ctx, node)
	if err != nil {
		return nil, err
	}
	up := made.Clone()
	up.Conditions = []object.Condition{{Type: machine.NodeReady, Status: object.True}}
	if _, err := d.nodes.UpdateStatus(ctx, up); err != nil {
		return nil, err
	}
	return &driver.CreateMachineResponse{ProviderID: id, NodeName: req.Machine.Name}, nil
}

func (d *instant) DeleteMachine(_ context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	d.vms.Delete(req.Machine.Name)
	return &driver.DeleteMachineResponse{}, nil
}

type nodes struct {
	store.Collection[*machine.Node]
}

func (n nodes) Nodes() store.Collection[*machine.Node] { return n.Collection }

// BenchmarkCreate creates machines until they are Running, in sets of 1,000, with the store in memory and the
// manager's own queue.
func BenchmarkCreate(b *testing.B) {
	for _, machines := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(machines), func(b *testing.B) {
			for b.Loop() {
				createFleet(b, machines)
			}
			perSecond := float64(b.N) * float64(machines) / b.Elapsed().Seconds()
			b.ReportMetric(perSecond, "machines/s")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(machines), "ns/machine")
		})
	}
}

func createFleet(b *testing.B, machines int) {
	b.StopTimer()
	o := manager.InMemory(nil)
	cluster := nodes{store.NewMemory(nil, manager.NodeIndexes(machine.DefaultPolicy().Keys.NodeMachine))}
	o.Cluster, o.Driver, o.Policies.Safety = cluster, &instant{nodes: cluster.Collection}, safety.Off()
	var mu sync.Mutex
	running, done := 0, make(chan struct{})
	o.Hooks.Transition = func(_ object.Key, move machine.Move, _ decision.Why) {
		if move.On != machine.EventJoined {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if running++; running == machines {
			close(done)
		}
	}
	m, err := manager.New(o)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	prepare(ctx, b, o, machines)
	runtime.GC()
	b.StartTimer()
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	select {
	case <-done:
	case <-ctx.Done():
		b.Fatalf("%d of %d machines running", running, machines)
	}
	b.StopTimer()
	cancel()
	require.NoError(b, <-ended)
	b.StartTimer()
}

// prepare stores a class and sets of 1,000.
func prepare(ctx context.Context, b *testing.B, o manager.Options, machines int) {
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	secret := &machine.Secret{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "boot"}}}
	secret.Data = map[string][]byte{machine.UserData: []byte("join <<MACHINE_NAME>>")}
	_, err := o.Store.Secrets.Create(ctx, secret)
	must(err)
	class := &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "small"}}, SecretRef: &object.Key{Name: "boot"}}
	_, err = o.Store.Classes.Create(ctx, class)
	must(err)
	for n := 0; n < machines; n += 1000 {
		set := &machineset.Set{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: fmt.Sprint("set", n/1000)}}}
		labels := map[string]string{"set": set.Name}
		set.Spec.Replicas = int32(min(1000, machines-n))
		set.Spec.Selector.Labels = labels
		set.Spec.Template.Labels = labels
		set.Spec.Template.Spec.Class.Name = "small"
		set.Spec.Template.Spec.NodeTemplate.Labels = map[string]string{"pool": "a", "zone": "b"}
		_, err = o.Store.Sets.Create(ctx, set)
		must(err)
	}
}

// BenchmarkRoll rolls one deployment to another class with a surge of 10%, with the store in memory and the
// manager's own queue, until its status says that all machines are new and available, and the old ones are gone or
// being deleted. A status is written once a second at most, so the time is a matter of seconds.
func BenchmarkRoll(b *testing.B) {
	for _, machines := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(machines), func(b *testing.B) {
			for b.Loop() {
				rollFleet(b, int32(machines))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(machines), "ns/machine")
		})
	}
}

func rollFleet(b *testing.B, replicas int32) {
	b.StopTimer()
	o := manager.InMemory(nil)
	cluster := nodes{store.NewMemory(nil, manager.NodeIndexes(machine.DefaultPolicy().Keys.NodeMachine))}
	o.Cluster, o.Driver, o.Policies.Safety = cluster, &instant{nodes: cluster.Collection}, safety.Off()
	m, err := manager.New(o)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	prepare(ctx, b, o, 0)
	d := &deployment.Deployment{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "web"}}}
	d.Spec.Replicas = replicas
	d.Spec.Selector.Labels = map[string]string{"app": "web"}
	d.Spec.Template.Labels = d.Spec.Selector.Labels
	d.Spec.Template.Spec.Class.Name = "small"
	d.Spec.Strategy.MaxSurge = rollout.IntOrPercent{Percent: true, Value: 10}
	if d, err = o.Store.Deployments.Create(ctx, d); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	awaitFleet(ctx, b, o, d.Key)
	class := &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "large"}}, SecretRef: &object.Key{Name: "boot"}}
	if _, err := o.Store.Classes.Create(ctx, class); err != nil {
		b.Fatal(err)
	}
	if d, err = o.Store.Deployments.Live().Get(ctx, d.Key); err != nil {
		b.Fatal(err)
	}
	changed := d.Clone()
	changed.Spec.Template.Spec.Class.Name = "large"
	runtime.GC()
	b.StartTimer()
	if _, err := o.Store.Deployments.Update(ctx, changed); err != nil {
		b.Fatal(err)
	}
	awaitFleet(ctx, b, o, d.Key)
	b.StopTimer()
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	b.StartTimer()
}

// awaitFleet waits until all machines of a deployment have its present template and are available, and all others
// are being deleted.
func awaitFleet(ctx context.Context, b *testing.B, o manager.Options, key object.Key) {
	if _, err := store.Await(ctx, o.Store.Deployments, key, deployment.Missing); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkFleet creates machines in deployments of 1,000 each, rolls all of
// them to another class with a surge of 10%, and reports how long either takes
// and how much live heap a machine costs: its record, its node's, and all that
// manager and stores remember of them.
//
// Bounds are checked by sampling: one deployment in ten is watched, and each
// of its statuses is held to the floor and the ceiling.
func BenchmarkFleet(b *testing.B) {
	for _, machines := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(machines), func(b *testing.B) { liveOn(b, machines/1_000, 1_000) })
	}
}

// BenchmarkShapes measures what BenchmarkFleet does, for one large deployment and for many small ones.
func BenchmarkShapes(b *testing.B) {
	for _, shape := range []struct{ deployments, replicas int }{
		{1, 1_000}, {1, 5_000}, {1, 20_000}, {1, 100_000}, {200, 50}, {2_000, 5}, {5_000, 2},
	} {
		b.Run(fmt.Sprintf("%d_of_%d", shape.deployments, shape.replicas), func(b *testing.B) {
			liveOn(b, shape.deployments, shape.replicas)
		})
	}
}

// liveOn creates and rolls a fleet.
func liveOn(b *testing.B, deployments, replicas int) {
	for b.Loop() {
		f := openFleet(b, deployments, int32(replicas))
		f.create()
		f.roll()
		f.close()
	}
}

// largeFleet is a number of deployments in one manager.
type largeFleet struct {
	b           *testing.B
	ctx         context.Context
	cancel      context.CancelFunc
	ended       chan error
	o           manager.Options
	deployments int
	replicas    int32 // of each
	rolling     bool
	before      uint64       // live heap
	parents     atomic.Int64 // passes over sets and deployments
}

func openFleet(b *testing.B, deployments int, replicas int32) *largeFleet {
	f := &largeFleet{b: b, deployments: deployments, replicas: replicas, ended: make(chan error, 1), before: liveHeap()}
	f.o = manager.InMemory(nil)
	cluster := nodes{store.NewMemory(nil, manager.NodeIndexes(machine.DefaultPolicy().Keys.NodeMachine))}
	f.o.Cluster, f.o.Driver, f.o.Policies.Safety = cluster, &instant{nodes: cluster.Collection}, safety.Off()
	f.o.Policies.Deployment, f.o.Policies.Set = &deployment.Policy{MaxReplicas: 200_000}, &machineset.Policy{MaxReplicas: 200_000}
	f.o.Hooks.Pass = func(kind manager.Kind, _ object.Key, _ int, _ manager.Result, _ error) {
		if kind != manager.KindMachine {
			f.parents.Add(1)
		}
	}
	m, err := manager.New(f.o)
	f.must(err)
	f.ctx, f.cancel = context.WithTimeout(context.Background(), 10*time.Minute)
	prepare(f.ctx, b, f.o, 0)
	large := &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "large"}}, SecretRef: &object.Key{Name: "boot"}}
	_, err = f.o.Store.Classes.Create(f.ctx, large)
	f.must(err)
	go func() { f.ended <- m.Run(f.ctx) }()
	return f
}

// machines returns how many machines the fleet should have.
func (f *largeFleet) machines() float64 { return float64(f.deployments) * float64(f.replicas) }

func (f *largeFleet) must(err error) {
	f.b.Helper()
	if err != nil {
		f.b.Fatal(err)
	}
}

// create makes all deployments, and waits for their machines.
func (f *largeFleet) create() {
	begin := read()
	for i := range f.deployments {
		d := &deployment.Deployment{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: fmt.Sprint("web", i)}}}
		d.Spec.Replicas = f.replicas
		d.Spec.Selector.Labels = map[string]string{"app": d.Name}
		d.Spec.Template.Labels = d.Spec.Selector.Labels
		d.Spec.Template.Spec.Class.Name = "small"
		d.Spec.Template.Spec.NodeTemplate.Labels = map[string]string{"pool": "a", "zone": "b"}
		d.Spec.Strategy.MaxSurge = rollout.IntOrPercent{Percent: true, Value: 10}
		_, err := f.o.Store.Deployments.Create(f.ctx, d)
		f.must(err)
	}
	f.await()
	f.report("create", begin)
	heap := float64(liveHeap()-f.before) / f.machines()
	f.b.ReportMetric(heap, "heap-B/machine")
}

// roll rolls all deployments to the other class.
func (f *largeFleet) roll() {
	begin := read()
	f.rolling = true
	all, err := f.o.Store.Deployments.List(f.ctx, store.Query{})
	f.must(err)
	for _, d := range all {
		d = d.Clone()
		for {
			d.Spec.Template.Spec.Class.Name = "large"
			if _, err = f.o.Store.Deployments.Update(f.ctx, d); err == nil {
				break
			}
			d, err = f.o.Store.Deployments.Live().Get(f.ctx, d.Key)
			f.must(err)
			d = d.Clone()
		}
	}
	f.await()
	f.report("roll", begin)
}

// await waits until all deployments are complete.
func (f *largeFleet) await() {
	done := map[string]bool{}
	for change, err := range f.o.Store.Deployments.Watch(f.ctx) {
		f.must(err)
		d := change.New
		if d == nil {
			continue
		}
		f.sample(d)
		if deployment.Complete(d) {
			done[d.Name] = true
		} else {
			delete(done, d.Name)
		}
		if len(done) == f.deployments {
			return
		}
	}
	f.b.Fatalf("the fleet is not complete: %d of %d deployments, %v", len(done), f.deployments, f.ctx.Err())
}

// sample checks the bounds of one deployment in ten.
func (f *largeFleet) sample(d *deployment.Deployment) {
	s := &d.Status
	if !strings.HasSuffix(d.Name, "0") {
		return
	}
	if s.Replicas > f.replicas+(f.replicas+9)/10 || f.rolling && s.Available < f.replicas {
		f.b.Fatalf("%s: %d machines, %d available", d.Name, s.Replicas, s.Available)
	}
}

// stopwatch is how long something took, and how much processor time.
type stopwatch struct{ wall, cpu time.Duration }

func read() stopwatch {
	var use syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use) // can't fail for the process itself
	return stopwatch{time.Since(started), time.Duration(use.Utime.Nano() + use.Stime.Nano())}
}

var started = time.Now()

func (f *largeFleet) report(what string, begin stopwatch) {
	end := read()
	f.b.ReportMetric((end.wall - begin.wall).Seconds(), what+"-s")
	perMachine := f.machines()
	f.b.ReportMetric(float64(f.parents.Swap(0))/perMachine, what+"-parent-passes/machine")
	f.b.ReportMetric(float64((end.cpu-begin.cpu).Microseconds())/perMachine, what+"-cpu-µs/machine")
}

func (f *largeFleet) close() {
	f.cancel()
	<-f.ended
}

// liveHeap returns the size of the reachable heap.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
