package machine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// outcome is a settled state up to names, IDs and times.
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
	Updating             string // what an in-place update has on the node
	Pods, Volumes        int
	Tags                 string // of the VMs
	Spec                 machine.VMSpec
	Preserved            string // what is recorded and done to keep the machine
	Tokens               int
}

func settled(w *world) outcome {
	out := outcome{VMs: len(w.provider.vms), Gone: true}
	for _, v := range w.provider.vms {
		out.Tags += fmt.Sprint(v.tags)
	}
	if w.tokens != nil {
		out.Tokens = len(w.tokens.of)
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

// scenarios are worlds in which a machine has something to do. What comes
// before is never killed.
var scenarios = map[string]func(*world){
	"creation": func(w *world) { w.give() },
	"creation with initialization and template": func(w *world) {
		w.provider.hasInit = true
		w.class.NodeTemplate = &machine.NodeShape{VirtualCapacity: map[string]string{"example.org/slots": "4"}}
		w.give(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"pool": "a"} })
	},
	"creation with a status that says UNINITIALIZED and no more": func(w *world) {
		w.provider.hasInit, w.provider.bare = true, true
		w.give()
	},
	"creation by a slow provider": func(w *world) {
		w.provider.lag, w.provider.hasInit = 20*time.Second, true
		w.give()
	},
	"creation without status call": func(w *world) {
		w.provider.noStatus = true
		w.give()
	},
	"creation without finalizer and cluster": func(w *world) {
		w.cluster = nil
		w.give(func(m *machine.Machine) { m.Finalizers = nil })
	},
	"creation refused": func(w *world) {
		w.provider.differs = true
		w.give()
	},
	"creation that never ends": func(w *world) {
		w.provider.boot = -1
		w.give()
	},
	"creation beside a stale node": func(w *world) {
		w.cluster.add(node)
		w.pass(time.Hour)
		w.give()
	},
	"adoption": func(w *world) {
		w.provider.hasInit = true
		w.provider.vms = []*vm{{id: "p://old", name: ours, node: node, boots: true, bootAt: w.now}}
		w.give()
	},
	"health lost": func(w *world) {
		w.running()
		w.cluster.ready(node, object.False)
	},
	"kept while running": func(w *world) {
		w.running()
		w.preserveByNode(machine.PreserveNow)
	},
	"kept when it fails": func(w *world) {
		w.drains(2, time.Minute, 0)
		w.running()
		w.preserve(machine.PreserveWhenFailed)
		w.cluster.ready(node, object.False)
	},
	"kept when it is recovered": func(w *world) {
		w.drains(1, time.Minute, 0)
		w.running()
		w.preserve(machine.PreserveNow)
		w.cluster.ready(node, object.False)
		(&shell{w: w}).settleFor(time.Hour)
		w.cluster.ready(node, object.True)
	},
	"kept no longer when it is recovered": func(w *world) {
		w.drains(1, time.Minute, 0)
		w.running()
		w.preserve(machine.PreserveWhenFailed)
		w.cluster.ready(node, object.False)
		(&shell{w: w}).settleFor(time.Hour)
		w.cluster.ready(node, object.True)
	},
	"kept no longer though failed": func(w *world) {
		w.running()
		w.preserve(machine.PreserveWhenFailed)
		w.cluster.ready(node, object.False)
		(&shell{w: w}).settleFor(time.Hour)
		w.preserveByNode(machine.PreserveNever)
	},
	"node deleted": func(w *world) {
		w.running()
		w.cluster.delete(node)
	},
	"template changed": func(w *world) {
		w.running()
		w.edit(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"pool": "b"} })
	},
	"tags changed": func(w *world) {
		w.fields = []string{"tags"}
		w.becomes(spec("s", "team", "a", "old", "yes"))
		w.running()
		w.becomes(spec("s", "team", "b"))
	},
	"tags refused": func(w *world) {
		w.fields = []string{"tags"}
		w.becomes(spec("s"))
		w.running()
		w.edit(ownedBySet)
		w.becomes(spec("s", "team", "b"))
		w.provider.faults = func(call codes.Call) fault {
			if call == codes.UpdateMachine {
				return fault{code: codes.Unimplemented}
			}
			return fault{}
		}
	},
	"virtual capacity changed": func(w *world) {
		w.class.NodeTemplate = &machine.NodeShape{VirtualCapacity: map[string]string{"example.org/slots": "4"}}
		w.running()
		w.class.NodeTemplate = &machine.NodeShape{VirtualCapacity: map[string]string{"example.org/lanes": "2"}}
	},
	"deletion": func(w *world) {
		w.running()
		w.store.remove()
	},
	"deletion with lost names": func(w *world) {
		w.running()
		w.edit(func(m *machine.Machine) { m.Spec.NodeName, m.Spec.ProviderID = "", "" })
		w.cluster.change(node, func(n *machine.Node) { delete(n.Labels, w.policy.Keys.NodeMachine) })
		w.store.remove()
	},
	"deletion of a new machine": func(w *world) {
		w.give()
		w.store.remove()
	},
	"deletion without cluster": func(w *world) {
		w.cluster = nil
		w.running()
		w.store.remove()
	},
	"deletion with a drain": func(w *world) {
		w.running()
		w.drains(2, time.Minute, 0)
		w.store.remove()
	},
	"deletion with a drain by force": func(w *world) {
		w.running()
		d := w.drains(0, 0, 2)
		d.volumes, d.held = 1, 30*time.Second
		w.store.remove()
	},
	"in-place update": func(w *world) {
		w.updating(machine.UpdateSuccessful)
		w.owner.moves = true
	},
	"in-place update that waits for its owner": func(w *world) { w.updating(machine.UpdateSuccessful) },
	"in-place update that fails":               func(w *world) { w.updating(machine.UpdateFailed) },
	"in-place update that is never answered":   func(w *world) { w.updating("") },
	"in-place update withdrawn before it began": func(w *world) {
		w.updating("")
		w.ask(machine.InPlaceCandidate)
		w.passes(&shell{w: w})
		w.ask(machine.InPlaceNone)
	},
	"in-place update withdrawn while draining": func(w *world) {
		w.updating("")
		w.cluster.drain.stuck = 1
		w.passes(&shell{w: w})
		w.ask(machine.InPlaceNone)
	},
	"in-place update withdrawn too late": func(w *world) {
		w.updating(machine.UpdateSuccessful)
		w.cluster.drain.pods = 0
		w.passes(&shell{w: w})
		w.ask(machine.InPlaceNone)
	},
	"failed in-place update withdrawn": func(w *world) {
		w.updating(machine.UpdateFailed)
		w.patient()
		(&shell{w: w}).settle(bound)
		w.ask(machine.InPlaceNone)
	},
}

// updating brings a machine up that is selected for an in-place update, with
// two pods that leave and an agent.
func (w *world) updating(answer string) {
	w.running()
	w.drains(2, time.Minute, 0)
	w.cluster.agent = agentModel{answer: answer, takes: 5 * time.Minute}
	w.ask(machine.InPlaceSelected)
}

// patient never marks the machine failed for its health.
func (w *world) patient() {
	m := w.store.live().Clone()
	m.Spec.Config.DisableHealthTimeout = true
	w.store.force(m)
}

// running gives a machine and brings it up.
func (w *world) running() {
	w.give()
	(&shell{w: w}).settle(bound)
	require.True(w.t, w.store.live().Ready())
	w.calls = 0
}

// P26: killing the shell at any port call, before or after it took effect, and
// going on with a fresh process, whose first reads may be as old as can be,
// leads to the same settled state as no kill.
// Invariants: P26 P44
func TestP26KilledAnywhere(t *testing.T) {
	for name, prepare := range scenarios {
		t.Run(name, func(t *testing.T) {
			calm := newWorld(t)
			prepare(calm)
			calm.calls = 0
			(&shell{w: calm}).settle(30)
			want, calls := settled(calm), calm.calls
			require.Positive(t, calls)
			for killAt := 1; killAt <= calls; killAt++ {
				for mode := range 4 {
					w := newWorld(t)
					prepare(w)
					w.calls = 0
					w.killAt, w.after = killAt, mode&1 == 1
					kill(w, mode&2 == 2)
					require.Equal(t, want, settled(w), "killed at call %d of %d, after it: %t, stale: %t",
						killAt, calls, w.after, mode&2 == 2)
					quiet(w)
				}
			}
		})
	}
}

// kill runs a world through its kill to the end.
func kill(w *world, stale bool) {
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

// quiet holds a settled world to P28: nothing is written or called any more,
// at once and much later.
func quiet(w *world) {
	writes, calls := w.store.writes, w.calls
	s := &shell{w: w, noInitialize: true}
	for range 3 {
		_, gone, err := s.reconcile()
		require.NoError(w.t, err)
		if gone {
			return
		}
		require.Equal(w.t, writes, w.store.writes, "P28: a settled machine was written")
		w.pass(7 * time.Hour)
	}
	if m := w.store.live(); m.Ready() { // others may look for their node once a process
		require.Equal(w.t, calls, w.calls, "P28: a settled machine had calls made")
	}
}
