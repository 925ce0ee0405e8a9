package machine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// chaos is a world in which anything may go wrong for a while.
type chaos struct {
	*world
	draw   *rapid.T
	shell  *shell
	stormy bool
}

var anyFault = rapid.SampledFrom([]fault{
	{}, {}, {}, {codes.Unavailable, false}, {codes.DeadlineExceeded, true}, {codes.Internal, true},
	{codes.ResourceExhausted, false}, {codes.InvalidArgument, false}, {codes.Unknown, true},
	{codes.OutOfRange, false}, {codes.Canceled, true}, {codes.PreconditionFailed, false},
})

func newChaos(t *rapid.T) *chaos {
	w := newWorld(t)
	c := &chaos{world: w, draw: t, stormy: true}
	p := w.provider
	p.hasInit, p.noStatus = rapid.Bool().Draw(t, "has init"), rapid.Bool().Draw(t, "no status")
	p.lag = rapid.SampledFrom([]time.Duration{0, 0, 10 * time.Second}).Draw(t, "lag")
	p.boot = rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, -1}).Draw(t, "boot")
	p.note = rapid.SampledFrom([]string{"", "note"}).Draw(t, "note")
	p.faults = func(codes.Call) fault {
		if !c.stormy {
			return fault{}
		}
		return anyFault.Draw(t, "fault")
	}
	w.policy.ProviderIDsMatch = rapid.Bool().Draw(t, "ids match")
	if rapid.IntRange(0, 4).Draw(t, "cluster") == 0 {
		w.cluster = nil
	} else {
		w.cluster.faults = func(string) codes.Code {
			if !c.stormy {
				return codes.OK
			}
			return rapid.SampledFrom([]codes.Code{codes.OK, codes.OK, codes.Unavailable}).Draw(t, "cluster fault")
		}
		if rapid.IntRange(0, 4).Draw(t, "stale node") == 0 {
			w.cluster.add(node)
			w.pass(time.Hour)
		}
	}
	w.give(func(m *machine.Machine) {
		if rapid.Bool().Draw(t, "born without finalizer") {
			m.Finalizers = nil
		}
	})
	c.restart()
	return c
}

func (c *chaos) restart() {
	c.shell = &shell{w: c.world, lag: func() int {
		if !c.stormy {
			return 0
		}
		return rapid.SampledFrom([]int{0, 0, 1, 3, 100}).Draw(c.draw, "lag")
	}}
}

// events are what may happen in a storm, beside passes.
func (c *chaos) event() {
	switch rapid.IntRange(0, 9).Draw(c.draw, "event") {
	case 0:
		c.store.remove()
	case 1:
		c.class.Generation++
	case 2:
		if m := c.store.live(); m != nil {
			c.edit(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"pool": "b"} })
		}
	case 3:
		c.killAt, c.after = c.calls+rapid.IntRange(1, 4).Draw(c.draw, "kill"), rapid.Bool().Draw(c.draw, "after")
	case 4, 5:
		c.pass(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute, 15 * time.Minute}).Draw(c.draw, "time"))
	default:
		c.nodeEvent()
	}
}

func (c *chaos) nodeEvent() {
	if c.cluster == nil || c.cluster.live(node) == nil {
		return
	}
	switch rapid.IntRange(0, 4).Draw(c.draw, "node event") {
	case 0:
		c.cluster.delete(node)
	case 1, 2:
		c.cluster.ready(node, object.Unknown)
	default:
		c.cluster.ready(node, object.True)
	}
}

// storm has passes and events for a while; then faults stop.
func (c *chaos) storm(steps int) {
	for range rapid.IntRange(0, steps).Draw(c.draw, "steps") {
		c.event()
		_, _, err := c.shell.reconcile()
		if errors.Is(err, errKilled) {
			c.restart()
		} else if !errors.Is(err, errConflict) {
			require.NoError(c.draw, err)
		}
		c.recordedOnce()
	}
	c.stormy, c.killAt = false, 0
	if c.cluster != nil && c.cluster.live(node) != nil && !c.cluster.live(node).Deleted() {
		c.cluster.ready(node, object.True)
	}
}

// recordedOnce holds a machine to one recorded VM (P13).
func (c *chaos) recordedOnce() {
	recorded := ""
	for _, m := range c.store.versions {
		if m == nil || m.Spec.ProviderID == "" {
			continue
		}
		require.True(c.draw, recorded == "" || recorded == m.Spec.ProviderID, "P13: %s after %s", m.Spec.ProviderID, recorded)
		recorded = m.Spec.ProviderID
	}
}

// A storm of faults, kills, stale reads and interference never makes two VMs
// (P13), never lets a record go that a VM needs (P14, P16), never touches a
// node of somebody else (P17): the models fail on the spot. When it is over,
// a machine that is to go is gone, with no VM left behind, and any other has
// settle within a bounded number of passes, and stays there (P28).
// Invariants: P13 P14 P16 P17 P44
func TestP13P14P16P17AfterAStorm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t)
		c.storm(25)
		c.shell.settle(40)
		m := c.store.live()
		if m == nil {
			require.Empty(t, c.provider.named(ours), "P13: a VM without a machine")
			return
		}
		require.False(t, m.Deleted(), "a deletion that does not end: %s", state(m))
		require.Contains(t, []machine.Phase{
			machine.PhaseRunning, machine.PhaseAvailable, machine.PhaseFailed,
		}, m.Status.Phase)
		if m.Ready() {
			require.Len(t, c.provider.named(ours), 1)
		}
		quiet(c.world)
		c.store.remove()
		c.shell.settle(20)
		require.Nil(t, c.store.live())
		require.Empty(t, c.provider.named(ours), "P13: a VM without a machine")
	})
}

// P13: with a provider that makes a second VM for a name while its own lists
// lag, one VM is recorded, and the deletion of the machine deletes that one.
// Invariants: P13
func TestP13OneVMIsRecordedByAnyProvider(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t)
		c.provider.atomic = false
		c.storm(25)
		c.recordedOnce()
		c.store.remove()
		c.provider.lag = 0
		for _, v := range c.provider.vms {
			v.visibleAt = c.now
		}
		c.shell.settle(40)
		require.Nil(t, c.store.live())
	})
}

// P14: a machine stays for as long as the provider does not delete its VM,
// for any answers of its, and is gone when it does.
// Invariants: P14
func TestP14TheRecordOutlivesTheVM(t *testing.T) {
	for code := range codes.All() {
		if code == codes.OK || code == codes.NotFound {
			continue
		}
		w := newWorld(t)
		w.running()
		w.store.remove()
		w.provider.faults = func(codes.Call) fault { return fault{code: code} }
		s := &shell{w: w}
		for range 50 { // days, beyond every timeout
			plan, gone, err := s.reconcile()
			require.NoError(t, err)
			require.False(t, gone, "%s", code)
			require.False(t, plan.At.IsZero(), "P18: %s is never retried", code)
			w.now = plan.At
		}
		w.provider.faults = nil
		s.settle(5)
		require.Nil(t, w.store.live(), "%s", code)
		require.Empty(t, w.provider.vms)
	}
}

// P16: only a record that no create was ever issued saves the delete call.
// Invariants: P16
func TestP16NoDeleteCallWithoutCreateCall(t *testing.T) {
	w := newWorld(t)
	w.give()
	w.store.remove()
	(&shell{w: w}).settle(5)
	require.Nil(t, w.store.live())
	require.Empty(t, w.provider.calls)
}

// P16: a name that is another VM's is passed to no delete call, since a careless driver would delete
// that VM. Only an earlier create that may have made one has it called.
// Invariants: P16
func TestP16NoDeleteCallForTheNameOfAnotherVM(t *testing.T) {
	for name, c := range map[string]struct {
		before []fault // of the creates before the one that finds the name taken
		calls  int
	}{
		"at once":                    {nil, 0},
		"after refusals":             {[]fault{{code: codes.ResourceExhausted}, {code: codes.PermissionDenied}}, 0},
		"after a create that failed": {[]fault{{code: codes.Internal}}, 1},
		"after a lost answer":        {[]fault{{code: codes.ResourceExhausted}, {code: codes.DeadlineExceeded}, {code: codes.InvalidArgument}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.needTokens()
			w.provider.differs = true
			w.provider.faults = func(call codes.Call) fault {
				if n := w.provider.calls[codes.CreateMachine]; call == codes.CreateMachine && n <= len(c.before) {
					return c.before[n-1]
				}
				return fault{}
			}
			w.give()
			s := &shell{w: w}
			for i := range c.before {
				w.passes(s)
				w.edit(func(m *machine.Machine) { m.Spec.Config.DrainTimeout = time.Duration(i+1) * time.Hour })
			}
			s.settle(10)
			require.Equal(t, machine.PhaseFailed, w.store.live().Status.Phase)
			require.Equal(t, len(c.before)+1, w.provider.calls[codes.CreateMachine])
			w.store.remove()
			s.settle(20)
			require.Nil(t, w.store.live())
			require.Equal(t, c.calls, w.provider.calls[codes.DeleteMachine])
			require.Empty(t, w.tokens.of, "the token goes all the same")
		})
	}
}

// P16: nor is a create forgotten whose process died before it recorded the answer.
// Invariants: P16
func TestP16CrashBeforeTheNameIsTaken(t *testing.T) {
	w := newWorld(t)
	w.give()
	w.killAt, w.after = 3, true // at the create
	_, _, err := (&shell{w: w}).reconcile()
	require.ErrorIs(t, err, errKilled)
	require.Equal(t, 1, w.provider.calls[codes.CreateMachine])
	w.killAt = 0
	w.provider.differs, w.provider.vms = true, nil
	s := &shell{w: w}
	s.settle(10)
	require.Equal(t, machine.PhaseFailed, w.store.live().Status.Phase)
	w.store.remove()
	s.settle(20)
	require.Nil(t, w.store.live())
	require.Equal(t, 1, w.provider.calls[codes.DeleteMachine])
}

// P14: nor is it if the provider, asked for the VM after that, first fails to answer and then denies it.
// Invariants: P14
func TestP14FailedLooksForgetNoCreate(t *testing.T) {
	for _, code := range []codes.Code{codes.DeadlineExceeded, codes.PermissionDenied, codes.ResourceExhausted, codes.Internal} {
		w := newWorld(t)
		w.give()
		w.killAt, w.after = 3, true // at the create
		_, _, err := (&shell{w: w}).reconcile()
		require.ErrorIs(t, err, errKilled)
		require.Len(t, w.provider.vms, 1)
		w.killAt = 0
		failing := true
		w.provider.faults = func(call codes.Call) fault {
			switch {
			case call == codes.GetMachineStatus && failing:
				failing = false
				return fault{code: code}
			case call == codes.GetMachineStatus:
				return fault{code: codes.NotFound}
			case call == codes.CreateMachine:
				return fault{code: codes.AlreadyExists}
			}
			return fault{}
		}
		s := &shell{w: w}
		s.settle(10)
		require.Equal(t, machine.PhaseFailed, w.store.live().Status.Phase, "%s", code)
		w.store.remove()
		s.settle(20)
		require.Nil(t, w.store.live())
		require.Empty(t, w.provider.vms, "%s", code)
	}
}

// P16: not even if VMs of the name are there that we did not make.
// Invariants: P16
func TestP16VMsThatWereThereBefore(t *testing.T) {
	for _, faulty := range []fault{{}, {code: codes.Uninitialized}, {code: codes.OutOfRange}} {
		w := newWorld(t)
		w.provider.vms = []*vm{{id: "p://1", name: ours, node: node}}
		w.provider.faults = func(call codes.Call) fault {
			if call == codes.GetMachineStatus {
				return faulty
			}
			return fault{}
		}
		w.give()
		s := &shell{w: w}
		_, _, err := s.reconcile()
		require.NoError(t, err)
		w.store.remove()
		s.settle(5)
		require.Nil(t, w.store.live())
		require.Empty(t, w.provider.vms, "%s", faulty.code)
	}
}
