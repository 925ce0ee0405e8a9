package manager_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

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

// newTouched returns such a world; answer is that of the provider in place of its own. Nil: it makes the
// call.
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

// during touches the machines for so long.
func (u *touched) during(t tb, d time.Duration) {
	for end := u.at.Add(d); u.at.Before(end); u.at = u.at.Add(10 * time.Second) {
		for _, key := range keysOf(u.machines) {
			label(u.world, u.machines, key, u.at.Format("150405"))
		}
		u.pass(t)
	}
}

// most is how often a call was made within ten minutes.
func (u *touched) most(call codes.Call) (most int) {
	for i, at := range u.calls[call] {
		n, _ := slices.BinarySearchFunc(u.calls[call], at.Add(10*time.Minute), time.Time.Compare)
		most = max(most, n-i)
	}
	return most
}

// TestP63TouchesRepeatNoCall: a call whose answer a machine waits with is made again once a minute at most,
// however often the machine is touched, and it is made again.
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
			o.Policies.Safety = &safety.Policy{PaceBase: 20 * time.Minute, PaceMax: 20 * time.Minute}
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
			require.GreaterOrEqual(t, u.most(c.repeated), 8, "it is made again")
			require.WithinRange(t, u.wakes, u.at, u.at.Add(time.Minute))
			before := len(u.calls[c.repeated])
			u.at = u.wakes
			u.pass(t)
			require.Len(t, u.calls[c.repeated], before+1, "also without a touch")
		})
	}
}

// TestP63NoAnswerMakesAFlood: with any answers of a provider, touches make no flood of calls about a machine
// that is made and then deleted.
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
