package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// PoolRefusal is a call about a group that the provider refused with a code.
type PoolRefusal struct {
	Call machinepool.Call
	Code codes.Code
}

// keepPools makes a process reconcile pools.
func (p *process) keepPools(o *manager.Options) {
	w := p.w
	if w.o.Pools == nil {
		return
	}
	o.Pools, o.PoolBootstrap = open(p, w.pools), bootstrapper{p}
	d := pooldriver.Driver(w.groups)
	if w.o.PoolDriver != nil {
		d = w.o.PoolDriver(w)
	}
	o.PoolDriver = pooldriver.Intercept(watchedPools{d, w}, p.poolStep)
}

// poolStep takes one call to the pool driver through what may happen to it.
func (p *process) poolStep(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
	w := p.w
	if p.dead {
		return errDead // no caller is alive
	}
	w.clock.pause(w.o.Faults.CallTime/2 + w.upTo(w.o.Faults.CallTime/2))
	if p.dead {
		if w.happens(w.o.Faults.Late) {
			w.latePool(ctx, next)
		}
		return errDead
	}
	p.calls++
	w.steps++
	call, _ := s.Method.(machinepool.Call)
	w.poolCalls[call]++
	outcome := p.outcome()
	switch outcome {
	case killedLate:
		w.latePool(ctx, next)
		fallthrough
	case killedBefore:
		p.kill()
		return errDead
	}
	if err := w.poolRefusal(s); err != nil {
		return err
	}
	err := w.providePool(ctx, next)
	if outcome == killedAfter {
		p.kill()
		return errDead
	}
	if err == nil && w.happens(w.o.Faults.LostCall) {
		w.count(CallAnswerLost)
		err = codes.New(codes.DeadlineExceeded, "the answer was lost")
	}
	w.clock.pause(w.latency())
	if p.dead {
		return errDead
	}
	if g := w.groups.all[s.Object]; err == nil && g != nil && call == machinepool.GetPoolStatus {
		g.told(w.clock.now)
	}
	return err
}

// mute is how long a group that drains may go without a status read before that counts as an outage
// of the group. The manager reads it every few seconds.
const mute = 5 * time.Minute

// told records that a process has read the status of a group.
func (g *group) told(now time.Time) {
	if !g.looked.IsZero() && now.Sub(g.looked) > mute {
		g.backSince = now
	}
	g.looked = now
}

// providePool carries a call out.
func (w *World) providePool(ctx context.Context, next func(context.Context) error) error {
	w.acting = true
	err := next(ctx)
	w.acting = false
	w.changed()
	w.check()
	return err
}

// latePool carries out a call whose caller has died.
func (w *World) latePool(ctx context.Context, next func(context.Context) error) {
	ctx = context.WithoutCancel(ctx)
	w.clock.after(w.upTo(w.o.Faults.LateBy), func() {
		w.count(CallLate)
		w.belated = true
		_ = w.providePool(ctx, next) // no caller gets the answer
		w.belated = false
	})
}

// poolRefusal is an error instead of the call; nil: it is carried out.
func (w *World) poolRefusal(s driver.CallInfo) error {
	call, _ := s.Method.(machinepool.Call)
	if w.happens(w.o.Faults.Call) {
		w.count(CallFailed)
		all := w.o.Faults.Codes
		if all == nil {
			all = commonCodes
		}
		code := all[w.chance(len(all))]
		if code == codes.NotFound && (call == machinepool.DeletePool || call == machinepool.GetPoolStatus) {
			code = codes.Unavailable // it would be a lie
		}
		w.poolRefusals[PoolRefusal{call, code}]++
		return codes.New(code, "a fault of the simulated provider")
	}
	if w.clock.now.Before(w.groups.silent) {
		w.count(CallFailed)
		w.poolRefusals[PoolRefusal{call, codes.Unavailable}]++
		return codes.New(codes.Unavailable, "the simulated provider does not answer")
	}
	if g := w.groups.all[s.Object]; g != nil && call == machinepool.GetPoolStatus && w.clock.now.Sub(g.made) < w.o.Faults.Eventually {
		w.count(StatusLagged)
		return codes.New(codes.NotFound, "the simulated provider does not see it yet")
	}
	return nil
}

// watchedPools is a pool driver that tells of each request.
type watchedPools struct {
	pooldriver.Driver
	w *World
}

// Unwrap returns the driver that is watched.
func (d watchedPools) Unwrap() pooldriver.Driver { return d.Driver }

// CreatePool implements pooldriver.Driver. One that is carried out for a pool that
// is gone leaves a group without a pool: the manager has to find it.
func (d watchedPools) CreatePool(ctx context.Context, req *pooldriver.CreatePoolRequest) (*pooldriver.Response, error) {
	w := d.w
	w.emit(poolCalled{pool: req.Pool, call: machinepool.CreatePool, to: req.Replicas})
	if w.belated && w.goingPool(req.Pool.Key) || w.facts.forgotten[req.Pool.UID] {
		w.ownerlessGroup(req.Pool.Key)
	}
	return d.Driver.CreatePool(ctx, req)
}

// ownerlessGroup expects a group of a pool that is gone. If no manager looks for such groups, a
// person does.
func (w *World) ownerlessGroup(k object.Key) {
	w.facts.lateGroups[k] = true
	m := &w.o.Manager
	if m.SafetyPolicy != nil && !m.Observe && w.o.PoolDriver == nil {
		return
	}
	w.clock.after(10*time.Minute, func() {
		delete(w.facts.lateGroups, k)
		if g := w.groups.all[k]; g != nil && w.goingPool(k) {
			w.groups.lose(g)
		}
	})
}

// ScalePool implements pooldriver.Driver.
func (d watchedPools) ScalePool(ctx context.Context, req *pooldriver.ScalePoolRequest) (*pooldriver.Response, error) {
	d.w.emit(poolCalled{pool: req.Pool, call: machinepool.ScalePool, to: req.To})
	return d.Driver.ScalePool(ctx, req)
}

// DeletePool implements pooldriver.Driver.
func (d watchedPools) DeletePool(ctx context.Context, req *pooldriver.DeletePoolRequest) (*pooldriver.Response, error) {
	d.w.emit(poolCalled{pool: req.Pool, call: machinepool.DeletePool})
	return d.Driver.DeletePool(ctx, req)
}

// DeleteInstances implements pooldriver.Driver.
func (d watchedPools) DeleteInstances(ctx context.Context, req *pooldriver.DeleteInstancesRequest) (*pooldriver.Response, error) {
	d.w.emit(poolCalled{pool: req.Pool, call: machinepool.DeleteInstances, ids: req.ProviderIDs})
	return d.Driver.DeleteInstances(ctx, req)
}

// ReplaceInstance implements pooldriver.Driver.
func (d watchedPools) ReplaceInstance(ctx context.Context, req *pooldriver.ReplaceInstanceRequest) (*pooldriver.Response, error) {
	d.w.emit(poolCalled{pool: req.Pool, call: machinepool.ReplaceInstance, ids: []string{req.ProviderID}})
	return d.Driver.ReplaceInstance(ctx, req)
}

// InstancesDrained implements pooldriver.Driver.
func (d watchedPools) InstancesDrained(ctx context.Context, req *pooldriver.InstancesDrainedRequest) (*pooldriver.Response, error) {
	d.w.emit(poolCalled{pool: req.Pool, call: machinepool.InstancesDrained, ids: req.ProviderIDs})
	return d.Driver.InstancesDrained(ctx, req)
}

// poolCalled: a process calls the driver of groups about a pool. to is the size that it orders,
// ids are the instances that are to go.
type poolCalled struct {
	pool *machinepool.Pool
	call machinepool.Call
	to   int32
	ids  []string
}
