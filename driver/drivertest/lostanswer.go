package drivertest

import (
	"context"
	"sync"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
)

// The effects of a lost answer: a call took effect at the provider and its answer was lost, because
// a connection broke or the process died.

var lostAnswerChecks = []check{
	{"of a create: the next one adopts", createLost},
	{"of a create: the VM can be deleted", createLostThenDeleted},
	{"of a delete: the next one is OK", deleteLost},
	{"of an initialization: the next one is OK", initializeLost},
}

// lose makes the next such call take effect and fail.
func (r *trial) lose(call codes.Call) {
	r.Helper()
	hook, ok := driver.As[driver.FaultHook](r.setup.Driver)
	if !ok {
		hook = r.forgetful()
	}
	hook.FailAfter(call, codes.New(codes.Unavailable, "the answer was lost"))
}

// forgetful wraps the driver in a FaultHook.
func (r *trial) forgetful() driver.FaultHook {
	f := &forgetful{lost: faults{}}
	f.Driver = driver.Intercept(r.setup.Driver, f.lose)
	r.setup.Driver = f
	return f
}

// forgetful loses answers of a driver.
type forgetful struct {
	driver.Driver

	mu   sync.Mutex
	lost faults
}

// Unwrap returns the driver that does the work.
func (f *forgetful) Unwrap() driver.Driver { return f.Driver }

// FailAfter implements driver.FaultHook.
func (f *forgetful) FailAfter(call codes.Call, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost.add(call, err)
}

func (f *forgetful) lose(ctx context.Context, call driver.CallInfo, next func(context.Context) error) error {
	if err := next(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	method, _ := call.Method.(codes.Call)
	return f.lost.take(method)
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
