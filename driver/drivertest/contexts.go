package drivertest

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/codes"
)

var contextChecks = []check{
	{"a canceled call ends", func(r *trial) {
		ctx, cancel := context.WithCancel(r.Ctx)
		cancel()
		r.over(ctx, codes.Canceled)
	}},
	{"a call past its deadline ends", func(r *trial) {
		ctx, cancel := context.WithDeadline(r.Ctx, time.Unix(0, 0))
		defer cancel()
		r.over(ctx, codes.DeadlineExceeded)
	}},
	{"a create is cut off by its deadline", cutOff},
	{"a call under way ends", underWay},
}

// over makes calls whose context has ended. Each may still do its work; otherwise it must answer code,
// and a later call must complete the work.
func (r *trial) over(ctx context.Context, code codes.Code) {
	v := r.created(r.machine())
	r.Settled()
	r.overReads(ctx, code, v)

	m := r.machine()
	a, err := r.create(ctx, m)
	r.ended(codes.CreateMachine, err, nil, code)
	if err == nil && a != nil {
		r.present(record(m, a), "CreateMachine answered OK")
	}
	r.Settled()
	late := r.created(m)
	r.only(m, "a create after one that was given up leaves one VM", late)
	r.total(2, "a create after one that was given up leaves one VM")

	_, err = r.delete(ctx, v.machine)
	r.ended(codes.DeleteMachine, err, nil, code)
	if err == nil {
		r.gone(v, "DeleteMachine answered OK")
	}
	r.Settled()
	r.deleted(v.machine)
	r.gone(v, "DeleteMachine answered OK")
}

// overReads makes the calls that change no VM, and compares their codes with those of the same calls
// with a context that goes on.
func (r *trial) overReads(ctx context.Context, code codes.Code, v vm) {
	_, err := r.status(ctx, v.machine)
	_, lasting := r.status(r.Ctx, v.machine)
	r.ended(codes.GetMachineStatus, err, lasting, code)
	_, err = r.list(ctx, r.setup.Class)
	_, lasting = r.list(r.Ctx, r.setup.Class)
	r.ended(codes.ListMachines, err, lasting, code)
	_, err = r.volumes(ctx, nil)
	_, lasting = r.volumes(r.Ctx, nil)
	r.ended(codes.GetVolumeIDs, err, lasting, code)
	_, err = r.initialize(ctx, v.machine)
	_, lasting = r.initialize(r.Ctx, v.machine)
	r.ended(codes.InitializeMachine, err, lasting, code)
	spec := r.setup.Class.ProviderSpec
	_, err = r.update(ctx, v.machine, spec, spec)
	_, lasting = r.update(r.Ctx, v.machine, spec, spec)
	r.ended(codes.UpdateMachine, err, lasting, code)
}

// ended requires that a call whose context had ended answered want, or the same code as with a context
// that goes on.
func (r *trial) ended(call codes.Call, err, lasting error, want codes.Code) {
	r.Helper()
	if got, done := codes.Of(err), codes.Of(lasting); got != want && got != done {
		r.Errorf("%s answers %s when its context is over, neither %s nor %s (%v)", call, got, want, done, err)
	}
}

// cutOff lets the deadline pass before, during or after the call. The test can't know which.
func cutOff(r *trial) {
	const duty = "a create after one that was cut off leaves one VM"
	for _, limit := range []time.Duration{time.Microsecond, 100 * time.Microsecond, 5 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(r.Ctx, limit)
		m := r.machine()
		if limit == time.Microsecond {
			<-ctx.Done()
		}
		_, err := r.create(ctx, m)
		cancel()
		r.ended(codes.CreateMachine, err, nil, codes.DeadlineExceeded)
		r.Settled()
		r.only(m, duty, r.created(m))
	}
	r.total(3, duty)
}

// underWay ends the context of a call while one of its requests hangs. Without Faults it needs a create
// that is slow by itself.
func underWay(r *trial) {
	if r.setup.Faults == nil {
		r.slowCreate()
		return
	}
	type call = func(ctx context.Context) error
	r.hanging(codes.CreateMachine, func() call {
		m := r.machine()
		return func(ctx context.Context) error { _, err := r.create(ctx, m); return err }
	})
	r.hanging(codes.DeleteMachine, func() call {
		v := r.created(r.machine())
		r.Settled()
		return func(ctx context.Context) error { _, err := r.delete(ctx, v.machine); return err }
	})
	v := r.created(r.machine())
	r.Settled()
	r.hanging(codes.GetMachineStatus, func() call {
		return func(ctx context.Context) error { _, err := r.status(ctx, v.machine); return err }
	})
	r.hanging(codes.ListMachines, func() call {
		return func(ctx context.Context) error { _, err := r.list(ctx, r.setup.Class); return err }
	})
}

// hanging makes a call once for each of its HTTP requests. That request hangs until the context is
// canceled.
func (r *trial) hanging(call codes.Call, prepared func() func(ctx context.Context) error) {
	r.Helper()
	for at := 0; at < mostRequests && !r.Failed(); at++ {
		do := prepared()
		ctx, cancel := context.WithCancel(r.Ctx)
		f := r.setup.Faults.arm(held, at)
		ended := make(chan struct{})
		go func() {
			defer cancel()
			select {
			case <-f.met:
			case <-ended:
			}
		}()
		err := do(ctx)
		close(ended)
		r.setup.Faults.disarm(f)
		if !f.wasMet() {
			if codes.Of(err) != codes.Unimplemented {
				r.reached(call, at)
			}
			return
		}
		r.ended(call, err, nil, codes.Canceled)
	}
}

// slowCreate cuts off a create that takes longer than Prompt allows after the end of a context.
func (r *trial) slowCreate() {
	r.Helper()
	began := time.Now()
	r.created(r.machine())
	took := time.Since(began)
	if took < 2*r.Prompt {
		r.NotRun("no call lasts long enough: Setup has no Faults, and a create of less than twice Suite.Prompt (%v) proves nothing", r.Prompt)
	}
	ctx, cancel := context.WithTimeout(r.Ctx, took/4)
	defer cancel()
	_, err := r.create(ctx, r.machine())
	r.ended(codes.CreateMachine, err, nil, codes.DeadlineExceeded)
}
