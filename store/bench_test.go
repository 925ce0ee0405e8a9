package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

const (
	fleetSize = 100_000
	setSize   = 1_000
)

// fleet is a store with that many machines, in sets of setSize.
func fleet(b *testing.B, size int) (*memory, []*storetest.Object) {
	m := newMemory()
	machines := make([]*storetest.Object, size)
	for i := range machines {
		o := machine(fmt.Sprint("m", i))
		o.Owner.UID = fmt.Sprint("set-", i/setSize)
		o.Spec.Zones = []string{fmt.Sprint("zone-", i%3)}
		machines[i] = create(b, m, o)
		machines[i] = status(b, m, machines[i], fmt.Sprint("node-", i)).Clone()
	}
	return m, machines
}

func status(t require.TestingT, m *memory, o *storetest.Object, node string) *storetest.Object {
	c := o.Clone()
	c.Status.Node = node
	stored, err := m.UpdateStatus(noContext, c)
	require.NoError(t, err)
	return stored
}

func BenchmarkCreate(b *testing.B) {
	objects := make([]*storetest.Object, b.N)
	for i := range objects {
		objects[i] = machine(fmt.Sprint("m", i))
		objects[i].Owner.UID = fmt.Sprint("set-", i/setSize)
	}
	m := newMemory()
	b.ReportAllocs()
	b.ResetTimer()
	for _, o := range objects {
		if _, err := m.Create(noContext, o); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkClone measures the part of the other results that is spent in the object's own Clone.
func BenchmarkClone(b *testing.B) {
	o := machine("a")
	b.ReportAllocs()
	for b.Loop() {
		o.Clone()
	}
}

func BenchmarkUpdateStatus(b *testing.B) {
	for _, size := range []int{setSize, fleetSize} {
		for _, watches := range []int{0, 3} {
			b.Run(fmt.Sprintf("fleet=%d/watches=%d", size, watches), func(b *testing.B) {
				updateStatuses(b, size, watches)
			})
		}
	}
}

func updateStatuses(b *testing.B, size, watches int) {
	m, machines := fleet(b, size)
	ctx, cancel := context.WithCancel(noContext)
	wait := drain(ctx, m, size, watches)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		at := (i * 7919) % size // successive writes hit objects that are far apart, as in a real fleet
		o, err := m.UpdateStatus(noContext, machines[at])
		if err != nil {
			b.Fatal(err)
		}
		machines[at].Version = o.Version
		i++
	}
	cancel()
	wait()
}

// drain reads watches as fast as it can.
func drain(ctx context.Context, m *memory, size, watches int) (wait func()) {
	var all sync.WaitGroup
	for range watches {
		ready := make(chan struct{})
		all.Go(func() {
			n := 0
			for range m.Watch(ctx) {
				if n++; n == size {
					close(ready)
				}
			}
		})
		<-ready
	}
	return all.Wait
}

func BenchmarkUpdate(b *testing.B) {
	m, machines := fleet(b, fleetSize)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		at := (i * 7919) % fleetSize
		o, err := m.Update(noContext, machines[at])
		if err != nil {
			b.Fatal(err)
		}
		machines[at].Version = o.Version
		i++
	}
}

func BenchmarkGet(b *testing.B) {
	m, machines := fleet(b, fleetSize)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := m.Get(noContext, machines[(i*7919)%fleetSize].Key); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkListIndex1000(b *testing.B) {
	m, _ := fleet(b, fleetSize)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		q := store.Query{Index: storetest.ByOwner, Value: fmt.Sprint("set-", i%(fleetSize/setSize))}
		objects, err := m.List(noContext, q)
		if err != nil || len(objects) != setSize {
			b.Fatal(len(objects), err)
		}
		i++
	}
}

// BenchmarkWatch measures the time from a write until three watches have delivered it. It makes one
// write at a time, which is the worst case: no changes merge, and each watch has to be woken.
func BenchmarkWatch(b *testing.B) {
	m := newMemory()
	o := create(b, m, machine("a"))
	ctx, cancel := context.WithCancel(noContext)
	defer cancel()
	delivered := make(chan struct{})
	for range 3 {
		go func() {
			for range m.Watch(ctx) {
				delivered <- struct{}{}
			}
		}()
		<-delivered
	}
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if o, err = m.UpdateStatus(noContext, o); err != nil {
			b.Fatal(err)
		}
		for range 3 {
			<-delivered
		}
	}
}

// BenchmarkWatchBegin measures how long a new watch takes to deliver a whole fleet.
func BenchmarkWatchBegin(b *testing.B) {
	m, _ := fleet(b, fleetSize)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for range m.Watch(noContext) {
			if n++; n == fleetSize {
				break
			}
		}
	}
}
