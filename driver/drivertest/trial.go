package drivertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/conformance"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// trial is one run of one check, with a driver.
type trial struct {
	*conformance.Trial
	setup Setup

	before     int             // Setup.Count at the start
	leftBefore map[string]bool // Setup.Leftovers at the start
	blind      bool            // some effect could not be seen

	mu   sync.Mutex
	made []creation
}

// creation is a VM that may have been created and must be deleted at the end.
type creation struct {
	machine *machine.Machine
	class   *machine.Class
}

func newTrial(t testing.TB, s Suite, setup Setup) *trial {
	r := &trial{setup: setup, Trial: conformance.New(t, conformance.Options{
		Patience: s.Patience, Prompt: s.Prompt, Settle: setup.Settle,
		Responsive: []driver.Method{codes.CreateMachine, codes.GetMachineStatus, codes.ListMachines, codes.GetVolumeIDs},
	})}
	r.ForbidInAnswers(setup.Secret, setup.Class)
	return r
}

// try runs a check and cleans up after it.
func (r *trial) try(c check) {
	if r.setup.Driver == nil || r.setup.Class == nil {
		r.Fatalf("Setup has no Driver or no Class")
	}
	r.Cleanup(func() { r.Quiet(r.cleanUp) })
	if r.setup.Count != nil {
		r.before = r.setup.Count()
	}
	if r.setup.Leftovers != nil {
		r.leftBefore = map[string]bool{}
		for _, thing := range r.setup.Leftovers() {
			r.leftBefore[thing] = true
		}
	}
	c.run(r)
	if r.blind && !r.Failed() {
		r.NotRun("some effects can't be seen: the driver has neither ListMachines nor GetMachineStatus, and Setup no Count")
	}
}

// cleanUp deletes all VMs that the trial may have created. What can't be deleted is only logged,
// because other checks test deletion.
func (r *trial) cleanUp() {
	ctx := context.WithoutCancel(r.Ctx)
	r.mu.Lock()
	made := slices.Clone(r.made)
	r.mu.Unlock()
	for _, b := range made {
		if r.Stuck() {
			r.Logf("calls are stuck; VMs whose names begin with %s may be left behind", r.Names)
			return
		}
		within, cancel := context.WithTimeout(ctx, r.Patience)
		_, err := r.deleteOf(within, b.machine, b.class)
		cancel()
		if err != nil {
			r.Logf("VM of machine %s may be left behind: %v", b.machine.Name, err)
		}
	}
}

// machine returns a new machine under a new name, without a VM.
func (r *trial) machine() *machine.Machine {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := fmt.Sprintf("%s-%d", r.Names, len(r.made))
	m := r.newMachine(name)
	r.made = append(r.made, creation{m, r.setup.Class})
	return m
}

func (r *trial) newMachine(name string) *machine.Machine {
	if r.setup.NewMachine != nil {
		return r.setup.NewMachine(name)
	}
	class := r.setup.Class
	return &machine.Machine{
		Meta: object.Meta{Key: object.Key{Namespace: class.Namespace, Name: name}},
		Spec: machine.Spec{Class: machine.ClassRef{Name: class.Name}},
	}
}

// deleteAtEnd makes the trial delete the VM of machine m and class c at its end.
func (r *trial) deleteAtEnd(m *machine.Machine, c *machine.Class) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made = append(r.made, creation{m, c})
}

// vm is a VM that CreateMachine has returned.
type vm struct {
	machine *machine.Machine // as the library stores it then: ID, node name and note recorded
	id      string
	node    string
}

// record returns the VM of a create's answer, with the machine as the library stores it then.
func record(m *machine.Machine, a *driver.CreateMachineResponse) vm {
	recorded := m.Clone()
	recorded.Spec.ProviderID, recorded.Spec.NodeName = a.ProviderID, a.NodeName
	if a.LastKnownState != "" {
		recorded.Status.LastKnown = a.LastKnownState
	}
	return vm{machine: recorded, id: a.ProviderID, node: a.NodeName}
}

// created creates the machine's VM. That must succeed.
func (r *trial) created(m *machine.Machine) vm {
	r.Helper()
	return r.createdOf(m, r.setup.Class)
}

func (r *trial) createdOf(m *machine.Machine, c *machine.Class) vm {
	r.Helper()
	a, err := r.createOf(r.Ctx, m, c)
	if err != nil {
		r.Fatalf("CreateMachine: %v", err)
	}
	if a == nil || a.ProviderID == "" {
		r.Fatalf("CreateMachine answered OK without a provider ID")
	}
	if a.NodeName == "" && !r.setup.NoNodeNames {
		r.Errorf("CreateMachine answered OK without a node name (see Setup.NoNodeNames)")
	}
	return record(m, a)
}

// deleted deletes the machine's VM. That must succeed.
func (r *trial) deleted(m *machine.Machine) {
	r.Helper()
	_, err := r.delete(r.Ctx, m)
	if codes.Of(err) == codes.NotFound {
		r.Fatalf("DeleteMachine answers %v: a VM that is gone or never was must be answered with OK", err)
	}
	if err != nil {
		r.Fatalf("DeleteMachine: %v", err)
	}
}

// supports skips the check if a call's answer says that the driver lacks it.
func (r *trial) supports(call codes.Call, err error) {
	r.Helper()
	if codes.Of(err) == codes.Unimplemented {
		r.NotRun("the driver has no %s", call)
	}
}
