package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// joinsLate has a machine be deleted before its node has joined, with a provider that does not delete
// its VM; the node joins 10 min after the deletion was asked for, with such pods.
func (s *story) joinsLate(pods, stuck int) {
	s.provider.boot = 10 * time.Minute
	s.drains(pods, time.Minute, stuck)
	s.give()
	s.run()
	s.failing(codes.DeleteMachine, codes.Unavailable, false)
	s.doomed()
	s.run()
	s.later(10*time.Minute, "the node joins with its pods")
}

// lateStories are about nodes that join after their machine's deletion has passed the drain.
var lateStories = map[string]func(*story){
	"node joins while its VM cannot be deleted": func(s *story) {
		s.joinsLate(2, 0)
		s.waits(2)
		s.failing(codes.DeleteMachine, codes.OK, false)
		s.say("the provider deletes VMs again")
		s.waits(4)
	},
	"node joins while a hook holds its VM": func(s *story) {
		s.provider.boot = 10 * time.Minute
		s.drains(1, time.Minute, 0)
		s.hookFrom("pre-terminate.millwright-go/wipe")
		s.doomed()
		s.run()
		s.later(10*time.Minute, "the node joins with its pods")
		s.waits(1)
		s.unhook("pre-terminate.millwright-go/wipe")
	},
	"node joins late and is drained by force": func(s *story) {
		s.joinsLate(0, 1)
		s.later(2*time.Hour+time.Second, "the drain timeout is over, force is due")
		s.wait()
		s.failing(codes.DeleteMachine, codes.OK, false)
		s.say("the provider deletes VMs again")
		s.waits(4)
	},
}

// hookFrom gives the machine with a hook.
func (s *story) hookFrom(hook string) {
	s.give(func(m *machine.Machine) { m.Annotations = map[string]string{hook: ""} })
	s.run()
}

// joining is a world in which a node joins while its machine's VM can't be deleted yet. Each DeleteMachine
// that deletes the VM is held to P53.
func joining(t require.TestingT, joins time.Duration, failures int, code codes.Code) *world {
	w := newWorld(t)
	w.provider.boot = joins
	w.provider.faults = func(call codes.Call) fault {
		if call != codes.DeleteMachine {
			return fault{}
		}
		if failures--; failures >= 0 {
			return fault{code: code}
		}
		if m := w.store.live(); w.cluster.live(node) != nil && !m.Status.DrainForced && m.Labels["force-deletion"] != "true" {
			require.Zero(t, w.cluster.drain.pods+w.cluster.drain.stuck, "P53: pods run on the node of a VM that goes")
		}
		return fault{}
	}
	return w
}

// TestP53NodesThatJoinLateAreDrained: a node may join at any time, after any answers of DeleteMachine,
// with hooks and kills: its VM goes when its pods have left.
// Invariants: P53
func TestP53NodesThatJoinLateAreDrained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom([]codes.Code{codes.Unavailable, codes.Internal, codes.DeadlineExceeded, codes.PermissionDenied}).Draw(t, "code")
		joins := time.Duration(rapid.IntRange(0, 3600).Draw(t, "joins")) * time.Second
		w := joining(t, joins, rapid.IntRange(0, 12).Draw(t, "failures"), code)
		w.drains(rapid.IntRange(1, 3).Draw(t, "pods"), time.Minute, 0)
		hook := w.policy.Keys.PreTerminateHook + "wipe"
		w.give(func(m *machine.Machine) {
			if rapid.Bool().Draw(t, "hook") {
				m.Annotations = map[string]string{hook: ""}
			}
		})
		w.passes(&shell{w: w})
		w.store.remove()
		w.killAt, w.after = w.calls+rapid.IntRange(1, 40).Draw(t, "kill"), rapid.Bool().Draw(t, "after")
		(&shell{w: w}).settle(80)
		require.Nil(t, w.store.live())
		require.Empty(t, w.provider.vms)
	})
}

// TestP53LateNodeByACache: a node that no cache shows yet is found before the VM goes.
// Invariants: P53
func TestP53LateNodeByACache(t *testing.T) {
	w := joining(t, time.Minute, 1, codes.Unavailable)
	w.drains(1, time.Minute, 0)
	w.give()
	w.passes(&shell{w: w})
	w.store.remove()
	s := &shell{w: w}
	w.passes(s)
	w.pass(time.Minute)
	w.cluster.nodes[node] = append([]*machine.Node{nil}, w.cluster.nodes[node]...)
	w.store.versions = []*machine.Machine{w.store.live()}
	s.lag = func() int { return 100 }
	w.passes(s)
	s.settle(bound)
	require.Nil(t, w.store.live())
}

// TestLateDrainsAreBounded: a node is drained once after its drain was given up by force, however often
// DeleteMachine fails, though it can't be marked; and force by the label drains none that joins late.
// Invariants: P53
func TestLateDrainsAreBounded(t *testing.T) {
	for name, label := range map[string]string{"by time": "", "by the label": "true"} {
		t.Run(name, func(t *testing.T) {
			w := joining(t, 10*time.Minute, 8, codes.Internal)
			w.drains(0, 0, 1)
			w.cluster.faults = func(effect string) codes.Code {
				if effect == "MarkNode" || effect == "DrainNode" {
					return codes.PermissionDenied
				}
				return codes.OK
			}
			w.give()
			w.passes(&shell{w: w})
			w.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": label} })
			w.store.remove()
			begun := w.now
			(&shell{w: w}).settle(80)
			require.Nil(t, w.store.live())
			require.Less(t, w.now.Sub(begun), 5*time.Hour)
			drains := 0
			for i, stage := range storedStages(w) {
				if i > 1 && stage == machine.StageInitiateDrain {
					drains++
				}
			}
			require.Equal(t, map[string]int{"": 1, "true": 0}[label], drains)
		})
	}
}

// TestLateDrainOfANodeThatRegistersAgain: a node that was drained, and was deleted since, may register
// again while its VM is there, with pods again.
// Invariants: P53
func TestLateDrainOfANodeThatRegistersAgain(t *testing.T) {
	w := joining(t, time.Second, 4, codes.Unavailable)
	w.running()
	d := w.drains(1, time.Minute, 0)
	w.store.remove()
	s := &shell{w: w}
	w.passes(s)
	w.pass(time.Minute)
	w.passes(s)
	require.Equal(t, machine.StageInitiateVMDeletion, w.store.live().Status.LastOperation.Stage)
	require.Zero(t, d.pods)
	w.cluster.change(node, func(n *machine.Node) { n.Finalizers = nil })
	w.cluster.delete(node)
	w.cluster.madeOf[w.cluster.add(node).UID] = ours
	d.pods, d.next = 2, time.Time{}
	s.settle(bound)
	require.Nil(t, w.store.live())
}

// TestLateDrainAfterAnOutage: force that was due because the cluster did not answer stays force. A node
// that is seen later does not keep the VM.
// Invariants: P53
func TestLateDrainAfterAnOutage(t *testing.T) {
	w := joining(t, -1, 8, codes.Internal)
	w.drains(0, 0, 1)
	w.give()
	s := &shell{w: w}
	w.passes(s)
	w.cluster.away = true
	w.store.remove()
	for begun := w.now; w.now.Before(begun.Add(4 * time.Hour)); {
		if w.cluster.live(node) == nil && w.now.After(begun.Add(2*time.Hour+10*time.Minute)) {
			w.cluster.madeOf[w.cluster.add(node).UID] = ours
		}
		if plan, _, err := s.reconcile(); err == nil && plan.At.After(w.now) {
			w.now = plan.At
			continue
		}
		w.pass(time.Minute)
	}
	require.NotNil(t, w.cluster.live(node))
	require.Empty(t, w.provider.vms)
}

// TestP53NodeOfAVMThatWasMadeLate: a create that had not ended when the drain was passed over may make a
// VM whose node's name is not recorded. The driver is asked for it before the VM goes.
// Invariants: P53
func TestP53NodeOfAVMThatWasMadeLate(t *testing.T) {
	w := joining(t, 10*time.Minute, 12, codes.Unavailable)
	w.drains(2, time.Minute, 0)
	deleting := w.provider.faults
	w.provider.lag = 5 * time.Minute
	w.provider.faults = func(call codes.Call) fault {
		if call == codes.CreateMachine {
			return fault{code: codes.DeadlineExceeded, done: true}
		}
		return deleting(call)
	}
	w.give()
	w.passes(&shell{w: w})
	require.Len(t, w.provider.vms, 1)
	w.store.remove()
	(&shell{w: w}).settle(80)
	require.Nil(t, w.store.live())
	require.Empty(t, w.provider.vms)
	require.Contains(t, storedStages(w)[1:], machine.StageInitiateDrain)
}

// TestNamesAreNotAskedForUnderAHook: a machine that names no node is changed again and again while a hook
// holds its VM, and the driver is not asked each time.
func TestNamesAreNotAskedForUnderAHook(t *testing.T) {
	w := newWorld(t)
	hook := w.policy.Keys.PreTerminateHook + "wipe"
	w.provider.faults = func(call codes.Call) fault {
		if call == codes.CreateMachine {
			return fault{code: codes.DeadlineExceeded}
		}
		return fault{}
	}
	w.give(func(m *machine.Machine) { m.Annotations = map[string]string{hook: ""} })
	w.passes(&shell{w: w})
	w.store.remove()
	w.passes(&shell{w: w})
	asked := w.provider.calls[codes.GetMachineStatus]
	for range 5 {
		w.pass(10 * time.Second)
		w.passes(&shell{w: w})
	}
	require.Equal(t, asked, w.provider.calls[codes.GetMachineStatus])
	require.Equal(t, machine.StageInitiateVMDeletion, w.store.live().Status.LastOperation.Stage)
}
