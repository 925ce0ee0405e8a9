package pooldrivertest

import (
	"context"
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver/conformance"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
)

// The calls of a trial. They go to the driver under test through conformance.Call.

// request returns what each request has, a new one each time.
func (r *trial) request(p *machinepool.Pool, c *machine.Class) pooldriver.Request {
	return pooldriver.Request{Pool: p.Clone(), Class: c.Clone(), Secret: r.secretOf(r.setup.Secret)}
}

func (r *trial) secretOf(s *machine.Secret) *machine.Secret {
	if s == nil {
		return nil
	}
	return s.Clone()
}

func (r *trial) createOf(
	ctx context.Context, p *machinepool.Pool, c *machine.Class, n int32,
) (*pooldriver.Response, error) {
	return conformance.Call(ctx, r.Trial, machinepool.CreatePool, r.driver.CreatePool, func() *pooldriver.CreatePoolRequest {
		return &pooldriver.CreatePoolRequest{Request: r.request(p, c), Replicas: n, Bootstrap: r.secretOf(r.setup.Bootstrap)}
	})
}

func (r *trial) updateOf(ctx context.Context, p *machinepool.Pool, c *machine.Class) (*pooldriver.Response, error) {
	return conformance.Call(ctx, r.Trial, machinepool.UpdatePool, r.driver.UpdatePool, func() *pooldriver.UpdatePoolRequest {
		return &pooldriver.UpdatePoolRequest{Request: r.request(p, c), Bootstrap: r.secretOf(r.setup.Bootstrap)}
	})
}

func (r *trial) scaleOf(
	ctx context.Context, p *machinepool.Pool, c *machine.Class, n int32,
) (*pooldriver.Response, error) {
	return conformance.Call(ctx, r.Trial, machinepool.ScalePool, r.driver.ScalePool, func() *pooldriver.ScalePoolRequest {
		return &pooldriver.ScalePoolRequest{Request: r.request(p, c), To: n}
	})
}

func (r *trial) statusOf(
	ctx context.Context, p *machinepool.Pool, c *machine.Class,
) (*pooldriver.GetPoolStatusResponse, error) {
	return conformance.Call(ctx, r.Trial, machinepool.GetPoolStatus, r.driver.GetPoolStatus, func() *pooldriver.GetPoolStatusRequest {
		return &pooldriver.GetPoolStatusRequest{Request: r.request(p, c)}
	})
}

// deleteOf repeats the call while the group is being deleted.
func (r *trial) deleteOf(ctx context.Context, p *machinepool.Pool, c *machine.Class) (a *pooldriver.Response, err error) {
	for range 100 {
		a, err = conformance.Call(ctx, r.Trial, machinepool.DeletePool, r.driver.DeletePool, func() *pooldriver.DeletePoolRequest {
			return &pooldriver.DeletePoolRequest{Request: r.request(p, c)}
		})
		if codes.Of(err) != codes.Aborted {
			return a, err
		}
		r.Settled()
	}
	return a, err
}

func (r *trial) removeOf(
	ctx context.Context, p *machinepool.Pool, c *machine.Class, ids ...string,
) (*pooldriver.Response, error) {
	return conformance.Call(ctx, r.Trial, machinepool.DeleteInstances, r.driver.DeleteInstances, func() *pooldriver.DeleteInstancesRequest {
		return &pooldriver.DeleteInstancesRequest{Request: r.request(p, c), ProviderIDs: slices.Clone(ids)}
	})
}

func (r *trial) replaceOf(
	ctx context.Context, p *machinepool.Pool, c *machine.Class, id string,
) (*pooldriver.Response, error) {
	return conformance.Call(ctx, r.Trial, machinepool.ReplaceInstance, r.driver.ReplaceInstance, func() *pooldriver.ReplaceInstanceRequest {
		return &pooldriver.ReplaceInstanceRequest{Request: r.request(p, c), ProviderID: id}
	})
}

func (r *trial) drainedOf(
	ctx context.Context, p *machinepool.Pool, c *machine.Class, ids ...string,
) (*pooldriver.Response, error) {
	return conformance.Call(ctx, r.Trial, machinepool.InstancesDrained, r.driver.InstancesDrained, func() *pooldriver.InstancesDrainedRequest {
		return &pooldriver.InstancesDrainedRequest{Request: r.request(p, c), ProviderIDs: slices.Clone(ids)}
	})
}

// fine requires that a call succeeded.
func (r *trial) fine(call machinepool.Call, err error) {
	r.Helper()
	if err != nil {
		r.Errorf("%s: %v", call, err)
	}
}

// missing requires NOT_FOUND.
func (r *trial) missing(call machinepool.Call, err error, duty string) {
	r.Helper()
	if got := codes.Of(err); got != codes.NotFound {
		r.Errorf("%s answers %s, not %s (%v): %s", call, got, codes.NotFound, err, duty)
	}
}
