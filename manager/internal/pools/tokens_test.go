package pools_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// poolTokenMaker makes the bootstrap tokens of a world of pools. It outlives managers.
type poolTokenMaker struct {
	w       *poolWorld
	tokens  map[string]string // by the pool's UID, from the first Ensure to Delete
	until   map[string]time.Time
	shown   string // the user data that the group has
	made    int
	ensured int
	fail    error
	slow    bool // machines take longer to start than a token is valid
}

// poolTokenMaker makes the pool's bootstrap data ask for a token. Machines join while the token of their group is
// valid.
func (w *poolWorld) poolTokenMaker() *poolTokenMaker {
	b := &poolTokenMaker{w: w, tokens: map[string]string{}, until: map[string]time.Time{}}
	_, err := w.secrets.Create(w.t.Context(), &machine.Secret{
		Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "boot"}},
		Data: map[string][]byte{machine.UserData: []byte("join <<BOOTSTRAP_TOKEN>> %3C%3CBOOTSTRAP_TOKEN%3E%3E")},
	})
	require.NoError(w.t, err)
	w.edit(func(p *machinepool.Pool) { p.Spec.Template.Bootstrap.Config = "" })
	w.options = func(o *manager.Options, f *testkit.Fuse) {
		o.Pools.Bootstrap, o.Tokens = nil, poolTokenPort{b, f}
		o.Pools.Driver = showing{o.Pools.Driver, b}
	}
	w.admits = func() bool {
		for uid, token := range b.tokens {
			if !b.slow && b.shown == "join "+token+" "+token && !w.now.After(b.until[uid]) {
				return true
			}
		}
		return false
	}
	return b
}

// poolTokenPort is the poolTokenMaker as one process sees it.
type poolTokenPort struct {
	b    *poolTokenMaker
	fuse *testkit.Fuse
}

func (t poolTokenPort) Ensure(_ context.Context, of manager.TokenOwner, until time.Time) (token manager.Token, err error) {
	return token, t.fuse.Do(func() error {
		if !of.Pool || of.Key != poolKey || of.UID == "" {
			t.b.w.t.Errorf("a token for %v", of)
		}
		if t.b.fail != nil {
			return t.b.fail
		}
		if t.b.tokens[of.UID] == "" {
			t.b.made++
			t.b.tokens[of.UID] = fmt.Sprintf("token-%d-of-the-pool", t.b.made)
		}
		t.b.ensured++
		if until.After(t.b.until[of.UID]) {
			t.b.until[of.UID] = until
		}
		token = manager.Token(t.b.tokens[of.UID])
		return nil
	})
}

func (t poolTokenPort) Renew(_ context.Context, of manager.TokenOwner, until time.Time) (token manager.Token, err error) {
	return token, t.fuse.Do(func() error {
		if !until.IsZero() {
			t.b.w.t.Errorf("a token is asked for, and is to be valid until %s", until)
		}
		token = manager.Token(t.b.tokens[of.UID])
		return nil
	})
}

func (t poolTokenPort) Delete(_ context.Context, of manager.TokenOwner) error {
	return t.fuse.Do(func() error {
		if t.b.fail != nil {
			return t.b.fail
		}
		delete(t.b.tokens, of.UID)
		return nil
	})
}

// showing is a driver that records what the group's machines boot from, even if the caller has died meanwhile.
type showing struct {
	pooldriver.Driver
	b *poolTokenMaker
}

func (d showing) Unwrap() pooldriver.Driver { return d.Driver }

func (d showing) CreatePool(ctx context.Context, req *pooldriver.CreatePoolRequest) (*pooldriver.Response, error) {
	r, err := d.Driver.CreatePool(ctx, req)
	if err == nil || errors.Is(err, testkit.ErrDead) && d.b.w.seen().GroupID != "" {
		d.b.shown = string(req.Bootstrap.Data[machine.UserData])
	}
	return r, err
}

func (d showing) UpdatePool(ctx context.Context, req *pooldriver.UpdatePoolRequest) (*pooldriver.Response, error) {
	r, err := d.Driver.UpdatePool(ctx, req)
	if err == nil {
		d.b.shown = string(req.Bootstrap.Data[machine.UserData])
	}
	return r, err
}

// TestPoolTokens: if bootstrap data ask for a token, the pool has one, the same until its end. It is valid while
// machines may join, even hours later and in another process, and is deleted with the pool.
func TestPoolTokens(t *testing.T) {
	w := newPoolWorld(t)
	b := w.poolTokenMaker()
	l := startUnkilled(w)
	l.runFor(4 * time.Minute)
	l.settled(3)
	require.Equal(t, "join token-1-of-the-pool token-1-of-the-pool", b.shown)
	l.runFor(time.Hour)
	require.Equal(t, 1, b.ensured, "nothing renews it once all have joined")
	require.False(t, w.admits())

	five := int32(5)
	l.edit(func(p *machinepool.Pool) { p.Spec.Replicas = &five })
	l.runFor(4 * time.Minute)
	l.settled(5)
	require.Equal(t, 2, b.ensured)

	l.process = l.start(&testkit.Fuse{})
	l.runFor(time.Hour)
	require.Equal(t, 2, b.ensured, "another process needs none either")
	b.shown = ""
	l.edit(func(p *machinepool.Pool) { p.Spec.Template.NodeTemplate.Labels = map[string]string{"disk": "large"} })
	l.runFor(time.Minute)
	require.Equal(t, "join token-1-of-the-pool token-1-of-the-pool", b.shown, "an update passes the token on")
	require.Equal(t, 3, b.ensured, "an update may replace instances, so the token is renewed")

	require.NoError(t, l.pools.Delete(t.Context(), poolKey, l.pool().UID))
	l.runFor(2 * time.Minute)
	require.Nil(t, l.pool())
	require.Empty(t, b.tokens)
	require.Equal(t, 1, b.made)
}

// TestPoolTokenOfMachinesThatAreSlow: a token is renewed for as long as machines may join, and no longer.
func TestPoolTokenOfMachinesThatAreSlow(t *testing.T) {
	w := newPoolWorld(t)
	b := w.poolTokenMaker()
	b.slow = true
	l := startUnkilled(w)
	l.runFor(2 * time.Hour)
	require.Empty(t, l.pool().Status.NodeRefs)
	b.slow = false
	require.True(t, w.admits())
	l.runFor(4 * time.Minute)
	l.settled(3)
	require.Equal(t, "join token-1-of-the-pool token-1-of-the-pool", b.shown)
	l.runFor(20 * time.Minute)
	require.False(t, w.admits())
}

// TestPoolTokensKilledAnywhere kills the manager at every call about a pool with tokens: one token is made, and
// none is left.
func TestPoolTokensKilledAnywhere(t *testing.T) {
	growAndShrink := func(l *poolLife, b *poolTokenMaker) {
		l.runFor(4 * time.Minute)
		l.settled(3)
		l.runFor(time.Hour)
		five := int32(5)
		l.edit(func(p *machinepool.Pool) { p.Spec.Replicas = &five })
		l.runFor(4 * time.Minute)
		l.settled(5)
		require.NoError(t, l.pools.Delete(t.Context(), poolKey, l.pool().UID))
		l.runFor(2 * time.Minute)
		require.Nil(t, l.pool())
		require.Equal(t, 1, b.made)
		require.Empty(t, b.tokens)
	}
	total := &testkit.Fuse{}
	w := newPoolWorld(t)
	b := w.poolTokenMaker()
	l := startUnkilled(w)
	l.process = w.start(total)
	growAndShrink(l, b)
	for _, after := range []bool{false, true} {
		for n := range testkit.EveryCall(total.Calls, 7) {
			w := newPoolWorld(t)
			b := w.poolTokenMaker()
			l := &poolLife{poolWorld: w, again: func() *manager.Manager { return w.start(&testkit.Fuse{}) }}
			l.process = w.start(&testkit.Fuse{BlowAt: n, BlowAfter: after})
			growAndShrink(l, b)
		}
	}
}

// TestPoolTokensFail: without a token no group is made, and the pool says why. A token that can't be deleted
// delays no deletion, and is reported; if it is not known whether there is a token, and none could have been made,
// nothing is reported.
func TestPoolTokensFail(t *testing.T) {
	w := newPoolWorld(t)
	b := w.poolTokenMaker()
	var reported []string
	w.hooks.Event = func(_ manager.Kind, _ object.Key, _ manager.EventType, reason, _ string) {
		reported = append(reported, reason)
	}
	b.fail = codes.New(codes.PermissionDenied, "may not write secrets")
	l := startUnkilled(w)
	l.runFor(time.Minute)
	require.Zero(t, l.provider.Groups())
	require.Equal(t, machinepool.FailureToken, l.pool().Status.FailureReason)
	require.Equal(t, "may not write secrets", l.pool().Status.FailureMessage)
	b.fail = nil
	l.runFor(15 * time.Minute)
	l.settled(3)

	b.fail = codes.New(codes.PermissionDenied, "may not write secrets")
	require.NoError(t, l.pools.Delete(t.Context(), poolKey, l.pool().UID))
	l.runFor(2 * time.Minute)
	require.Nil(t, l.pool())
	require.Contains(t, reported, "TokenNotDeleted")

	reported = nil
	w = newPoolWorld(t)
	b = w.poolTokenMaker()
	b.fail = codes.New(codes.PermissionDenied, "may not write secrets")
	w.hooks.Event = func(_ manager.Kind, _ object.Key, _ manager.EventType, reason, _ string) {
		reported = append(reported, reason)
	}
	l = startUnkilled(w)
	require.NoError(t, w.secrets.Delete(t.Context(), object.Key{Namespace: "fleet", Name: "boot"}, ""))
	l.runFor(time.Second)
	require.NoError(t, l.pools.Delete(t.Context(), poolKey, l.pool().UID))
	l.runFor(2 * time.Minute)
	require.Nil(t, l.pool())
	require.NotContains(t, reported, "TokenNotDeleted")
}

// TestPoolTokensWithoutAMaker: if data ask for a token that nobody makes, no group gets them.
func TestPoolTokensWithoutAMaker(t *testing.T) {
	w := newPoolWorld(t)
	b := w.poolTokenMaker()
	given := w.options
	w.options = func(o *manager.Options, f *testkit.Fuse) {
		given(o, f)
		o.Tokens = nil
	}
	l := startUnkilled(w)
	l.runFor(time.Minute)
	require.Empty(t, b.shown)
	require.Equal(t, machinepool.FailureToken, l.pool().Status.FailureReason)
	require.Contains(t, l.pool().Status.FailureMessage, "the manager has no maker of tokens")
	require.NoError(t, l.pools.Delete(t.Context(), poolKey, l.pool().UID))
	l.runFor(2 * time.Minute)
	require.Nil(t, l.pool())
}
