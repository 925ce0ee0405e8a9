package bolt_test

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// newMachine returns a machine with the usual fields of one that has a VM.
func newMachine(name string) *machine.Machine {
	m := &machine.Machine{
		Meta: object.Meta{
			Key:        object.Key{Namespace: "fleet", Name: name},
			Labels:     map[string]string{"app": "mill", "zone": "north"},
			Finalizers: []string{machine.Finalizer},
			Owner:      &object.Owner{Kind: "MachineSet", Name: "mill", UID: "set-1"},
		},
		Spec: machine.Spec{Class: machine.ClassRef{Name: "large"}, ProviderID: "provider:///" + name, NodeName: name},
	}
	return m
}

// running returns the status of a running machine.
func running() machine.Status {
	s := machine.Status{Phase: machine.PhaseRunning, Since: now().Truncate(time.Second)}
	for _, typ := range []string{"Ready", "DiskPressure", "MemoryPressure", "PIDPressure", "NetworkUnavailable"} {
		s.Conditions = append(s.Conditions, object.Condition{
			Type: typ, Status: object.False, Reason: "KubeletIsHappy", Message: "there is nothing to complain about", Since: s.Since,
		})
	}
	s.Addresses = []machine.Address{{Type: "InternalIP", Value: "10.0.0.7"}, {Type: "Hostname", Value: "host"}}
	return s
}

// BenchmarkUpdateStatus has several concurrent writers, each of which writes the status of its own
// machine and waits for the disk.
func BenchmarkUpdateStatus(b *testing.B) {
	for _, writers := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			machines := open(b, newPath(b)).Machines()
			var left atomic.Int64
			left.Store(int64(b.N))
			mine := make([]*machine.Machine, writers)
			for i := range mine {
				m, err := machines.Create(noContext, newMachine(fmt.Sprint("m", i)))
				require.NoError(b, err)
				mine[i] = m.Clone()
				mine[i].Status = running()
			}
			b.ReportAllocs()
			b.ResetTimer()
			var all sync.WaitGroup
			for i := range writers {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						stored, err := machines.UpdateStatus(noContext, mine[i])
						if err != nil {
							b.Error(err)
							return
						}
						mine[i].Version = stored.Version
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
		})
	}
}

// BenchmarkOpen opens files with many running machines.
func BenchmarkOpen(b *testing.B) {
	for _, fleet := range []int{2_000, 20_000, 100_000} {
		b.Run(fmt.Sprintf("machines=%d", fleet), func(b *testing.B) { benchmarkOpen(b, fleet) })
	}
}

func benchmarkOpen(b *testing.B, fleet int) {
	const writers = 1000
	path := newPath(b)
	db, err := bolt.Open(path, bolt.Options{Now: now})
	require.NoError(b, err)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := w; i < fleet; i += writers {
				m, err := db.Machines().Create(noContext, newMachine(fmt.Sprint("m", i)))
				if err == nil {
					m = m.Clone()
					m.Status = running()
					_, err = db.Machines().UpdateStatus(noContext, m)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	require.NoError(b, db.Close())
	info, err := os.Stat(path)
	require.NoError(b, err)
	before, held := inUse(), uint64(0)
	for b.Loop() {
		db, err := bolt.Open(path, bolt.Options{})
		require.NoError(b, err)
		b.StopTimer()
		listed, err := db.Machines().List(noContext, store.Query{})
		require.NoError(b, err)
		require.Len(b, listed, fleet)
		held = inUse() - before
		require.NoError(b, db.Close())
		b.StartTimer()
	}
	b.ReportMetric(float64(held)/(1<<20), "MiB-held")
	b.ReportMetric(float64(info.Size())/(1<<20), "MiB-file")
}

// inUse returns the memory in use after a collection.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
