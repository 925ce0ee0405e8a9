package machine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// chaos is a world with random faults, kills, stale reads and changes by others.
type chaos struct {
	*world
	draw   *rapid.T
	shell  *shell
	stormy bool // false: there are no more faults, and caches are fresh
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
			w.advance(time.Hour)
		}
	}
	w.createMachine(func(m *machine.Machine) {
		if rapid.Bool().Draw(t, "created without finalizer") {
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

// event draws one event: a change by somebody, a kill, or time that passes.
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
		c.killAt, c.killAfter = c.calls+rapid.IntRange(1, 4).Draw(c.draw, "kill"), rapid.Bool().Draw(c.draw, "after")
	case 4, 5:
		c.advance(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute, 15 * time.Minute}).Draw(c.draw, "time"))
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
		c.cluster.setReady(node, object.Unknown)
	default:
		c.cluster.setReady(node, object.True)
	}
}

// storm runs passes and events in turn, and then stops the faults.
func (c *chaos) storm(steps int) {
	for range rapid.IntRange(0, steps).Draw(c.draw, "steps") {
		c.event()
		_, _, err := c.shell.reconcile()
		if errors.Is(err, errKilled) {
			c.restart()
		} else if !errors.Is(err, errConflict) {
			require.NoError(c.draw, err)
		}
		c.requireOneRecordedVM()
	}
	c.stormy, c.killAt = false, 0
	if c.cluster != nil && c.cluster.live(node) != nil && !c.cluster.live(node).Deleted() {
		c.cluster.setReady(node, object.True)
	}
}

// requireOneRecordedVM checks that the machine never recorded two different VMs (P13).
func (c *chaos) requireOneRecordedVM() {
	recorded := ""
	for _, m := range c.store.versions {
		if m == nil || m.Spec.ProviderID == "" {
			continue
		}
		require.True(c.draw, recorded == "" || recorded == m.Spec.ProviderID, "P13: %s after %s", m.Spec.ProviderID, recorded)
		recorded = m.Spec.ProviderID
	}
}

// During a storm of faults, kills, stale reads and changes by others, there are
// never two VMs (P13), no machine is removed while its VM exists (P14, P16), and
// no node of somebody else is written (P17): the models check that at once. After
// the storm, a deleted machine is gone, with its VM. Any other machine settles
// within a bounded number of passes and is not written any more (P28).
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
		requireIdle(c.world)
		c.store.remove()
		c.shell.settle(20)
		require.Nil(t, c.store.live())
		require.Empty(t, c.provider.named(ours), "P13: a VM without a machine")
	})
}

// P13: a provider may create a second VM of the same name while its lists lag.
// Only one VM is recorded, and the deletion of the machine deletes that one.
// Invariants: P13
func TestP13OneVMIsRecordedByAnyProvider(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t)
		c.provider.atomic = false
		c.storm(25)
		c.requireOneRecordedVM()
		c.store.remove()
		c.provider.lag = 0
		for _, v := range c.provider.vms {
			v.visibleAt = c.now
		}
		c.shell.settle(40)
		require.Nil(t, c.store.live())
	})
}

// P14: whatever the provider answers, a machine stays until its VM is deleted.
// Then it is gone.
// Invariants: P14
func TestP14TheRecordOutlivesTheVM(t *testing.T) {
	for code := range codes.All() {
		if code == codes.OK || code == codes.NotFound {
			continue
		}
		w := newWorld(t)
		w.createRunning()
		w.store.remove()
		w.provider.faults = func(codes.Call) fault { return fault{code: code} }
		s := &shell{w: w}
		for range 50 { // several days, longer than all timeouts
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

// P16: DeleteMachine is not called if it is recorded that no create was issued.
// Invariants: P16
func TestP16NoDeleteCallWithoutCreateCall(t *testing.T) {
	w := newWorld(t)
	w.createMachine()
	w.store.remove()
	(&shell{w: w}).settle(5)
	require.Nil(t, w.store.live())
	require.Empty(t, w.provider.calls)
}

// P16: if the machine's name is another VM's, DeleteMachine is not called, because a careless driver would
// delete that VM. It is called only if an earlier create may have made a VM.
// Invariants: P16
func TestP16NoDeleteCallForTheNameOfAnotherVM(t *testing.T) {
	for name, c := range map[string]struct {
		before []fault // answers to creates before the one that is answered ALREADY_EXISTS
		calls  int     // of DeleteMachine
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
			w.createMachine()
			s := &shell{w: w}
			for i := range c.before {
				w.runPass(s)
				w.edit(func(m *machine.Machine) { m.Spec.Config.DrainTimeout = time.Duration(i+1) * time.Hour })
			}
			s.settle(10)
			require.Equal(t, machine.PhaseFailed, w.store.live().Status.Phase)
			require.Equal(t, len(c.before)+1, w.provider.calls[codes.CreateMachine])
			w.store.remove()
			s.settle(20)
			require.Nil(t, w.store.live())
			require.Equal(t, c.calls, w.provider.calls[codes.DeleteMachine])
			require.Empty(t, w.tokens.byUID, "the token is deleted nevertheless")
		})
	}
}

// P16: a create whose process died before it recorded the answer is not forgotten: DeleteMachine is called.
// Invariants: P16
func TestP16CrashBeforeTheNameIsTaken(t *testing.T) {
	w := newWorld(t)
	w.createMachine()
	w.killAt, w.killAfter = 3, true // at the create
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

// P14: such a create is not forgotten either if GetMachineStatus first fails and then returns NOT_FOUND.
// Invariants: P14
func TestP14FailedStatusCallsForgetNoCreate(t *testing.T) {
	for _, code := range []codes.Code{codes.DeadlineExceeded, codes.PermissionDenied, codes.ResourceExhausted, codes.Internal} {
		w := newWorld(t)
		w.createMachine()
		w.killAt, w.killAfter = 3, true // at the create
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

// P16: VMs of the machine's name that existed before are deleted with the machine, if GetMachineStatus found them.
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
		w.createMachine()
		s := &shell{w: w}
		_, _, err := s.reconcile()
		require.NoError(t, err)
		w.store.remove()
		s.settle(5)
		require.Nil(t, w.store.live())
		require.Empty(t, w.provider.vms, "%s", faulty.code)
	}
}

// outcome is the final state of a world, without names, IDs and times.
type outcome struct {
	Gone                 bool
	Phase                machine.Phase
	Kind                 machine.OperationKind
	State                machine.OperationState
	Code                 codes.Code
	HasID, HasNodeName   bool
	Conditions           []string
	VMs                  int
	Node, Labelled, Held bool
	Taints               []object.Taint
	Template             string
	NodeConditions       []string
	Request              machine.InPlaceRequest
	Stage                machine.Stage
	Updating             string // the marks of an in-place update on the node
	Pods, Volumes        int
	Tags                 string // of the VMs
	Spec                 machine.VMSpec
	Preserved            string // the records and marks of a preservation
	Tokens               int
}

// outcomeOf returns the outcome of a settled world.
func outcomeOf(w *world) outcome {
	out := outcome{VMs: len(w.provider.vms), Gone: true}
	for _, v := range w.provider.vms {
		out.Tags += fmt.Sprint(v.tags)
	}
	if w.tokens != nil {
		out.Tokens = len(w.tokens.byUID)
	}
	if m := w.store.live(); m != nil {
		op := m.Status.LastOperation
		out.Spec = m.Status.VMSpec
		out.Gone, out.Phase, out.Kind, out.State, out.Code = false, m.Status.Phase, op.Kind, op.State, op.Code
		out.HasID, out.HasNodeName = m.Spec.ProviderID != "", m.Spec.NodeName != ""
		out.Conditions = conditions(m.Status.Conditions)
		if out.Request = m.Spec.InPlace; op.Kind == machine.OperationInPlaceUpdate {
			out.Stage = op.Stage
		}
	}
	if m := w.store.live(); m != nil {
		p := m.Status.Preservation
		out.Preserved = fmt.Sprint(p.Request, p.Since.IsZero(), p.Ended.IsZero(), p.NodeAsked, p.Drained)
	}
	if w.cluster == nil {
		return out
	}
	if n := w.cluster.live(node); n != nil {
		out.Node, out.Taints, out.NodeConditions = true, n.Taints, conditions(n.Conditions)
		out.Labelled = n.Labels[w.policy.Keys.NodeMachine] == ours
		out.Held = n.HasFinalizer(machine.NodeFinalizer)
		u := n.Applied.Update
		out.Updating = fmt.Sprint(n.Unschedulable, n.Labels[w.policy.Keys.CandidateForUpdate], n.Labels[w.policy.Keys.SelectedForUpdate],
			n.Labels[w.policy.Keys.UpdateResult], u.Since.IsZero(), u.Candidate, u.Selected, u.Cordoned)
		p := n.Applied.Preserved
		out.Preserved += fmt.Sprint(p.Since.IsZero(), p.Cordoned, p.Tainted, p.Kept, n.Annotations[w.policy.Keys.KeepNode])
		out.Template = fmt.Sprint(n.Labels["pool"], n.Capacity, n.Applied.Labels)
	}
	if d := w.cluster.drain; d != nil {
		out.Pods, out.Volumes = d.pods+d.stuck, d.volumes
	}
	return out
}

// scenarios prepare worlds in which there is work to do for a machine. The
// process is killed only after the preparation.
var scenarios = map[string]func(*world){
	"creation": func(w *world) { w.createMachine() },
	"creation with initialization and template": func(w *world) {
		w.provider.hasInit = true
		w.class.NodeTemplate = &machine.NodeShape{VirtualCapacity: map[string]string{"example.org/slots": "4"}}
		w.createMachine(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"pool": "a"} })
	},
	"creation with a status that says UNINITIALIZED and no more": func(w *world) {
		w.provider.hasInit, w.provider.bare = true, true
		w.createMachine()
	},
	"creation by a slow provider": func(w *world) {
		w.provider.lag, w.provider.hasInit = 20*time.Second, true
		w.createMachine()
	},
	"creation without status call": func(w *world) {
		w.provider.noStatus = true
		w.createMachine()
	},
	"creation without finalizer and cluster": func(w *world) {
		w.cluster = nil
		w.createMachine(func(m *machine.Machine) { m.Finalizers = nil })
	},
	"creation refused": func(w *world) {
		w.provider.differs = true
		w.createMachine()
	},
	"creation that never ends": func(w *world) {
		w.provider.boot = -1
		w.createMachine()
	},
	"creation beside a stale node": func(w *world) {
		w.cluster.add(node)
		w.advance(time.Hour)
		w.createMachine()
	},
	"adoption": func(w *world) {
		w.provider.hasInit = true
		w.provider.vms = []*vm{{id: "p://old", name: ours, node: node, boots: true, bootAt: w.now}}
		w.createMachine()
	},
	"health lost": func(w *world) {
		w.createRunning()
		w.cluster.setReady(node, object.False)
	},
	"kept while running": func(w *world) {
		w.createRunning()
		w.preserveByNode(machine.PreserveNow)
	},
	"kept when it fails": func(w *world) {
		w.addDrain(2, time.Minute, 0)
		w.createRunning()
		w.preserve(machine.PreserveWhenFailed)
		w.cluster.setReady(node, object.False)
	},
	"kept when it is recovered": func(w *world) {
		w.addDrain(1, time.Minute, 0)
		w.createRunning()
		w.preserve(machine.PreserveNow)
		w.cluster.setReady(node, object.False)
		(&shell{w: w}).settleFor(time.Hour)
		w.cluster.setReady(node, object.True)
	},
	"kept no longer when it is recovered": func(w *world) {
		w.addDrain(1, time.Minute, 0)
		w.createRunning()
		w.preserve(machine.PreserveWhenFailed)
		w.cluster.setReady(node, object.False)
		(&shell{w: w}).settleFor(time.Hour)
		w.cluster.setReady(node, object.True)
	},
	"kept no longer though failed": func(w *world) {
		w.createRunning()
		w.preserve(machine.PreserveWhenFailed)
		w.cluster.setReady(node, object.False)
		(&shell{w: w}).settleFor(time.Hour)
		w.preserveByNode(machine.PreserveNever)
	},
	"node deleted": func(w *world) {
		w.createRunning()
		w.cluster.delete(node)
	},
	"template changed": func(w *world) {
		w.createRunning()
		w.edit(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"pool": "b"} })
	},
	"tags changed": func(w *world) {
		w.fields = []string{"tags"}
		w.setClassSpec(spec("s", "team", "a", "old", "yes"))
		w.createRunning()
		w.setClassSpec(spec("s", "team", "b"))
	},
	"tags refused": func(w *world) {
		w.fields = []string{"tags"}
		w.setClassSpec(spec("s"))
		w.createRunning()
		w.edit(ownedBySet)
		w.setClassSpec(spec("s", "team", "b"))
		w.provider.faults = func(call codes.Call) fault {
			if call == codes.UpdateMachine {
				return fault{code: codes.Unimplemented}
			}
			return fault{}
		}
	},
	"virtual capacity changed": func(w *world) {
		w.class.NodeTemplate = &machine.NodeShape{VirtualCapacity: map[string]string{"example.org/slots": "4"}}
		w.createRunning()
		w.class.NodeTemplate = &machine.NodeShape{VirtualCapacity: map[string]string{"example.org/lanes": "2"}}
	},
	"deletion": func(w *world) {
		w.createRunning()
		w.store.remove()
	},
	"deletion with lost names": func(w *world) {
		w.createRunning()
		w.edit(func(m *machine.Machine) { m.Spec.NodeName, m.Spec.ProviderID = "", "" })
		w.cluster.change(node, func(n *machine.Node) { delete(n.Labels, w.policy.Keys.NodeMachine) })
		w.store.remove()
	},
	"deletion of a new machine": func(w *world) {
		w.createMachine()
		w.store.remove()
	},
	"deletion without cluster": func(w *world) {
		w.cluster = nil
		w.createRunning()
		w.store.remove()
	},
	"deletion with a drain": func(w *world) {
		w.createRunning()
		w.addDrain(2, time.Minute, 0)
		w.store.remove()
	},
	"deletion with a drain by force": func(w *world) {
		w.createRunning()
		d := w.addDrain(0, 0, 2)
		d.volumes, d.detachAfter = 1, 30*time.Second
		w.store.remove()
	},
	"in-place update": func(w *world) {
		w.startUpdate(machine.UpdateSuccessful)
		w.owner.moves = true
	},
	"in-place update that waits for its owner": func(w *world) { w.startUpdate(machine.UpdateSuccessful) },
	"in-place update that fails":               func(w *world) { w.startUpdate(machine.UpdateFailed) },
	"in-place update that is never answered":   func(w *world) { w.startUpdate("") },
	"in-place update withdrawn before it began": func(w *world) {
		w.startUpdate("")
		w.requestInPlace(machine.InPlaceCandidate)
		w.runPass(&shell{w: w})
		w.requestInPlace(machine.InPlaceNone)
	},
	"in-place update withdrawn while draining": func(w *world) {
		w.startUpdate("")
		w.cluster.drain.stuck = 1
		w.runPass(&shell{w: w})
		w.requestInPlace(machine.InPlaceNone)
	},
	"in-place update withdrawn too late": func(w *world) {
		w.startUpdate(machine.UpdateSuccessful)
		w.cluster.drain.pods = 0
		w.runPass(&shell{w: w})
		w.requestInPlace(machine.InPlaceNone)
	},
	"failed in-place update withdrawn": func(w *world) {
		w.startUpdate(machine.UpdateFailed)
		w.disableHealthTimeout()
		(&shell{w: w}).settle(bound)
		w.requestInPlace(machine.InPlaceNone)
	},
}

// startUpdate creates a running machine and selects it for an in-place update. Its node has two pods that
// leave, and an agent with this answer.
func (w *world) startUpdate(answer string) {
	w.createRunning()
	w.addDrain(2, time.Minute, 0)
	w.cluster.agent = agentModel{answer: answer, takes: 5 * time.Minute}
	w.requestInPlace(machine.InPlaceSelected)
}

// disableHealthTimeout keeps the machine from being marked Failed for its health.
func (w *world) disableHealthTimeout() {
	m := w.store.live().Clone()
	m.Spec.Config.DisableHealthTimeout = true
	w.store.force(m)
}

// createRunning creates the machine and runs passes until it is ready.
func (w *world) createRunning() {
	w.createMachine()
	(&shell{w: w}).settle(bound)
	require.True(w.t, w.store.live().Ready())
	w.calls = 0
}

// P26: the process is killed at any port call, before or after the call took
// effect, and a new process continues, whose first reads may be arbitrarily old.
// The final state is the same as without the kill.
// Invariants: P26 P44
func TestP26KilledAnywhere(t *testing.T) {
	for name, prepare := range scenarios {
		t.Run(name, func(t *testing.T) {
			undisturbed := newWorld(t)
			prepare(undisturbed)
			undisturbed.calls = 0
			(&shell{w: undisturbed}).settle(30)
			want, calls := outcomeOf(undisturbed), undisturbed.calls
			require.Positive(t, calls)
			for killAt := 1; killAt <= calls; killAt++ {
				for mode := range 4 {
					w := newWorld(t)
					prepare(w)
					w.calls = 0
					w.killAt, w.killAfter = killAt, mode&1 == 1
					runThroughKill(w, mode&2 == 2)
					require.Equal(t, want, outcomeOf(w), "killed at call %d of %d, after it: %t, stale: %t",
						killAt, calls, w.killAfter, mode&2 == 2)
					requireIdle(w)
				}
			}
		})
	}
}

// runThroughKill runs passes until the process is killed, and then a new process until the world settles. stale
// says that the first reads of the new process are old.
func runThroughKill(w *world, stale bool) {
	s := &shell{w: w}
	for passes := 0; ; passes++ {
		require.Less(w.t, passes, 1000, "it is never killed")
		w.tick()
		plan, _, err := s.reconcile()
		if errors.Is(err, errKilled) {
			break
		}
		require.NoError(w.t, err)
		if at := earlier(plan.At, w.next()); at.After(w.now) {
			w.now = at
		}
	}
	fresh := &shell{w: w}
	if stale {
		fresh.lag = func() int { return 100 }
	}
	fresh.settle(30)
}

// requireIdle checks P28 in a settled world: nothing is written or called any more, now and much later.
func requireIdle(w *world) {
	writes, calls := w.store.writes, w.calls
	s := &shell{w: w, noInitialize: true}
	for range 3 {
		_, gone, err := s.reconcile()
		require.NoError(w.t, err)
		if gone {
			return
		}
		require.Equal(w.t, writes, w.store.writes, "P28: a settled machine was written")
		w.advance(7 * time.Hour)
	}
	if m := w.store.live(); m.Ready() { // for other machines, each new process may read the node once
		require.Equal(w.t, calls, w.calls, "P28: calls were made for a settled machine")
	}
}
