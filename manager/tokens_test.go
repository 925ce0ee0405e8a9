package manager_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// tokenMaker makes bootstrap tokens for a world, and checks that VMs are made with them.
// It outlives managers.
type tokenMaker struct {
	*drivertest.Memory
	w       *world
	valid   map[string]permit // by the machine's UID
	made    int
	ensured int
	deleted int
	shown   map[string]string // the token that a VM was made with, by its name
	fail    func(effect string) error
}

type permit struct {
	token string
	until time.Time
}

// tokenMaker makes the world's user data ask for tokens, and returns a tokenMaker for its driver.
func (w *world) tokenMaker() *tokenMaker {
	b := &tokenMaker{Memory: w.provider, w: w, valid: map[string]permit{}, shown: map[string]string{}}
	w.badDriver = b
	w.neverJoins = b.refuses
	w.userData("name=<<MACHINE_NAME>> plain=<<BOOTSTRAP_TOKEN>> quoted=%3C%3CBOOTSTRAP_TOKEN%3E%3E")
	w.setOptions = func(o *manager.Options, f *testkit.Fuse) { o.Tokens = tokenPort{b, f} }
	return b
}

func (w *world) userData(text string) {
	boot, err := w.secrets.Get(ctx, object.Key{Namespace: namespace, Name: "boot"})
	require.NoError(w.t, err)
	boot = boot.Clone()
	boot.Data[machine.UserData] = []byte(text)
	_, err = w.secrets.Update(ctx, boot)
	require.NoError(w.t, err)
}

// refuses reports whether a VM can't join: its token is not its machine's, or has expired.
func (b *tokenMaker) refuses(name string) bool {
	b.check()
	m, err := b.w.machines.Get(ctx, object.Key{Namespace: namespace, Name: name})
	if err != nil || m.Status.Phase == machine.PhaseRunning || m.Deleted() {
		return err != nil
	}
	has := b.valid[m.UID]
	return has.token == "" || has.token != b.shown[name] || b.w.at.After(has.until)
}

// check fails the test if a token outlives its machine, or the machine's joining.
func (b *tokenMaker) check() {
	owners := map[string]*machine.Machine{}
	for _, key := range keysOf(b.w.machines) {
		m, err := b.w.machines.Get(ctx, key)
		require.NoError(b.w.t, err)
		owners[m.UID] = m
	}
	for uid := range b.valid {
		m := owners[uid]
		require.NotNil(b.w.t, m, "a token outlives its machine")
		require.NotEqual(b.w.t, machine.PhaseRunning, m.Status.Phase, "a token outlives the joining")
	}
}

func (b *tokenMaker) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	has := b.valid[req.Machine.UID]
	want := fmt.Sprintf("name=%s plain=%s quoted=%s", req.Machine.Name, has.token, url.QueryEscape(has.token))
	require.Equal(b.w.t, want, string(req.Secret.Data[machine.UserData]))
	require.NotEmpty(b.w.t, has.token)
	b.shown[req.Machine.Name] = has.token
	return b.Memory.CreateMachine(ctx, req)
}

func (b *tokenMaker) InitializeMachine(ctx context.Context, req *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	if b.valid[req.Machine.UID].token != "" {
		require.NotContains(b.w.t, string(req.Secret.Data[machine.UserData]), "TOKEN")
	}
	return b.Memory.InitializeMachine(ctx, req)
}

// tokenPort is the tokenMaker as one process sees it.
type tokenPort struct {
	b    *tokenMaker
	fuse *testkit.Fuse
}

func (t tokenPort) Ensure(ctx context.Context, of manager.TokenOwner, until time.Time) (manager.Token, error) {
	return t.ensure(of, until, true)
}

func (t tokenPort) Renew(ctx context.Context, of manager.TokenOwner, until time.Time) (manager.Token, error) {
	return t.ensure(of, until, false)
}

func (t tokenPort) ensure(of manager.TokenOwner, until time.Time, makes bool) (token manager.Token, err error) {
	died := t.fuse.Do(func() error {
		if t.b.fail != nil {
			if err = t.b.fail("ensure"); err != nil {
				return err
			}
		}
		has := t.b.valid[of.UID]
		if has.token == "" && !makes {
			return nil
		}
		if has.token == "" {
			t.b.made++
			has.token = fmt.Sprintf("id%d:secret+%d", t.b.made, t.b.made)
		}
		if until.After(has.until) {
			has.until = until
		}
		t.b.valid[of.UID] = has
		t.b.ensured++
		token = manager.Token(has.token)
		return nil
	})
	if t.fuse.Dead {
		return "", died
	}
	return token, err
}

func (t tokenPort) Delete(_ context.Context, of manager.TokenOwner) (err error) {
	died := t.fuse.Do(func() error {
		if t.b.fail != nil {
			if err = t.b.fail("delete"); err != nil {
				return err
			}
		}
		delete(t.b.valid, of.UID)
		t.b.deleted++
		return nil
	})
	if t.fuse.Dead {
		return died
	}
	return err
}

// TestTokensLife: when a machine is made, one call makes sure of its token; one deletes it when the machine has
// joined, and one when the machine is deleted. Settled machines cost no call.
// Invariants: P28
func TestTokensLife(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	b := w.tokenMaker()
	w.bounded = true
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	require.Equal(t, []int{3, 3, 3}, []int{b.made, b.ensured, b.deleted})
	for range 5 {
		w.at = w.at.Add(10 * time.Minute)
		w.round(p)
		w.round(w.start(&testkit.Fuse{}, false))
	}
	require.Equal(t, []int{3, 3, 3}, []int{b.made, b.ensured, b.deleted}, "calls for settled machines")
	w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"version": "2"} })
	w.until(p, w.settled(3), neverDies(t))
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	w.until(p, w.empty, neverDies(t))
	require.Equal(t, []int{6, 6, 12}, []int{b.made, b.ensured, b.deleted})
	require.Empty(t, b.valid)
}

// counted is a store of secrets that counts its reads.
type counted struct {
	store.Collection[*machine.Secret]
	reads *int
}

func (c counted) Get(ctx context.Context, key object.Key) (*machine.Secret, error) {
	*c.reads++
	return c.Collection.Get(ctx, key)
}

// TestTokensOfSettledMachines: a pass over a running machine reads its secret once, for its version, and does not look
// at the user data.
func TestTokensOfSettledMachines(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	b := w.tokenMaker()
	reads := 0
	w.setOptions = func(o *manager.Options, f *testkit.Fuse) {
		o.Tokens, o.Store.Secrets = tokenPort{b, f}, counted{o.Store.Secrets, &reads}
	}
	w.lone()
	p := w.start(&testkit.Fuse{}, false)
	w.until(p, func() bool { return w.stored().Status.Phase == machine.PhaseRunning }, neverDies(t))
	reads = 0
	w.round(p)
	require.Equal(t, 1, reads)
}

// TestTokensKilledAnywhere is TestKilledAnywhere with tokens. The tokenMaker fails at once if a VM is made without its
// machine's token, or a token outlives its machine or the joining.
// Invariants: P26
func TestTokensKilledAnywhere(t *testing.T) {
	begin := func() (*world, *tokenMaker) {
		w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: true})
		b := w.tokenMaker()
		w.fleet()
		w.change(func(d *deployment.Deployment) { d.Spec.Replicas = 1 })
		return w, b
	}
	live := func(w *world, p *process, died func() *process) {
		p = w.until(p, w.settled(1), died)
		require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
		w.until(p, w.empty, died)
	}
	total := &testkit.Fuse{}
	w, _ := begin()
	live(w, w.start(total, false), neverDies(t))
	for _, after := range []bool{false, true} {
		for n := range testkit.EveryCall(total.Calls, 7) {
			w, b := begin()
			live(w, w.start(&testkit.Fuse{BlowAt: n, BlowAfter: after}, false), func() *process { return w.start(&testkit.Fuse{}, false) })
			require.Equal(t, 1, b.made, "tokens made, killed at call %d, after %v", n, after)
			require.Empty(t, b.valid)
		}
	}
}

// TestTokensStaleAndKilled is TestStaleAndKilled with tokens.
// Invariants: P14
func TestTokensStaleAndKilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: rapid.Bool().Draw(t, "needs initialization")})
		b := w.tokenMaker()
		failures := 3
		b.fail = func(effect string) error {
			if effect == "ensure" && failures > 0 && rapid.Bool().Draw(t, "token fault") {
				failures--
				return codes.New(codes.Unavailable, "not now")
			}
			return nil
		}
		lives := rapid.IntRange(0, 4).Draw(t, "kills")
		begin := func() *process {
			f := &testkit.Fuse{}
			if lives > 0 {
				lives--
				f.BlowAt = rapid.IntRange(1, 300).Draw(t, "dies at call")
				f.BlowAfter = rapid.Bool().Draw(t, "after it took effect")
			}
			return w.startLagging(t, f)
		}
		for range rapid.IntRange(0, 4).Draw(t, "faults") {
			w.fault(t)
		}
		w.life(begin(), begin)
		require.Empty(t, b.valid)
	})
}

// lone stores one machine without an owner.
func (w *world) lone() {
	_, err := w.machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(w.t, err)
}

func (w *world) stored() *machine.Machine {
	m, err := w.machines.Get(ctx, fleetKey)
	require.NoError(w.t, err)
	return m
}

// TestTokensWithoutPort: without a maker of tokens, it is an error if user data ask for a token, in either
// spelling and at any place. No VM is made.
func TestTokensWithoutPort(t *testing.T) {
	for _, placeholder := range []string{"<<BOOTSTRAP_TOKEN>>", "%3C%3CBOOTSTRAP_TOKEN%3E%3E"} {
		w := newWorld(t, drivertest.MemoryOptions{})
		w.userData("join " + placeholder + " now")
		w.lone()
		w.round(w.start(&testkit.Fuse{}, false))
		m := w.stored()
		require.Equal(t, machine.PhaseCrashLoopBackOff, m.Status.Phase)
		require.Equal(t, codes.InvalidArgument, m.Status.LastOperation.Code)
		require.Contains(t, m.Status.LastOperation.Message, "class small has a placeholder for a bootstrap token")
		require.True(t, m.Status.NeverCreated)
		require.Zero(t, w.provider.Count())
	}
}

// TestTokensOfTheCredentials: if both secrets have user data, those of the credentials count.
func TestTokensOfTheCredentials(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	b := w.tokenMaker()
	cloud := w.provider.Secret(object.Key{Namespace: namespace, Name: "cloud"})
	_, err := w.secrets.Create(ctx, cloud)
	require.NoError(t, err)
	class, err := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: "small"})
	require.NoError(t, err)
	class = class.Clone()
	class.CredentialsRef = &object.Key{Name: "cloud"}
	_, err = w.classes.Update(ctx, class)
	require.NoError(t, err)
	w.badDriver, w.neverJoins = nil, nil
	w.lone()
	p := w.start(&testkit.Fuse{}, false)
	w.until(p, func() bool { return w.stored().Status.Phase == machine.PhaseRunning }, neverDies(t))
	require.Zero(t, b.ensured+b.deleted, "the user data of the credentials ask for no token")
}

// TestTokensAskedForMeanwhile: if user data begin to ask for a token between a pass's first look and its create,
// the pass begins again.
func TestTokensAskedForMeanwhile(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	b := w.tokenMaker()
	text := "name=<<MACHINE_NAME>> plain=<<BOOTSTRAP_TOKEN>> quoted=%3C%3CBOOTSTRAP_TOKEN%3E%3E"
	w.userData("none")
	w.lone()
	changed := false
	w.refuse = func(s driver.CallInfo) error {
		if s.Method == codes.GetMachineStatus && !changed {
			changed = true
			w.userData(text)
		}
		return nil
	}
	p := w.start(&testkit.Fuse{}, false)
	w.until(p, func() bool { return w.stored().Status.Phase == machine.PhaseRunning }, neverDies(t))
	require.Equal(t, 1, b.made)
	require.Empty(t, b.valid)
}

// TestTokensThatCannotBeMade: the code of the port decides when it is called again, its message is what the owner
// reads, and no VM is made meanwhile. An empty token counts as none.
func TestTokensThatCannotBeMade(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	b := w.tokenMaker()
	b.fail = func(string) error { return codes.New(codes.PermissionDenied, "secrets can't be written") }
	w.lone()
	p := w.start(&testkit.Fuse{}, false)
	w.round(p)
	op := w.stored().Status.LastOperation
	require.Equal(t, codes.PermissionDenied, op.Code)
	require.Equal(t, "bootstrap token: secrets can't be written", op.Message)
	require.Zero(t, w.provider.Count())

	b.fail = nil
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) { o.Tokens = blankTokens{} }
	w.at = w.at.Add(15 * time.Minute)
	empty := w.start(&testkit.Fuse{}, false)
	w.round(empty)
	require.Equal(t, codes.Internal, w.stored().Status.LastOperation.Code)
	require.Zero(t, w.provider.Count())
}

// blankTokens is a port with a bug.
type blankTokens struct{}

func (blankTokens) Ensure(context.Context, manager.TokenOwner, time.Time) (manager.Token, error) {
	return "", nil
}

func (blankTokens) Renew(context.Context, manager.TokenOwner, time.Time) (manager.Token, error) {
	return "", nil
}

func (blankTokens) Delete(context.Context, manager.TokenOwner) error { return nil }

// TestTokensEndWithTheirContext: a call that a shutdown ends is no failure, and a call that hangs is one.
func TestTokensEndWithTheirContext(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.tokenMaker()
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) {
		o.Tokens, o.Tuning.CallTimeout = hangingTokens{}, time.Millisecond
	}
	w.lone()
	p := w.start(&testkit.Fuse{}, false)
	w.round(p)
	require.Equal(t, codes.DeadlineExceeded, w.stored().Status.LastOperation.Code)

	w.at = w.at.Add(10 * time.Minute)
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) { o.Tokens = hangingTokens{} }
	p = w.start(&testkit.Fuse{}, false)
	before := w.stored()
	ended, end := context.WithCancel(ctx)
	w.refuse = func(s driver.CallInfo) error { end(); return codes.New(codes.NotFound, "no") }
	_, err := p.Reconcilers()[0].Reconcile(ended, fleetKey)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, before.Status.LastOperation.State, w.stored().Status.LastOperation.State)
}

type hangingTokens struct{}

func (hangingTokens) Ensure(ctx context.Context, _ manager.TokenOwner, _ time.Time) (manager.Token, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func (t hangingTokens) Renew(ctx context.Context, of manager.TokenOwner, until time.Time) (manager.Token, error) {
	return t.Ensure(ctx, of, until)
}

func (hangingTokens) Delete(ctx context.Context, _ manager.TokenOwner) error {
	<-ctx.Done()
	return ctx.Err()
}

// chatty is a driver that repeats the user data in its errors and notes.
type chatty struct {
	*tokenMaker
	refused int
}

func (d *chatty) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	text := string(req.Secret.Data[machine.UserData])
	if d.refused++; d.refused == 1 {
		return &driver.CreateMachineResponse{LastKnownState: text}, codes.New(codes.Unavailable, "can't boot with "+text)
	}
	return d.tokenMaker.CreateMachine(ctx, req)
}

// TestTokensStayInside: no token is in a log, an event, a hook or an object, even if a driver repeats it. No verb
// prints one.
func TestTokensStayInside(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	b := w.tokenMaker()
	w.badDriver = &chatty{tokenMaker: b}
	var log bytes.Buffer
	w.setOptions = func(o *manager.Options, f *testkit.Fuse) {
		o.Tokens = tokenPort{b, f}
		o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Hooks.Pass = func(_ manager.Kind, _ object.Key, _ int, r manager.Result, err error) { fmt.Fprintln(&log, r.Why, err) }
	}
	w.lone()
	p := w.start(&testkit.Fuse{}, false)
	stored := ""
	w.until(p, func() bool {
		m := w.stored()
		stored += fmt.Sprintf("%+v %+v\n", m.Spec, m.Status)
		return m.Status.Phase == machine.PhaseRunning
	}, neverDies(t))
	require.Contains(t, stored, "plain=a token quoted=a token")
	for _, hidden := range []string{"secret+", "secret%2B"} {
		require.NotContains(t, stored+log.String()+strings.Join(w.events, "\n"), hidden)
	}

	token := manager.Token("hunter2")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		require.Equal(t, "a token", fmt.Sprintf(verb, token), verb)
		require.NotContains(t, fmt.Sprintf(verb, struct{ T manager.Token }{token}), "hunter2", verb)
	}
	text, err := json.Marshal(map[string]any{"t": token})
	require.NoError(t, err)
	require.Equal(t, `{"t":"a token"}`, string(text))
	log.Reset()
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "t", token)
	require.NotContains(t, log.String(), "hunter2")
}

// TestTokensNeedACluster: tokens without a cluster are an error, because no machine could be seen to join.
func TestTokensNeedACluster(t *testing.T) {
	o := manager.InMemory(nil)
	o.Driver, o.Tokens = driver.Unimplemented{}, blankTokens{}
	_, err := manager.New(o)
	require.ErrorIs(t, err, manager.ErrOptions)
	require.ErrorContains(t, err, "no Cluster for Tokens")
}

// TestTokensLeftToExpire: a token that can't be deleted delays neither the joining nor the machine's deletion.
// Both report it.
func TestTokensLeftToExpire(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	b := w.tokenMaker()
	w.neverJoins = nil
	b.fail = func(effect string) error {
		if effect == "delete" {
			return errors.New("no")
		}
		return nil
	}
	w.lone()
	p := w.start(&testkit.Fuse{}, false)
	w.until(p, func() bool { return w.stored().Status.Phase == machine.PhaseRunning }, neverDies(t))
	require.NoError(t, w.machines.Delete(ctx, fleetKey, ""))
	w.until(p, func() bool {
		_, err := w.machines.Get(ctx, fleetKey)
		return errors.Is(err, store.ErrNotFound)
	}, neverDies(t))
	require.Contains(t, strings.Join(w.events, "\n"), "TokenNotDeleted: the bootstrap token could not be deleted and is left to expire: UNKNOWN: no")
	require.Len(t, b.valid, 1)
}
