package drivertest

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
)

var statusChecks = []check{
	{"answers what create did", statusAnswers},
	{"is of the machine asked for", statusOfEach},
	{"is read-only", statusReadsOnly},
	{"says Uninitialized where it is so", statusUninitialized},
}

var absentChecks = []check{{"of an absent VM is NotFound", statusAbsent}}

func statusAbsent(r *trial) {
	m := r.machine()
	_, err := r.status(r.Ctx, m)
	r.supports(codes.GetMachineStatus, err)
	r.absentTwice(m, err)
	v := r.created(m)
	r.Settled()
	r.deleted(v.machine)
	r.Settled()
	for _, m := range []*machine.Machine{m, v.machine} {
		_, err := r.status(r.Ctx, m)
		r.absentTwice(m, err)
	}
	r.total(0, "GetMachineStatus creates nothing")
}

// absentTwice requires that a status is NOT_FOUND, with the same message the second time, because
// each change of a message is a write to the store.
func (r *trial) absentTwice(m *machine.Machine, first error) {
	r.Helper()
	r.absent(codes.GetMachineStatus, first)
	_, again := r.status(r.Ctx, m)
	r.absent(codes.GetMachineStatus, again)
	if was, is := codes.Message(first), codes.Message(again); was != is {
		r.Errorf("GetMachineStatus says %q for a VM that does not exist, and %q when it is asked again: "+
			"a message must not change from one attempt to the next", was, is)
	}
}

// absent requires that a call answered NOT_FOUND.
func (r *trial) absent(call codes.Call, err error) {
	r.Helper()
	if code := codes.Of(err); code != codes.NotFound {
		r.Errorf("%s answers %s for a VM that does not exist, not %s (%v)", call, code, codes.NotFound, err)
	}
}

// statusAnswers asks by name, as after a crash, and by ID.
func statusAnswers(r *trial) {
	m := r.machine()
	v := r.created(m)
	r.Settled()
	for _, m := range []*machine.Machine{m, v.machine} {
		a, err := r.status(r.Ctx, m)
		r.supports(codes.GetMachineStatus, err)
		if code := codes.Of(err); code != codes.OK && code != codes.Uninitialized {
			r.Fatalf("GetMachineStatus: %v", err)
		}
		r.sameVM(v, a)
	}
}

// statusOfEach asks for one machine among several, by name and by ID, and for
// one that has no VM beside them.
func statusOfEach(r *trial) {
	a, b := r.created(r.machine()), r.created(r.machine())
	r.Settled()
	for _, v := range []vm{a, b} {
		unrecorded := v.machine.Clone()
		unrecorded.Spec.ProviderID, unrecorded.Spec.NodeName = "", ""
		for _, m := range []*machine.Machine{unrecorded, v.machine} {
			answer, err := r.status(r.Ctx, m)
			r.supports(codes.GetMachineStatus, err)
			if code := codes.Of(err); code != codes.OK && code != codes.Uninitialized {
				r.Fatalf("GetMachineStatus of machine %s among two: %v", m.Name, err)
			}
			r.sameVM(v, answer)
		}
	}
	_, err := r.status(r.Ctx, r.machine())
	r.absent(codes.GetMachineStatus, err)
}

// sameVM requires that a status names the same VM as its create did.
func (r *trial) sameVM(v vm, a *driver.GetMachineStatusResponse) {
	r.Helper()
	switch {
	case a == nil:
		r.Fatalf("GetMachineStatus found the VM and has no response")
	case a.ProviderID != v.id || a.NodeName != v.node:
		r.Errorf("CreateMachine answered VM %q with node %q, GetMachineStatus %q with %q",
			v.id, v.node, a.ProviderID, a.NodeName)
	}
}

// statusReadsOnly asks again: a later answer shows a change that an earlier call made.
func statusReadsOnly(r *trial) {
	v := r.created(r.machine())
	r.Settled()
	a, first := r.status(r.Ctx, v.machine)
	r.supports(codes.GetMachineStatus, first)
	for range 2 {
		r.Settled()
		b, again := r.status(r.Ctx, v.machine)
		if codes.Of(again) != codes.Of(first) {
			r.Errorf("GetMachineStatus answers %s at first, then %s: it changes nothing",
				codes.Of(first), codes.Of(again))
		}
		if a != nil && b != nil && (a.ProviderID != b.ProviderID || a.NodeName != b.NodeName) {
			r.Errorf("GetMachineStatus answers %+v at first, then %+v: it changes nothing", *a, *b)
		}
	}
	r.only(v.machine, "GetMachineStatus changes nothing", v)
	r.total(1, "GetMachineStatus changes nothing")
}

func statusUninitialized(r *trial) {
	m := r.machine()
	v := r.created(m)
	r.Settled()
	a, err := r.status(r.Ctx, m)
	r.supports(codes.GetMachineStatus, err)
	if code := codes.Of(err); code != codes.Uninitialized {
		if r.setup.NeedsInitialization {
			r.Fatalf("GetMachineStatus answers %s for a VM that needs initialization, not %s", code, codes.Uninitialized)
		}
		r.NotRun("VMs of Class need no initialization")
	}
	r.sameVM(v, a)
	r.initialized(v)
	a, err = r.status(r.Ctx, m)
	if err != nil {
		r.Fatalf("GetMachineStatus of a VM that was initialized: %v", err)
	}
	r.sameVM(v, a)
}

// initialized initializes a VM. That must succeed.
func (r *trial) initialized(v vm) {
	r.Helper()
	a, err := r.initialize(r.Ctx, v.machine)
	r.supports(codes.InitializeMachine, err)
	if err != nil {
		r.Fatalf("InitializeMachine: %v", err)
	}
	if a != nil && (a.ProviderID != "" && a.ProviderID != v.id || a.NodeName != "" && a.NodeName != v.node) {
		r.Errorf("CreateMachine answered VM %q with node %q, InitializeMachine %q with %q",
			v.id, v.node, a.ProviderID, a.NodeName)
	}
	r.Settled()
}

var initializeChecks = []check{
	{"is idempotent", initializeIsIdempotent},
	{"of an absent VM is NotFound", initializeAbsent},
}

func initializeIsIdempotent(r *trial) {
	v := r.created(r.machine())
	r.Settled()
	for range 3 {
		r.initialized(v)
		if _, err := r.status(r.Ctx, v.machine); err != nil && codes.Of(err) != codes.Unimplemented {
			r.Errorf("GetMachineStatus of a VM that was initialized: %v", err)
		}
	}
	r.only(v.machine, "InitializeMachine makes no VM", v)
	r.total(1, "InitializeMachine makes no VM")
}

func initializeAbsent(r *trial) {
	_, err := r.initialize(r.Ctx, r.machine())
	r.supports(codes.InitializeMachine, err)
	r.absent(codes.InitializeMachine, err)
	r.total(0, "InitializeMachine makes no VM")
}
