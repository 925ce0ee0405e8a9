package drivertest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// MemoryProvider is the provider name that Memory answers to.
const MemoryProvider = "memory"

// MemoryVolumes is the type of the volumes that Memory knows. Their handle is
// their ID.
const MemoryVolumes = "volumes.memory"

// MemoryOptions says how a Memory behaves. With the zero value secrets are not checked, and VMs need no
// initialization.
type MemoryOptions struct {
	// Token is the required value of the key "token" of a secret. Empty: secrets are not checked.
	Token string
	// NeedsInitialization makes VMs UNINITIALIZED until InitializeMachine.
	NeedsInitialization bool
}

// Memory is a provider that lives in memory, and the driver for it. It meets every duty of a driver,
// its calls take effect at once, and it fails when told to. Any number of clusters can share it.
// NewMemory makes it. It is safe for concurrent use.
//
// Its answers depend only on the calls and their order. Provider IDs number the VMs and are never
// used twice: "memory:///blue/17".
type Memory struct {
	options MemoryOptions

	mu      sync.Mutex
	number  int
	vms     map[string]*MemoryVM
	ordered []*MemoryVM                  // the same, in the order of their creation
	tell    func(vm MemoryVM, gone bool) // see Watch; may be nil
	before  faults                       // of calls that are not carried out
	after   faults                       // of calls that are carried out and still fail
}

var (
	_ driver.Driver       = (*Memory)(nil)
	_ driver.FieldUpdater = (*Memory)(nil)
	_ driver.IDMatcher    = (*Memory)(nil)
	_ driver.FaultHook    = (*Memory)(nil)
)

// MemoryVM is a VM in a Memory.
type MemoryVM struct {
	ID          string
	Name        string // of the machine it was made for, and of its node
	UID         string // of that machine; empty: it is not known
	Cluster     string
	Size        string
	Tags        map[string]string
	Initialized bool
	Unhealthy   string // what GetMachineStatus says; empty: it works

	number int
}

func (vm *MemoryVM) clone() MemoryVM {
	c := *vm
	c.Tags = maps.Clone(vm.Tags)
	return c
}

// NewMemory returns a provider without VMs.
func NewMemory(o MemoryOptions) *Memory {
	return &Memory{options: o, vms: map[string]*MemoryVM{}, before: faults{}, after: faults{}}
}

// Class returns a class whose machines Memory makes from spec.
func (m *Memory) Class(key object.Key, spec MemorySpec) *machine.Class {
	return &machine.Class{Meta: object.Meta{Key: key}, Provider: MemoryProvider, ProviderSpec: spec.Encode()}
}

// Secret returns a secret that Memory accepts.
func (m *Memory) Secret(key object.Key) *machine.Secret {
	return &machine.Secret{
		Meta: object.Meta{Key: key},
		Data: map[string][]byte{"token": []byte(m.options.Token), machine.UserData: []byte("#!/bin/true")},
	}
}

// VMs returns copies of all VMs of all clusters, in the order of their creation.
func (m *Memory) VMs() []MemoryVM {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]MemoryVM, len(m.ordered))
	for i, vm := range m.ordered {
		all[i] = vm.clone()
	}
	return all
}

// Watch makes Memory call the function tell for each VM that is created or removed from now on, in any
// cluster, with the VM and whether it is gone. tell runs within the call that changes the VM, and must
// not call Memory. A later Watch replaces tell; nil ends it.
func (m *Memory) Watch(tell func(vm MemoryVM, gone bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell = tell
}

// Count returns how many VMs there are in all clusters.
func (m *Memory) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.vms)
}

// Add creates a VM as another user of the same account would: without a request, and with a name
// that may be taken. It returns the provider ID. An ID in vm is ignored.
func (m *Memory) Add(vm MemoryVM) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.add(vm).ID
}

func (m *Memory) add(vm MemoryVM) *MemoryVM {
	m.number++
	added := vm.clone()
	added.number = m.number
	added.ID = fmt.Sprintf("memory:///%s/%d", vm.Cluster, m.number)
	m.vms[added.ID] = &added
	m.ordered = append(m.ordered, &added)
	m.notify(&added, false)
	return &added
}

// SetUnhealthy sets why a VM is unhealthy, and reports whether the VM exists. Empty: it is healthy.
func (m *Memory) SetUnhealthy(id, why string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	vm := m.vms[id]
	if vm == nil {
		return false
	}
	vm.Unhealthy = why
	return true
}

// Remove removes a VM without a call of the driver, and reports whether it existed.
func (m *Memory) Remove(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.remove(id)
}

func (m *Memory) remove(id string) bool {
	vm := m.vms[id]
	if vm == nil {
		return false
	}
	at, _ := slices.BinarySearchFunc(m.ordered, vm.number, func(other *MemoryVM, n int) int { return cmp.Compare(other.number, n) })
	m.ordered = slices.Delete(m.ordered, at, at+1)
	delete(m.vms, id)
	m.notify(vm, true)
	return true
}

func (m *Memory) notify(vm *MemoryVM, gone bool) {
	if m.tell != nil {
		m.tell(vm.clone(), gone)
	}
}

// UpdatableFields implements driver.FieldUpdater.
func (m *Memory) UpdatableFields() []string { return []string{"tags"} }

// ProviderIDsMatch implements driver.IDMatcher.
func (m *Memory) ProviderIDsMatch() bool { return true }

// FailNext makes the next call of that kind answer err without doing anything. Several calls make
// several such calls fail.
func (m *Memory) FailNext(call codes.Call, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before.add(call, err)
}

// FailAfter implements driver.FaultHook. There is no response beside err.
func (m *Memory) FailAfter(call codes.Call, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.after.add(call, err)
}

// faults are the errors of coming calls, first in, first out.
type faults map[codes.Call][]error

func (f faults) add(call codes.Call, err error) { f[call] = append(f[call], err) }

// take returns the next error for a call. Nil: there is none.
func (f faults) take(call codes.Call) error {
	if len(f[call]) == 0 {
		return nil
	}
	err := f[call][0]
	f[call] = f[call][1:]
	return err
}

// serve carries out a call, one at a time, unless its context has ended or there is a fault for it.
func serve[R any](ctx context.Context, m *Memory, call codes.Call, do func() (*R, error)) (*R, error) {
	if err := ctx.Err(); err != nil {
		return nil, codes.Wrap(codes.Of(err), err, call.String()+" was given up before it began")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.before.take(call); err != nil {
		return nil, err
	}
	response, err := do()
	if err != nil {
		return response, err
	}
	if err := m.after.take(call); err != nil {
		return nil, err
	}
	return response, nil
}
