package controllers_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
)

// maker makes bootstrap data whose token is about to expire until it is renewed.
type maker struct {
	mu      sync.Mutex
	renewed time.Time
	deleted bool
}

// Look implements manager.PoolBootstrap.
func (m *maker) Look(context.Context, *machinepool.Pool) (machinepool.BootstrapAnswer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	expires := m.renewed
	if expires.IsZero() {
		expires = time.Now().Add(time.Minute)
	}
	return machinepool.BootstrapAnswer{Ready: true, Found: true, TokenExpires: expires}, nil
}

// Data implements manager.PoolBootstrap.
func (m *maker) Data(context.Context, *machinepool.Pool) (*machine.Secret, error) {
	return &machine.Secret{Data: map[string][]byte{"userData": []byte("made")}}, nil
}

// Renew implements manager.PoolBootstrap.
func (m *maker) Renew(_ context.Context, _ *machinepool.Pool, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renewed = until
	return nil
}

// Delete implements manager.PoolBootstrap.
func (m *maker) Delete(context.Context, *machinepool.Pool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deleted = true
	return nil
}

// recording remembers the requests with which groups are made.
type recording struct {
	pooldriver.Driver
	mu   sync.Mutex
	data string
}

// Unwrap returns the driver that is decorated.
func (r *recording) Unwrap() pooldriver.Driver { return r.Driver }

// CreatePool implements pooldriver.Driver.
func (r *recording) CreatePool(ctx context.Context, req *pooldriver.CreatePoolRequest) (*pooldriver.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if req.Bootstrap != nil {
		r.data = string(req.Bootstrap.Data["userData"])
	}
	return r.Driver.CreatePool(ctx, req)
}

// TestPoolBootstrapIsMade: the manager asks the maker for bootstrap data, has their token renewed
// by the policy, and has them deleted after the group.
func TestPoolBootstrapIsMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	m, r := &maker{}, &recording{Driver: w.provider}
	w.class("small", "s")
	p := w.machinePool("web", "small", 1)
	w.merge(p, `{"spec":{"template":{"bootstrap":{"config":"maker","dataSecret":"made-by-none"}}}}`)
	w.manage(func(o *controllers.Options) {
		o.PoolDriver, o.PoolBootstrap, o.PoolPolicy = r, m, quickPools()
		o.PoolPolicy.TokenTTL = time.Hour
	})
	w.eventually("one machine", w.running("web", 1))
	m.mu.Lock()
	require.Greater(t, time.Until(m.renewed), 50*time.Minute, "the policy says for how long")
	require.False(t, m.deleted)
	m.mu.Unlock()
	require.NoError(t, w.client.Delete(t.Context(), p))
	w.eventually("the pool to go", w.gone(p))
	require.True(t, m.deleted)
	require.Equal(t, "made", r.data)
}
