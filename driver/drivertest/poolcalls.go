package drivertest

import (
	"context"
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
)

// The calls of a poolTrial. They go to the driver under test by way of watch.

// request is what each request has, made anew each time.
func (r *poolTrial) request(p *machinepool.Pool, c *machine.Class) driver.PoolRequest {
	return driver.PoolRequest{Pool: p.Clone(), Class: c.Clone(), Secret: r.secretOf(r.setup.Secret)}
}

func (r *poolTrial) secretOf(s *machine.Secret) *machine.Secret {
	if s == nil {
		return nil
	}
	return s.Clone()
}

func (r *poolTrial) createOf(
	ctx context.Context, p *machinepool.Pool, c *machine.Class, n int32,
) (*driver.PoolResponse, error) {
	return watch(ctx, r.trial, machinepool.CreatePool, r.driver.CreatePool, func() *driver.CreatePoolRequest {
		return &driver.CreatePoolRequest{PoolRequest: r.request(p, c), Replicas: n, Bootstrap: r.secretOf(r.setup.Bootstrap)}
	})
}

func (r *poolTrial) updateOf(ctx context.Context, p *machinepool.Pool, c *machine.Class) (*driver.PoolResponse, error) {
	return watch(ctx, r.trial, machinepool.UpdatePool, r.driver.UpdatePool, func() *driver.UpdatePoolRequest {
		return &driver.UpdatePoolRequest{PoolRequest: r.request(p, c), Bootstrap: r.secretOf(r.setup.Bootstrap)}
	})
}

func (r *poolTrial) scaleOf(
	ctx context.Context, p *machinepool.Pool, c *machine.Class, n int32,
) (*driver.PoolResponse, error) {
	return watch(ctx, r.trial, machinepool.ScalePool, r.driver.ScalePool, func() *driver.ScalePoolRequest {
		return &driver.ScalePoolRequest{PoolRequest: r.request(p, c), To: n}
	})
}

func (r *poolTrial) statusOf(
	ctx context.Context, p *machinepool.Pool, c *machine.Class,
) (*driver.GetPoolStatusResponse, error) {
	return watch(ctx, r.trial, machinepool.GetPoolStatus, r.driver.GetPoolStatus, func() *driver.GetPoolStatusRequest {
		return &driver.GetPoolStatusRequest{PoolRequest: r.request(p, c)}
	})
}

// deleteOf repeats the call for as long as the group is said to be going.
func (r *poolTrial) deleteOf(ctx context.Context, p *machinepool.Pool, c *machine.Class) (a *driver.PoolResponse, err error) {
	for range 100 {
		a, err = watch(ctx, r.trial, machinepool.DeletePool, r.driver.DeletePool, func() *driver.DeletePoolRequest {
			return &driver.DeletePoolRequest{PoolRequest: r.request(p, c)}
		})
		if codes.Of(err) != codes.Aborted {
			return a, err
		}
		r.settle()
	}
	return a, err
}

func (r *poolTrial) removeOf(
	ctx context.Context, p *machinepool.Pool, c *machine.Class, ids ...string,
) (*driver.PoolResponse, error) {
	return watch(ctx, r.trial, machinepool.DeleteInstances, r.driver.DeleteInstances, func() *driver.DeleteInstancesRequest {
		return &driver.DeleteInstancesRequest{PoolRequest: r.request(p, c), ProviderIDs: slices.Clone(ids)}
	})
}

func (r *poolTrial) replaceOf(
	ctx context.Context, p *machinepool.Pool, c *machine.Class, id string,
) (*driver.PoolResponse, error) {
	return watch(ctx, r.trial, machinepool.ReplaceInstance, r.driver.ReplaceInstance, func() *driver.ReplaceInstanceRequest {
		return &driver.ReplaceInstanceRequest{PoolRequest: r.request(p, c), ProviderID: id}
	})
}

func (r *poolTrial) drainedOf(
	ctx context.Context, p *machinepool.Pool, c *machine.Class, ids ...string,
) (*driver.PoolResponse, error) {
	return watch(ctx, r.trial, machinepool.InstancesDrained, r.driver.InstancesDrained, func() *driver.InstancesDrainedRequest {
		return &driver.InstancesDrainedRequest{PoolRequest: r.request(p, c), ProviderIDs: slices.Clone(ids)}
	})
}

// fine requires that a call succeeded.
func (r *poolTrial) fine(call machinepool.Call, err error) {
	r.Helper()
	if err != nil {
		r.Errorf("%s: %v", call, err)
	}
}

// missing requires NOT_FOUND.
func (r *poolTrial) missing(call machinepool.Call, err error, duty string) {
	r.Helper()
	if got := codes.Of(err); got != codes.NotFound {
		r.Errorf("%s answers %s, not %s (%v): %s", call, got, codes.NotFound, err, duty)
	}
}
