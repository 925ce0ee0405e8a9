package manager_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// touches change the inputs of a refused call, or something beside them.
var touches = map[string]func(w *world, value string){
	"machine label": func(w *world, value string) {
		for _, key := range keysOf(w.machines) {
			label(w, w.machines, key, value)
		}
	},
	"machine status": func(w *world, value string) {
		for _, key := range keysOf(w.machines) {
			m, err := w.machines.Get(ctx, key)
			require.NoError(w.t, err)
			m = m.Clone()
			m.Status.LastKnown = value
			_, err = w.machines.UpdateStatus(ctx, m)
			require.NoError(w.t, err)
		}
	},
	"class label":  func(w *world, value string) { label(w, w.classes, smallKey, value) },
	"secret label": func(w *world, value string) { label(w, w.secrets, bootKey, value) },
	"secret made again": func(w *world, _ string) {
		secret, err := w.secrets.Get(ctx, bootKey)
		require.NoError(w.t, err)
		require.NoError(w.t, w.secrets.Delete(ctx, bootKey, secret.UID))
		again := secret.Clone()
		again.UID, again.Version = "", ""
		_, err = w.secrets.Create(ctx, again)
		require.NoError(w.t, err)
	},
}

func label[T object.Object[T]](w *world, c store.Collection[T], key object.Key, value string) {
	o, err := c.Get(ctx, key)
	require.NoError(w.t, err)
	o = o.Clone()
	meta := o.ObjectMeta()
	meta.Labels, meta.Annotations = maps.Clone(meta.Labels), map[string]string{"touched": value}
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	meta.Labels["touched"] = value
	_, err = c.Update(ctx, o)
	require.NoError(w.t, err)
}

// refusedFor returns how often a call is made in 20 minutes in which it is always refused, while touch changes
// something every 10 s.
func refusedFor(t *testing.T, call codes.Call, code codes.Code, touch func(*world, string)) int {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	p := w.start(&testkit.Fuse{}, false)
	if call == codes.DeleteMachine {
		p = w.until(p, w.settled(3), neverDies(t))
		for _, key := range keysOf(w.machines) {
			require.NoError(t, w.machines.Delete(ctx, key, ""))
		}
	}
	w.refuse = func(c driver.CallInfo) error {
		if c.Method == call {
			return codes.New(code, "refused")
		}
		return nil
	}
	begun := w.at
	for n := 0; w.at.Sub(begun) < 19*time.Minute; n++ {
		w.round(p)
		w.at = w.at.Add(10 * time.Second)
		if touch != nil {
			touch(w, w.at.Format("150405"))
		}
	}
	return w.calls[call]
}

// TestP55OnlyAChangeEndsAWait: a refused call waits as long as the table says, although other things than its
// inputs change. A new value in a secret ends the wait.
// Invariants: P55 P63
func TestP55OnlyAChangeEndsAWait(t *testing.T) {
	for call, code := range map[codes.Call]codes.Code{
		codes.CreateMachine: codes.PreconditionFailed, codes.DeleteMachine: codes.PermissionDenied,
	} {
		calls := refusedFor(t, call, code, nil)
		require.Positive(t, calls)
		for name, touch := range touches {
			require.Equal(t, calls, refusedFor(t, call, code, touch), "%s, with each touched: %s", call, name)
		}
		changed := refusedFor(t, call, code, func(w *world, value string) {
			secret, err := w.secrets.Get(ctx, bootKey)
			require.NoError(t, err)
			secret = secret.Clone()
			secret.Data[machine.UserData] = []byte(value)
			_, err = w.secrets.Update(ctx, secret)
			require.NoError(t, err)
		})
		require.Greater(t, changed, 10*calls, "%s, with each change of the secret", call)
	}
}

// second is a machine beside web.
var second = object.Key{Namespace: namespace, Name: "second"}

// touched is a world in which another program writes each machine every ten seconds, and the process looks
// at each change.
type touched struct {
	*world
	look  map[manager.Kind]manager.Reconciler
	calls map[codes.Call][]time.Time // about machine web
	wakes time.Time                  // when the pass about it wants to be repeated
}

// newTouched returns such a world. answer replaces the answer of the provider; nil: the provider answers itself.
func newTouched(t tb, w *world, o manager.Options, answer func(codes.Call, object.Key) error) *touched {
	u := &touched{world: w, look: map[manager.Kind]manager.Reconciler{}, calls: map[codes.Call][]time.Time{}}
	o.Driver = driver.Intercept(w.provider, func(ctx context.Context, c driver.CallInfo, next func(context.Context) error) error {
		if c.Object == fleetKey {
			call := c.Method.(codes.Call)
			u.calls[call] = append(u.calls[call], w.at)
		}
		if err := answer(c.Method.(codes.Call), c.Object); err != nil {
			return err
		}
		return next(ctx)
	})
	m, err := manager.New(o)
	require.NoError(t, err)
	for _, r := range m.Reconcilers() {
		u.look[r.Kind()] = r
	}
	return u
}

func (u *touched) add(t tb, key object.Key) {
	_, err := u.machines.Create(ctx, &machine.Machine{Meta: object.Meta{Key: key}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}})
	require.NoError(t, err)
}

// pass makes a pass about each machine.
func (u *touched) pass(t tb) {
	if reach := u.look[manager.KindReachability]; reach != nil {
		_, err := reach.Reconcile(ctx, manager.Fleet)
		require.NoError(t, err)
	}
	for _, key := range keysOf(u.machines) {
		result, err := u.look[manager.KindMachine].Reconcile(ctx, key)
		require.NoError(t, err)
		if key == fleetKey {
			u.wakes = result.At
		}
	}
}

// during touches the machines for a time.
func (u *touched) during(t tb, d time.Duration) {
	for end := u.at.Add(d); u.at.Before(end); u.at = u.at.Add(10 * time.Second) {
		for _, key := range keysOf(u.machines) {
			label(u.world, u.machines, key, u.at.Format("150405"))
		}
		u.pass(t)
	}
}

// most returns how often a call was made within any ten minutes, at most.
func (u *touched) most(call codes.Call) (most int) {
	for i, at := range u.calls[call] {
		n, _ := slices.BinarySearchFunc(u.calls[call], at.Add(10*time.Minute), time.Time.Compare)
		most = max(most, n-i)
	}
	return most
}

// TestP63TouchesRepeatNoCall: a machine waits with the answer of a call. The call is repeated, but no more than
// once a minute, no matter how often the machine is touched.
// Invariants: P63
func TestP63TouchesRepeatNoCall(t *testing.T) {
	for name, c := range map[string]struct {
		repeated codes.Call
		begin    func(t *testing.T) *touched
	}{
		"its VM is lost before it is initialized": {codes.InitializeMachine, func(t *testing.T) *touched {
			w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: true})
			u := newTouched(t, w, w.options(), func(call codes.Call, _ object.Key) error {
				if call == codes.InitializeMachine {
					return codes.New(codes.NotFound, "no such VM")
				}
				return nil
			})
			u.add(t, fleetKey)
			return u
		}},
		"its VM is unhealthy, and there is no cluster": {codes.GetMachineStatus, func(t *testing.T) *touched {
			w := newWorld(t, drivertest.MemoryOptions{})
			o := w.options()
			o.Cluster = nil
			u := newTouched(t, w, o, func(codes.Call, object.Key) error { return nil })
			u.add(t, fleetKey)
			u.pass(t)
			u.provider.SetUnhealthy(u.provider.VMs()[0].ID, "stopped")
			m, err := u.machines.Get(ctx, fleetKey)
			require.NoError(t, err)
			require.Equal(t, machine.PhaseAvailable, m.Status.Phase)
			m = m.Clone()
			m.Status.Phase, m.Status.Since = machine.PhaseUnknown, u.at
			m.Spec.Config.DisableHealthTimeout = true
			_, err = u.machines.UpdateStatus(ctx, m)
			require.NoError(t, err)
			return u
		}},
		"creations of its class are slowed after one that was not answered": {codes.GetMachineStatus, func(t *testing.T) *touched {
			w := newWorld(t, drivertest.MemoryOptions{})
			o := w.options()
			o.Policies.Safety = &safety.Policy{ClassBackoffBase: 20 * time.Minute, ClassBackoffMax: 20 * time.Minute}
			u := newTouched(t, w, o, func(call codes.Call, key object.Key) error {
				switch {
				case call != codes.CreateMachine:
					return nil
				case key == fleetKey:
					return codes.New(codes.DeadlineExceeded, "no answer")
				}
				return codes.New(codes.ResourceExhausted, "quota")
			})
			u.add(t, fleetKey)
			u.pass(t)
			u.add(t, second)
			u.pass(t)
			return u
		}},
	} {
		t.Run(name, func(t *testing.T) {
			u := c.begin(t)
			u.during(t, 9*time.Minute)
			require.LessOrEqual(t, u.most(c.repeated), 12)
			require.GreaterOrEqual(t, u.most(c.repeated), 8, "the call is repeated")
			require.WithinRange(t, u.wakes, u.at, u.at.Add(time.Minute))
			before := len(u.calls[c.repeated])
			u.at = u.wakes
			u.pass(t)
			require.Len(t, u.calls[c.repeated], before+1, "the call is repeated even without a touch")
		})
	}
}

// TestP63NoAnswerMakesAFlood: whatever a provider answers, touches cause no flood of calls about a machine that is
// made and then deleted.
// Invariants: P63
func TestP63NoAnswerMakesAFlood(t *testing.T) {
	all := slices.Collect(codes.All())
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: rapid.Bool().Draw(t, "initialize")})
		o := w.options()
		if rapid.Bool().Draw(t, "no cluster") {
			o.Cluster = nil
		}
		if rapid.Bool().Draw(t, "safety") {
			o.Policies.Safety = safety.DefaultPolicy()
		}
		answers := map[codes.Call]codes.Code{}
		for _, call := range []codes.Call{codes.CreateMachine, codes.InitializeMachine, codes.GetMachineStatus, codes.DeleteMachine} {
			if rapid.Bool().Draw(t, call.String()+" fails") {
				answers[call] = rapid.SampledFrom(all).Draw(t, call.String())
			}
		}
		others := rapid.SampledFrom(all).Draw(t, "creates of others")
		u := newTouched(t, w, o, func(call codes.Call, key object.Key) error {
			code := answers[call]
			if key != fleetKey && call == codes.CreateMachine {
				code = others
			}
			if code == codes.OK {
				return nil
			}
			return codes.New(code, "so it is")
		})
		u.add(t, fleetKey)
		u.pass(t)
		u.add(t, second)
		u.during(t, time.Duration(rapid.IntRange(1, 25).Draw(t, "minutes"))*time.Minute)
		if m, err := u.machines.Get(ctx, fleetKey); err == nil {
			require.NoError(t, u.machines.Delete(ctx, fleetKey, m.UID))
		}
		u.during(t, 12*time.Minute)
		for call := range u.calls {
			require.LessOrEqual(t, u.most(call), 30, "%s", call)
		}
	})
}

// touchedMachine returns a machine that another program writes during each call of the driver, and counts the
// calls.
func touchedMachine(t *testing.T, w *world) (look func(), calls map[codes.Call]int) {
	o := w.options()
	calls = map[codes.Call]int{}
	o.Driver = driver.Intercept(w.provider, func(ctx context.Context, c driver.CallInfo, next func(context.Context) error) error {
		calls[c.Method.(codes.Call)]++
		err := next(ctx)
		m, missing := w.machines.Get(ctx, c.Object)
		require.NoError(t, missing)
		m = m.Clone()
		m.Annotations = map[string]string{"example.com/touched": c.Method.String()}
		_, failed := w.machines.Update(ctx, m)
		require.NoError(t, failed)
		return err
	})
	_, err := w.machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	})
	require.NoError(t, err)
	r := reconciler(t, o, manager.KindMachine)
	return func() {
		_, err := r.Reconcile(ctx, fleetKey)
		require.NoError(t, err)
	}, calls
}

// TestP63AnswersOutliveConflicts: another program writes a machine during each call about it. Each answer is
// stored, and no call is repeated.
// Invariants: P63
func TestP63AnswersOutliveConflicts(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: true})
	look, calls := touchedMachine(t, w)
	look()
	m, err := w.machines.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.NotEmpty(t, m.Spec.ProviderID)
	require.Equal(t, machine.StageInitialized, m.Status.LastOperation.Stage)
	require.Equal(t, map[codes.Call]int{codes.GetMachineStatus: 1, codes.CreateMachine: 1, codes.InitializeMachine: 1}, calls)
	require.Equal(t, "InitializeMachine", m.Annotations["example.com/touched"], "what the other program wrote stays")

	require.NoError(t, w.machines.Delete(ctx, fleetKey, m.UID))
	for range 4 {
		if _, err := w.machines.Get(ctx, fleetKey); err == nil {
			look()
		}
	}
	_, err = w.machines.Get(ctx, fleetKey)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Zero(t, w.provider.Count())
	require.Equal(t, 1, calls[codes.DeleteMachine])
}

// TestP63RefusalsOutliveConflicts: a refused call is not repeated at once after a conflict, either.
// Invariants: P63
func TestP63RefusalsOutliveConflicts(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.provider.FailNext(codes.CreateMachine, codes.New(codes.Unavailable, "a fault"))
	look, calls := touchedMachine(t, w)
	look()
	m, err := w.machines.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.Equal(t, codes.Unavailable, m.Status.LastOperation.Code)
	require.Equal(t, 1, calls[codes.CreateMachine])
}
