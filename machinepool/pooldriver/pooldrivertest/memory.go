package pooldrivertest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

// Memory is a provider of groups that lives in memory, and the pool driver for it. It meets every
// duty of a pool driver, and fails when told to. Any number of clusters share it. NewMemory makes
// it. It is safe for concurrent use, and takes the provider specs and secrets of a
// drivertest.Memory.
//
// Instances come and go at once, or, with Slow, when Work is called. Provider
// IDs number the instances and are never used twice.
type Memory struct {
	slow   bool
	memory *drivertest.Memory // for what classes and secrets must hold

	mu     sync.Mutex
	number int
	groups map[groupKey]*memoryGroup
	before map[machinepool.Call][]error
	after  map[machinepool.Call][]error
}

var (
	_ pooldriver.Driver    = (*Memory)(nil)
	_ pooldriver.Featured  = (*Memory)(nil)
	_ pooldriver.Lister    = (*Memory)(nil)
	_ pooldriver.FaultHook = (*Memory)(nil)
)

type groupKey struct {
	cluster string
	pool    object.Key
}

type memoryGroup struct {
	id        string
	size      string // of its instances
	target    int32
	failure   string
	instances map[string]*memoryInstance
}

type memoryInstance struct {
	machinepool.Instance
	number int
}

// MemoryOptions says how a Memory behaves. With the zero value secrets are not checked, and every change
// takes effect at once.
type MemoryOptions struct {
	Token string // as for a drivertest.Memory
	// Slow leaves instances as they are until Work is called.
	Slow bool
}

// NewMemory returns a provider without groups.
func NewMemory(o MemoryOptions) *Memory {
	return &Memory{
		slow: o.Slow, memory: drivertest.NewMemory(drivertest.MemoryOptions{Token: o.Token}), groups: map[groupKey]*memoryGroup{},
		before: map[machinepool.Call][]error{}, after: map[machinepool.Call][]error{},
	}
}

// Class returns a class whose groups Memory makes from spec.
func (m *Memory) Class(key object.Key, spec drivertest.MemorySpec) *machine.Class {
	return m.memory.Class(key, spec)
}

// Secret returns a secret that Memory accepts.
func (m *Memory) Secret(key object.Key) *machine.Secret { return m.memory.Secret(key) }

// Groups returns how many groups there are in all clusters.
func (m *Memory) Groups() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.groups)
}

// Count returns how many instances there are in all groups.
func (m *Memory) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, g := range m.groups {
		n += len(g.instances)
	}
	return n
}

// Work brings every group to its target.
func (m *Memory) Work() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.groups {
		m.work(g)
	}
}

// work brings a group to its target. It removes instances that are Terminating first, then the youngest.
func (m *Memory) work(g *memoryGroup) {
	maps.DeleteFunc(g.instances, func(_ string, i *memoryInstance) bool { return i.Terminating })
	for all := g.sorted(); int32(len(all)) > g.target; all = all[:len(all)-1] {
		delete(g.instances, all[len(all)-1].ProviderID)
	}
	for int32(len(g.instances)) < g.target {
		m.number++
		id := fmt.Sprintf("memory:///%s/%d", g.id, m.number)
		g.instances[id] = &memoryInstance{Instance: machinepool.Instance{ProviderID: id}, number: m.number}
	}
}

// sorted returns a group's instances, oldest first.
func (g *memoryGroup) sorted() []*memoryInstance {
	return slices.SortedFunc(maps.Values(g.instances), func(a, b *memoryInstance) int { return cmp.Compare(a.number, b.number) })
}

// Lose removes an instance from the group that has it, without a call. The provider then creates another
// one.
func (m *Memory) Lose(id string) {
	m.each(id, func(g *memoryGroup, _ *memoryInstance) { delete(g.instances, id) })
}

// AskDrain makes the provider want to remove an instance, and wait for its drain.
func (m *Memory) AskDrain(id string) {
	m.each(id, func(_ *memoryGroup, i *memoryInstance) { i.AwaitsDrain = true })
}

func (m *Memory) each(id string, do func(*memoryGroup, *memoryInstance)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.groups {
		if i := g.instances[id]; i != nil {
			do(g, i)
		}
	}
}

// Resize sets a group's target as an autoscaler of the provider does.
func (m *Memory) Resize(cluster string, pool object.Key, target int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if g := m.groups[groupKey{cluster, pool}]; g != nil {
		g.target = target
		if !m.slow {
			m.work(g)
		}
	}
}

// PoolFeatures implements pooldriver.Featured.
func (m *Memory) PoolFeatures() machinepool.Features {
	return machinepool.Features{DeleteInstances: true, ReplaceInstance: true, RollingUpdate: true} // an update replaces none
}

// FailPoolNext makes the next call of that kind answer err without doing anything. Several calls make
// several such calls fail.
func (m *Memory) FailPoolNext(call machinepool.Call, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before[call] = append(m.before[call], err)
}

// FailPoolAfter implements pooldriver.FaultHook. There is no response beside err.
func (m *Memory) FailPoolAfter(call machinepool.Call, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.after[call] = append(m.after[call], err)
}
