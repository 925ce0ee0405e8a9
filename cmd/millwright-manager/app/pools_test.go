package app

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// both is a driver of machines and pools. Its calls for pools take a second.
type both struct {
	driver.Unimplemented
	pooldriver.UnimplementedPools
	left time.Duration // until the deadline of the last call
}

// GetPoolStatus implements pooldriver.Driver.
func (b *both) GetPoolStatus(ctx context.Context, _ *pooldriver.GetPoolStatusRequest) (*pooldriver.GetPoolStatusResponse, error) {
	deadline, _ := ctx.Deadline()
	b.left = time.Until(deadline)
	<-time.After(time.Second)
	return &pooldriver.GetPoolStatusResponse{}, nil
}

// PoolFeatures implements pooldriver.Featured.
func (b *both) PoolFeatures() machinepool.Features {
	return machinepool.Features{DeleteInstances: true}
}

// TestPoolsOfADriver: a driver that supports pools is used for them, even if it is wrapped, unless the
// setting pools is false.
func TestPoolsOfADriver(t *testing.T) {
	decorated := driver.Intercept(&both{}, driver.Hook(nil, func(context.Context, driver.Call) {}))
	for _, c := range []struct {
		driver driver.Driver
		args   []string
		found  bool
	}{
		{&both{}, nil, true}, {decorated, nil, true}, {&both{}, []string{"--pools"}, true}, {&both{}, []string{"--kinds=pool"}, true},
		{&both{}, []string{"--kinds=machine"}, true}, // pools are read, so that their nodes don't count as unmanaged
		{&both{}, []string{"--no-pools"}, false}, {driver.Unimplemented{}, nil, false},
	} {
		o, err := readArgs(t, append(c.args, "--no-target")...).options(c.driver, Clusters{}, nil)
		require.NoError(t, err)
		require.Equal(t, c.found, o.PoolDriver != nil, "%v", c.args)
		if c.found {
			require.True(t, pooldriver.FeaturesOf(o.PoolDriver).DeleteInstances)
		}
	}
}

// TestKindWithoutPools: the kind pool is an error if the driver supports no pools, or they are turned off.
func TestKindWithoutPools(t *testing.T) {
	for _, c := range []struct {
		driver driver.Driver
		args   []string
	}{{driver.Unimplemented{}, nil}, {&both{}, []string{"--no-pools"}}} {
		r := readArgs(t, append(c.args, "--kinds=machine,pool", "--no-target")...)
		_, err := r.options(c.driver, Clusters{}, nil)
		require.ErrorIs(t, err, ErrSettings)
		require.EqualError(t, r.sourced(err), "kinds (from a flag): pool is not reconciled: the driver makes no groups, or pools is false")
	}
	require.Equal(t, "millwright-manager-pool", readArgs(t, "--kinds=pool").settings.lease())
}

// TestPoolLimits: calls for pools and machines share the limit. The timeout of a call begins after the
// wait.
func TestPoolLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &both{}
		machines, pools := readArgs(t, "--driver-qps=0.5", "--driver-burst=1", "--driver-timeout=90s").settings.limited(b)
		began := time.Now()
		_, err := machines.ListMachines(t.Context(), &driver.ListMachinesRequest{})
		require.Equal(t, codes.Unimplemented, codes.Of(err))
		_, err = pools.GetPoolStatus(t.Context(), &pooldriver.GetPoolStatusRequest{Request: pooldriver.Request{
			Pool: &machinepool.Pool{Meta: object.Meta{Key: object.Key{Name: "p"}}},
		}})
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Equal(t, 90*time.Second, b.left)
	})
}

// TestPoolSettings: an error about the pool policy names the setting.
func TestPoolSettings(t *testing.T) {
	r, err := sources{args: []string{"--pool-poll=10ms"}}.read(t.TempDir(), nil)
	require.EqualError(t, err, "pool-poll (from a flag): must be at least a second")
	require.NotNil(t, r)
	require.Contains(t, kinds, string(manager.KindPool))
}
