package drivertest

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/conformance"
)

// These checks lose an answer: a call took effect at the provider and its answer was lost, because a
// connection broke or the process died.

var lostAnswerChecks = []check{
	{"of a create: the next one adopts", createLost},
	{"of a create: the VM can be deleted", createLostThenDeleted},
	{"of a delete: the next one is OK", deleteLost},
	{"of an initialization: the next one is OK", initializeLost},
}

// lose makes the next such call take effect and fail.
func (r *trial) lose(call codes.Call) {
	r.Helper()
	err := codes.New(codes.Unavailable, "the answer was lost")
	if hook, ok := driver.As[driver.FaultHook](r.setup.Driver); ok {
		hook.FailAfter(call, err)
		return
	}
	r.setup.Driver = driver.Intercept(r.setup.Driver, conformance.Lose(call, err))
}

// lost requires that the call whose answer should be lost failed.
func (r *trial) lost(call codes.Call, err error) {
	r.Helper()
	if codes.Of(err) != codes.Unavailable {
		r.Fatalf("the fault hook did not make %s fail with %s (%v)", call, codes.Unavailable, err)
	}
	r.Settled()
}

func createLost(r *trial) {
	const duty = "a create whose answer was lost is repeated, and adopts what it made"
	for i := range 2 {
		m := r.machine()
		r.lose(codes.CreateMachine)
		a, err := r.create(r.Ctx, m)
		r.lost(codes.CreateMachine, err)
		if a != nil && i > 0 { // the first time, the note is lost as well
			m.Status.LastKnown = a.LastKnownState
		}
		r.total(i+1, "the lost create took effect")
		r.only(m, duty, r.created(m))
		r.total(i+1, duty)
	}
}

func createLostThenDeleted(r *trial) {
	const duty = "what a lost create made is deleted by name"
	m := r.machine()
	r.lose(codes.CreateMachine)
	_, err := r.create(r.Ctx, m)
	r.lost(codes.CreateMachine, err)
	r.deleted(m)
	r.only(m, duty)
	r.total(0, duty)
}

func deleteLost(r *trial) {
	const duty = "a delete whose answer was lost is repeated"
	v := r.created(r.machine())
	r.Settled()
	r.lose(codes.DeleteMachine)
	_, err := r.delete(r.Ctx, v.machine)
	r.lost(codes.DeleteMachine, err)
	r.deleted(v.machine)
	r.gone(v, duty)
	r.total(0, duty)
}

func initializeLost(r *trial) {
	v := r.created(r.machine())
	r.Settled()
	_, err := r.initialize(r.Ctx, r.machine())
	r.supports(codes.InitializeMachine, err)
	r.lose(codes.InitializeMachine)
	_, err = r.initialize(r.Ctx, v.machine)
	r.lost(codes.InitializeMachine, err)
	r.initialized(v)
	if _, err := r.status(r.Ctx, v.machine); err != nil && codes.Of(err) != codes.Unimplemented {
		r.Errorf("GetMachineStatus of a VM that was initialized: %v", err)
	}
}
