package controllers_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/bootstrap"
	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager"
)

// fakeBootstrap returns bootstrap data with a token that expires in a minute unless it is renewed.
type fakeBootstrap struct {
	mu      sync.Mutex
	renewed time.Time
	deleted bool
}

// State implements manager.PoolBootstrap.
func (m *fakeBootstrap) State(context.Context, *machinepool.Pool) (machinepool.BootstrapAnswer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	expires := m.renewed
	if expires.IsZero() {
		expires = time.Now().Add(time.Minute)
	}
	return machinepool.BootstrapAnswer{Ready: true, Found: true, TokenExpires: expires}, nil
}

// Data implements manager.PoolBootstrap.
func (m *fakeBootstrap) Data(context.Context, *machinepool.Pool) (*machine.Secret, error) {
	return &machine.Secret{Data: map[string][]byte{"userData": []byte("made")}}, nil
}

// Renew implements manager.PoolBootstrap.
func (m *fakeBootstrap) Renew(_ context.Context, _ *machinepool.Pool, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renewed = until
	return nil
}

// Delete implements manager.PoolBootstrap.
func (m *fakeBootstrap) Delete(context.Context, *machinepool.Pool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deleted = true
	return nil
}

// recording records the bootstrap data of CreatePool requests.
type recording struct {
	pooldriver.Driver
	mu   sync.Mutex
	data string
}

// Unwrap returns the decorated driver.
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

// TestPoolBootstrapIsMade: the manager asks PoolBootstrap for the data of a group, for the renewal of
// the token as the policy says, and for the deletion after the group.
func TestPoolBootstrapIsMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	m, r := &fakeBootstrap{}, &recording{Driver: w.provider}
	w.class("small", "s")
	p := w.machinePool("web", "small", 1)
	w.merge(p, `{"spec":{"template":{"bootstrap":{"config":"maker","dataSecret":"made-by-none"}}}}`)
	w.manage(func(o *controllers.Options) {
		o.PoolDriver, o.PoolBootstrap, o.PoolPolicy = r, m, quickPools()
		o.PoolPolicy.TokenTTL = time.Hour
	})
	w.eventually("one machine", w.running("web", 1))
	m.mu.Lock()
	require.Greater(t, time.Until(m.renewed), 50*time.Minute, "the token was not renewed for the policy's TokenTTL")
	require.False(t, m.deleted)
	m.mu.Unlock()
	require.NoError(t, w.client.Delete(t.Context(), p))
	w.eventually("the pool to be gone", w.gone(p))
	require.True(t, m.deleted)
	require.Equal(t, "made", r.data)
}

// TestPoolTokens: a pool whose user data has the placeholder of a bootstrap token gets one, also
// without PoolBootstrap. The token expires and is removed by the cluster. When the pool grows, the
// same token is created again. It is deleted with the pool.
func TestPoolTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	r := &recording{Driver: w.provider}
	w.class("small", "s")
	require.NoError(t, w.client.Create(t.Context(), &corev1.Secret{ObjectMeta: w.meta("join"), Data: map[string][]byte{
		"userData": []byte("join with <<BOOTSTRAP_TOKEN>>"),
	}}))
	p := w.machinePool("web", "small", 1)
	w.merge(p, `{"spec":{"template":{"bootstrap":{"dataSecret":"join"}}}}`)
	options := func(o *controllers.Options) { o.PoolDriver, o.PoolPolicy = r, quickPools() }
	stop := w.manage(options)
	w.eventually("one machine", w.running("web", 1))

	id := bootstrap.ID(manager.TokenOwner{UID: string(p.UID), Pool: true})
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id}}
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(token), token))
	secret := string(token.Data["token-secret"])
	require.Equal(t, "join with "+id+"."+secret, r.data)
	until, err := time.Parse(time.RFC3339, string(token.Data["expiration"]))
	require.NoError(t, err)
	require.InDelta(t, 15*time.Minute, time.Until(until), float64(5*time.Minute))
	require.NoError(t, w.client.Delete(t.Context(), token)) // as the token cleaner does

	stop()
	w.manage(options)
	w.merge(p, `{"spec":{"replicas":2}}`)
	w.eventually("two machines", w.running("web", 2))
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(token), token))
	require.Equal(t, secret, string(token.Data["token-secret"]))

	require.NoError(t, w.client.Delete(t.Context(), p))
	w.eventually("the pool to be gone", w.gone(p))
	w.eventually("its token to be gone", w.gone(token))
	w.eventually("the secret with the pool's token to be gone", w.gone(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "millwright-pool-token-" + id}}))
}
