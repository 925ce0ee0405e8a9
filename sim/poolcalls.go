package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/groups"
)

// poolCalls are the calls to the provider about groups.
type poolCalls struct {
	*ground
	*stores
	groups       *groups.Provider
	silent       time.Time // until then no call is answered
	collects     bool      // the manager finds the groups of pools that are gone
	calls        map[machinepool.Call]int
	poolRefusals map[PoolRefusal]int
}

func newPoolCalls(g *ground, s *stores, p *groups.Provider, collects bool) *poolCalls {
	return &poolCalls{
		ground: g, stores: s, groups: p, collects: collects,
		calls: map[machinepool.Call]int{}, poolRefusals: map[PoolRefusal]int{},
	}
}

// changes returns how many calls that change a group were made so far.
func (c *poolCalls) changes() (n int) {
	for call, times := range c.calls {
		if call != machinepool.GetPoolStatus && call != machinepool.ListPools {
			n += times
		}
	}
	return n
}

// poolCalled: a process calls the driver of groups about a pool. to is the size that it orders,
// ids are the instances that are to go.
type poolCalled struct {
	pool *machinepool.Pool
	call machinepool.Call
	to   int32
	ids  []string
}

func (c *poolCalls) arrived(s driver.CallInfo) {
	call, _ := s.Method.(machinepool.Call)
	c.calls[call]++
}

func (c *poolCalls) provide(ctx context.Context, next func(context.Context) error) error {
	c.acting = true
	err := next(ctx)
	c.acting = false
	c.changed()
	c.check()
	return err
}

func (c *poolCalls) late(ctx context.Context, _ driver.CallInfo, next func(context.Context) error) {
	ctx = context.WithoutCancel(ctx)
	c.After(c.upTo(c.hazards.LateBy), func() {
		c.count(CallLate)
		c.belated = true
		_ = c.provide(ctx, next) // no caller gets the answer
		c.belated = false
	})
}

func (c *poolCalls) refusal(s driver.CallInfo) error {
	call, _ := s.Method.(machinepool.Call)
	asks := call == machinepool.GetPoolStatus
	code := c.refused(func(code codes.Code) bool { return code == codes.NotFound && (asks || call == machinepool.DeletePool) })
	if code != codes.OK {
		c.poolRefusals[PoolRefusal{call, code}]++
		return codes.New(code, "a fault of the simulated provider")
	}
	if c.Now().Before(c.silent) {
		c.count(CallFailed)
		c.poolRefusals[PoolRefusal{call, codes.Unavailable}]++
		return codes.New(codes.Unavailable, "the simulated provider does not answer")
	}
	if g := c.groups.Of(s.Object); g != nil && asks && c.Now().Sub(g.Made) < c.hazards.Eventually {
		c.count(StatusLagged)
		return codes.New(codes.NotFound, "the simulated provider does not see it yet")
	}
	return nil
}

// see forgets what was expected of a group that is gone.
func (c *poolCalls) see(e event) {
	if e, ok := e.(groups.Gone); ok {
		delete(c.lateGroups, e.Pool)
	}
}

// watchedPools is a pool driver that tells of each request.
type watchedPools struct {
	pooldriver.Driver
	calls *poolCalls
}

// Unwrap returns the driver that is watched.
func (d watchedPools) Unwrap() pooldriver.Driver { return d.Driver }

// CreatePool implements pooldriver.Driver. One that is carried out for a pool that
// is gone leaves a group without a pool: the manager has to find it.
func (d watchedPools) CreatePool(ctx context.Context, req *pooldriver.CreatePoolRequest) (*pooldriver.Response, error) {
	c := d.calls
	c.emit(poolCalled{pool: req.Pool, call: machinepool.CreatePool, to: req.Replicas})
	if c.belated && c.goingPool(req.Pool.Key) || c.forgotten[req.Pool.UID] {
		c.ownerlessGroup(req.Pool.Key)
	}
	return d.Driver.CreatePool(ctx, req)
}

// ownerlessGroup expects a group of a pool that is gone. If no manager looks for such groups, a
// person does.
func (c *poolCalls) ownerlessGroup(k object.Key) {
	c.lateGroups[k] = true
	if c.collects {
		return
	}
	c.After(10*time.Minute, func() {
		delete(c.lateGroups, k)
		if g := c.groups.Of(k); g != nil && c.goingPool(k) {
			c.groups.Lose(g)
		}
	})
}

// ScalePool implements pooldriver.Driver.
func (d watchedPools) ScalePool(ctx context.Context, req *pooldriver.ScalePoolRequest) (*pooldriver.Response, error) {
	d.calls.emit(poolCalled{pool: req.Pool, call: machinepool.ScalePool, to: req.To})
	return d.Driver.ScalePool(ctx, req)
}

// DeletePool implements pooldriver.Driver.
func (d watchedPools) DeletePool(ctx context.Context, req *pooldriver.DeletePoolRequest) (*pooldriver.Response, error) {
	d.calls.emit(poolCalled{pool: req.Pool, call: machinepool.DeletePool})
	return d.Driver.DeletePool(ctx, req)
}

// DeleteInstances implements pooldriver.Driver.
func (d watchedPools) DeleteInstances(ctx context.Context, req *pooldriver.DeleteInstancesRequest) (*pooldriver.Response, error) {
	d.calls.emit(poolCalled{pool: req.Pool, call: machinepool.DeleteInstances, ids: req.ProviderIDs})
	return d.Driver.DeleteInstances(ctx, req)
}

// ReplaceInstance implements pooldriver.Driver.
func (d watchedPools) ReplaceInstance(ctx context.Context, req *pooldriver.ReplaceInstanceRequest) (*pooldriver.Response, error) {
	d.calls.emit(poolCalled{pool: req.Pool, call: machinepool.ReplaceInstance, ids: []string{req.ProviderID}})
	return d.Driver.ReplaceInstance(ctx, req)
}

// InstancesDrained implements pooldriver.Driver.
func (d watchedPools) InstancesDrained(ctx context.Context, req *pooldriver.InstancesDrainedRequest) (*pooldriver.Response, error) {
	d.calls.emit(poolCalled{pool: req.Pool, call: machinepool.InstancesDrained, ids: req.ProviderIDs})
	return d.Driver.InstancesDrained(ctx, req)
}
