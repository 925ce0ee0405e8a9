package pools_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// TestPoolSecretNamespaces: a pool whose class may not take its secret fails as a machine does: its status and an
// event say so, no call is made, and the pass does not fail.
func TestPoolSecretNamespaces(t *testing.T) {
	h := newOrphanWorld(t)
	class, err := h.classes.Get(t.Context(), object.Key{Namespace: "fleet", Name: "small"})
	require.NoError(t, err)
	class = class.Clone()
	class.CredentialsRef = &object.Key{Namespace: "vault", Name: "cloud"}
	_, err = h.classes.Update(t.Context(), class)
	require.NoError(t, err)
	h.process, err = manager.New(manager.Options{
		Policies: manager.Policies{Safety: safety.Off()},
		Store:    manager.Store{Machines: h.machines, Classes: h.classes, Secrets: h.secrets, Pools: h.pools},
		Driver:   drivertest.NewMemory(drivertest.MemoryOptions{}),
		Pools: manager.PoolOptions{
			Driver: pooldriver.Intercept(h.provider, func(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
				h.calls[s.Method]++
				return next(ctx)
			}),
			Bootstrap: h.boot,
		},
		Runtime: manager.Runtime{Now: func() time.Time { return h.now }}, Hooks: h.hooks,
		Classes: manager.ClassOptions{SecretNamespaces: []string{}},
	})
	require.NoError(t, err)
	h.boot.fuse = &testkit.Fuse{}
	l := &poolLife{poolWorld: h.poolWorld, process: h.process}
	l.runFor(time.Minute)
	const why = "class fleet/small refers to secret vault/cloud, and classes may not take secrets from namespace vault"
	p := l.pool()
	require.Equal(t, machinepool.PhaseFailed, p.Status.Phase)
	require.Contains(t, p.Status.FailureMessage, why)
	require.Equal(t, codes.InvalidArgument, p.Status.LastOperation.Code)
	require.Contains(t, h.reported[len(h.reported)-1], why)
	require.Empty(t, h.calls, "a call was made without its secret")
}

// TestNoCallRepeatsWhatPoolsBootFrom: no failed call of a pool reveals its bootstrap data, even if the request
// does not hold them.
func TestNoCallRepeatsWhatPoolsBootFrom(t *testing.T) {
	for _, call := range []machinepool.Call{machinepool.GetPoolStatus, machinepool.ScalePool, machinepool.DeletePool, machinepool.CreatePool} {
		l := startUnkilled(newPoolWorld(t))
		if call != machinepool.CreatePool {
			l.runFor(4 * time.Minute)
			l.settled(3)
		}
		l.provider.FailPoolNext(call, codes.New(codes.InvalidArgument, "can't boot: join-with-token-of-the-pool"))
		switch call {
		case machinepool.ScalePool:
			l.edit(func(p *machinepool.Pool) { n := int32(5); p.Spec.Replicas = &n })
		case machinepool.DeletePool:
			require.NoError(t, l.pools.Delete(t.Context(), poolKey, l.pool().UID))
		}
		said := ""
		for end := l.now.Add(15 * time.Minute); said == "" && l.now.Before(end); l.runFor(time.Second) {
			if p := l.pool(); p != nil {
				said = p.Status.FailureMessage + p.Status.LastOperation.Message
			}
		}
		require.Contains(t, said, "can't boot: [value of join]", call)
		require.NotContains(t, said, "join-with-token", call)
	}
}
