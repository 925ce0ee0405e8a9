package manager_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// fleetSize is how many machines each deployment of a large fleet has.
const fleetSize = 1_000

// BenchmarkFleet creates machines in deployments of 1,000 each, rolls all of
// them to another class with a surge of 10%, and reports how long either takes
// and how much live heap a machine costs: its record, its node's, and all that
// manager and stores remember of them.
//
// Bounds are checked by sampling: one deployment in ten is watched, and each
// of its statuses is held to the floor and the ceiling.
func BenchmarkFleet(b *testing.B) {
	for _, machines := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(machines), func(b *testing.B) {
			for b.Loop() {
				f := openFleet(b, machines/fleetSize)
				f.create()
				f.roll()
				f.close()
			}
		})
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
	rolling     bool
	before      uint64       // live heap
	parents     atomic.Int64 // passes over sets and deployments
}

func openFleet(b *testing.B, deployments int) *largeFleet {
	f := &largeFleet{b: b, deployments: deployments, ended: make(chan error, 1), before: liveHeap()}
	f.o = manager.InMemory(nil)
	cluster := nodes{store.NewMemory(nil, manager.NodeIndexes(machine.DefaultPolicy().Keys.NodeMachine))}
	f.o.Cluster, f.o.Driver, f.o.Policies.Safety = cluster, &instant{nodes: cluster.Collection}, safety.Off()
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

func (f *largeFleet) must(err error) {
	f.b.Helper()
	if err != nil {
		f.b.Fatal(err)
	}
}

// create makes all deployments and waits for their machines.
func (f *largeFleet) create() {
	begin := read()
	for i := range f.deployments {
		d := &deployment.Deployment{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: fmt.Sprint("web", i)}}}
		d.Spec.Replicas = fleetSize
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
	heap := float64(liveHeap()-f.before) / float64(f.deployments*fleetSize)
	f.b.ReportMetric(heap, "heap-B/machine")
}

// roll has all deployments go over to the other class.
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

// await returns when all deployments are complete.
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

// sample holds one deployment in ten to its bounds.
func (f *largeFleet) sample(d *deployment.Deployment) {
	s := &d.Status
	if !strings.HasSuffix(d.Name, "0") {
		return
	}
	if s.Replicas > fleetSize+fleetSize/10 || f.rolling && s.Available < fleetSize {
		f.b.Fatalf("%s: %d machines, %d available", d.Name, s.Replicas, s.Available)
	}
}

// stopwatch tells how long something took, and how much processor time.
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
	perMachine := float64(f.deployments * fleetSize)
	f.b.ReportMetric(float64(f.parents.Swap(0))/perMachine, what+"-parent-passes/machine")
	f.b.ReportMetric(float64((end.cpu-begin.cpu).Microseconds())/perMachine, what+"-cpu-µs/machine")
}

func (f *largeFleet) close() {
	f.cancel()
	<-f.ended
}

// liveHeap is what is reachable.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
