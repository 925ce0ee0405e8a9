package machine_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// requestDeletion requests the machine's deletion.
func (s *story) requestDeletion() {
	s.store.remove()
	s.comment("deletion is asked for")
}

var deletionStories = map[string]func(*story){
	"deletion": func(s *story) {
		s.toRunning()
		s.requestDeletion()
		s.reconcile()
	},
	"deletion of a failed machine": func(s *story) {
		s.toRunning()
		s.cluster.setReady(node, object.False)
		s.later(0, "the kubelet is not ready")
		s.wait()
		s.requestDeletion()
		s.reconcile()
		s.comment("the node said of its end: %v", s.cluster.cached(node, 1).Conditions[2].Reason)
	},
	"deletion of a new machine": func(s *story) {
		s.createMachine()
		s.requestDeletion()
		s.reconcile()
	},
	"deletion of a new machine without class": func(s *story) {
		s.class = nil
		s.createMachine()
		s.reconcile()
		s.requestDeletion()
		s.reconcile()
	},
	"deletion during creation": func(s *story) {
		s.provider.faults = func(call codes.Call) fault {
			if call == codes.CreateMachine {
				s.requestDeletion()
			}
			return fault{}
		}
		s.createMachine()
		s.reconcile()
	},
	"deletion without cluster": func(s *story) {
		s.cluster = nil
		s.createMachine()
		s.reconcile()
		s.requestDeletion()
		s.reconcile()
	},
	"deletion without finalizer": func(s *story) {
		s.toRunning()
		s.store.remove()
		m := s.store.live().Clone()
		m.Finalizers = []string{"somebody/else"}
		s.store.force(m)
		s.later(0, "deletion is asked for, and our finalizer is gone but somebody else's is not")
	},
	"deletion with the class gone": func(s *story) {
		s.toRunning()
		class := s.class
		s.class = nil
		s.requestDeletion()
		s.reconcile()
		s.later(time.Second, "somebody looks")
		s.class = class
		s.later(time.Minute, "somebody restores the class")
	},
	"provider refuses to delete": func(s *story) {
		s.toRunning()
		s.failing(codes.DeleteMachine, codes.PreconditionFailed, false)
		s.requestDeletion()
		s.reconcile()
		s.failing(codes.DeleteMachine, codes.Unavailable, false)
		s.wait()
		s.wait()
		s.failing(codes.DeleteMachine, codes.OK, false)
		s.comment("the provider does it at last")
		s.wait()
	},
	"lost response to a delete": func(s *story) {
		s.toRunning()
		s.failing(codes.DeleteMachine, codes.DeadlineExceeded, true)
		s.requestDeletion()
		s.reconcile()
		s.failing(codes.DeleteMachine, codes.OK, false)
		s.wait()
	},
	"crash after the VM was deleted": func(s *story) {
		s.toRunning()
		s.requestDeletion()
		s.killAt, s.killAfter = s.calls+6, true
		s.reconcile()
		s.restart()
		s.reconcile()
	},
	"unknown stage": func(s *story) {
		s.toRunning()
		s.requestDeletion()
		m := s.store.live().Clone()
		m.Status.Phase = machine.PhaseTerminating
		m.Status.LastOperation = machine.Operation{Kind: machine.OperationDelete, Stage: "Meditating"}
		s.store.force(m)
		s.comment("storage says that the deletion is at stage Meditating")
		s.reconcile()
	},
	"unknown phase": func(s *story) {
		s.toRunning()
		m := s.store.live().Clone()
		m.Status.Phase = "Dancing"
		s.store.force(m)
		s.later(0, "storage says that the phase is Dancing")
		s.requestDeletion()
		s.reconcile()
	},
	"terminating although nobody asked": func(s *story) {
		s.toRunning()
		m := s.store.live().Clone()
		m.Status.Phase = machine.PhaseTerminating
		s.store.force(m)
		s.later(0, "storage says Terminating, but deletion was not asked for")
	},
}

func init() {
	for _, more := range []map[string]func(*story){deletionNodes, resumedStories, lateStories} {
		maps.Copy(deletionStories, more)
	}
}

// resumedStories are about a state that an earlier process, or another program, has stored.
var resumedStories = map[string]func(*story){
	"node that registers again before the record goes": func(s *story) {
		s.toRunning()
		s.requestDeletion()
		s.killAt = s.calls + 10
		s.reconcile()
		s.cluster.registeredBy[s.cluster.add(node).UID] = ours
		s.restart()
		s.comment("the kubelet was slow to stop: the node is there again")
		s.reconcile()
		s.comment("node %s: %t", node, s.cluster.live(node) != nil)
	},
	"unknown phase of a machine without VM": func(s *story) {
		s.createMachine(func(m *machine.Machine) { m.Status.Phase = "Dancing" })
		s.comment("storage says that the phase is Dancing")
		s.reconcile()
		s.later(time.Minute, "the node registers")
	},
	"VM of another program without cluster": func(s *story) {
		s.cluster = nil
		s.provider.vms = []*vm{{id: "p://7", name: ours}}
		s.createMachine(func(m *machine.Machine) { m.Spec.ProviderID = "p://7" })
		s.comment("another program has recorded a VM and no phase")
		s.reconcile()
	},
	"lost response without cluster": func(s *story) {
		s.cluster = nil
		s.failing(codes.CreateMachine, codes.DeadlineExceeded, true)
		s.createMachine()
		s.reconcile()
		s.wait()
	},
	"lost response beside a stale node": func(s *story) {
		s.cluster.add(node)
		s.advance(time.Hour)
		s.failing(codes.CreateMachine, codes.DeadlineExceeded, true)
		s.createMachine()
		s.reconcile()
		s.wait()
	},
	"announced without phase beside a stale node": func(s *story) {
		s.cluster.add(node)
		s.advance(time.Hour)
		s.provider.vms = []*vm{{id: "p://7", name: ours, node: node}}
		s.createMachine(func(m *machine.Machine) {
			m.Status.LastOperation = machine.Operation{Kind: machine.OperationCreate, State: machine.StateProcessing, Stage: machine.StageCreateVM}
		})
		s.comment("a create was announced, its VM is there, and no phase is stored")
		s.reconcile()
	},
	"VM lost after the cluster was detached": func(s *story) {
		s.toRunning()
		s.cluster, s.provider.vms = nil, nil
		s.reportMissingVM()
		s.later(time.Hour, "there is no cluster any more, and two listings did not name the VM")
	},
}

var deletionNodes = map[string]func(*story){
	"node name unknown": func(s *story) {
		s.toRunning()
		s.edit(func(m *machine.Machine) { m.Spec.NodeName = "" })
		s.cluster.change(node, func(n *machine.Node) { delete(n.Labels, s.policy.Keys.NodeMachine) })
		s.comment("the record has lost its node name, and the node its label")
		s.requestDeletion()
		s.reconcile()
	},
	"node name unknown and driver unavailable": func(s *story) {
		s.toRunning()
		s.edit(func(m *machine.Machine) { m.Spec.NodeName = "" })
		s.cluster.change(node, func(n *machine.Node) { delete(n.Labels, s.policy.Keys.NodeMachine) })
		s.failing(codes.GetMachineStatus, codes.Unavailable, false)
		s.comment("the record has lost its node name, and the node its label")
		s.requestDeletion()
		s.reconcile()
		s.later(2*time.Hour+time.Second, "the drain timeout is over, force is due")
	},
	"node name unknown but labelled": func(s *story) {
		s.toRunning()
		s.edit(func(m *machine.Machine) { m.Spec.NodeName = "" })
		s.comment("the record has lost its node name")
		s.requestDeletion()
		s.reconcile()
	},
	"node cannot be marked": func(s *story) {
		s.toRunning()
		s.cluster.faults = func(effect string) codes.Code {
			if effect == "MarkNode" {
				return codes.Unavailable
			}
			return codes.OK
		}
		s.requestDeletion()
		s.reconcile()
		s.wait()
		s.later(2*time.Hour+time.Second, "the drain timeout is over, force is due")
	},
	"forced by label": func(s *story) {
		s.toRunning()
		s.cluster.faults = func(effect string) codes.Code {
			if effect == "MarkNode" {
				return codes.Unavailable
			}
			return codes.OK
		}
		s.requestDeletion()
		s.reconcile()
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "True"} })
		s.later(time.Second, "the label force-deletion is set")
	},
	"forced while the cluster is away": func(s *story) {
		s.provider.boot = -1
		s.createMachine()
		s.reconcile()
		s.cluster.unreachable = true
		s.comment("the VM boots; the API server of the nodes does not answer, and the node is in no cache")
		s.requestDeletion()
		s.reconcile()
		s.later(time.Hour, "the API server still does not answer")
		s.later(time.Hour+time.Second, "the drain timeout is over, force is due")
		s.cluster.unreachable = false
		s.later(time.Minute, "the API server answers again")
	},
	"forced by a node that does not answer": func(s *story) {
		s.toRunning()
		s.cluster.setReady(node, object.Unknown)
		s.cluster.faults = func(effect string) codes.Code {
			if effect == "MarkNode" {
				return codes.Unavailable
			}
			return codes.OK
		}
		s.requestDeletion()
		s.failing(codes.DeleteMachine, codes.OK, false)
		s.reconcile()
		s.later(301*time.Second, "the node has not answered for five minutes")
	},
	"node cannot be deleted": func(s *story) {
		s.toRunning()
		s.cluster.faults = func(effect string) codes.Code {
			if effect == "DeleteNode" {
				return codes.PermissionDenied
			}
			return codes.OK
		}
		s.requestDeletion()
		s.reconcile()
		s.cluster.faults = nil
		s.comment("somebody grants the permission")
		s.wait()
	},
	"deletion with a node of another machine": func(s *story) {
		s.toRunning()
		s.cluster.change(node, func(n *machine.Node) { n.Labels[s.policy.Keys.NodeMachine] = "m-2" })
		s.comment("the node carries the name of machine m-2 now")
		s.requestDeletion()
		s.reconcile()
		s.comment("node %s: %t", node, s.cluster.live(node) != nil)
	},
	"deletion after a stale node": func(s *story) {
		s.cluster.add(node)
		s.advance(time.Hour)
		s.createMachine()
		s.failing(codes.DeleteMachine, codes.Unavailable, false)
		s.reconcile()
		s.failing(codes.DeleteMachine, codes.OK, false)
		s.requestDeletion()
		s.reconcile()
		s.comment("node %s, which was there before: %t", node, s.cluster.live(node) != nil)
	},
}

// failEffect makes an effect on the cluster fail from now on. codes.OK: it succeeds again.
func (s *story) failEffect(effect string, code codes.Code) {
	s.cluster.faults = func(e string) codes.Code {
		if e == effect {
			return code
		}
		return codes.OK
	}
}

// waitUpTo calls wait while the last plan has an At and the machine exists, at most so many times.
func (s *story) waitUpTo(most int) {
	for range most {
		if s.last.At.IsZero() || s.store.live() == nil {
			return
		}
		s.wait()
	}
}

// toSilentDrain requests the deletion of a machine with so many pods. During the drain its kubelet stops
// reporting.
func (s *story) toSilentDrain(pods int) *drainModel {
	s.toRunning()
	d := s.addDrain(pods, time.Hour, 0)
	s.requestDeletion()
	s.reconcile()
	s.cluster.setReady(node, object.Unknown)
	s.later(time.Minute, "the kubelet stops reporting")
	return d
}

// drainStories are about the pods and volumes of a node whose machine is being deleted.
var drainStories = map[string]func(*story){
	"drain of an empty node": func(s *story) {
		s.toRunning()
		s.addDrain(0, 0, 0)
		s.requestDeletion()
		s.reconcile()
	},
	"drain that takes its time": func(s *story) {
		s.toRunning()
		s.addDrain(3, 30*time.Second, 0)
		s.requestDeletion()
		s.reconcile()
		s.waitUpTo(5)
	},
	"drain that a budget holds up until a pod moves": func(s *story) {
		s.toRunning()
		s.addDrain(0, 0, 1)
		s.requestDeletion()
		s.reconcile()
		s.later(10*time.Minute, "somebody looks")
		s.cluster.drain.stuck = 0
		s.later(time.Minute, "the budget allows it")
	},
	"drain that is forced when its time is up": func(s *story) {
		s.toRunning()
		d := s.addDrain(0, 0, 2)
		d.volumes, d.detachAfter = 1, 40*time.Second
		s.requestDeletion()
		s.reconcile()
		s.waitUpTo(5)
	},
	"drain forced by label": func(s *story) {
		s.toRunning()
		s.addDrain(2, time.Minute, 1)
		s.requestDeletion()
		s.reconcile()
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.later(time.Second, "the label force-deletion is set")
	},
	"drain forced by a node that does not answer": func(s *story) {
		s.toSilentDrain(2)
		s.waitUpTo(3)
	},
	"drain not forced by what a cache still says": func(s *story) {
		s.toSilentDrain(2)
		s.cluster.setReady(node, object.True)
		ofMachine := true
		s.shell.lag = func() (lag int) { // first for the machine, then for the node
			if ofMachine = !ofMachine; ofMachine {
				lag = 1
			}
			return lag
		}
		s.later(5*time.Minute, "the kubelet reports again; the cache does not know")
	},
	"node that answers again before its volumes are detached": func(s *story) {
		d := s.toSilentDrain(1)
		d.volumes, d.detachAfter = 1, time.Hour
		s.wait()
		s.cluster.setReady(node, object.True)
		s.later(time.Minute, "the kubelet reports again")
		d.volumes = 0
		s.later(time.Second, "it has let go of them")
	},
	"detachment that has had its time needs no word of the node": func(s *story) {
		d := s.toSilentDrain(1)
		d.volumes, d.detachAfter = 1, time.Hour
		s.waitUpTo(2)
	},
	"drain that fails and is tried again": func(s *story) {
		s.toRunning()
		s.addDrain(0, 0, 0)
		s.failEffect("DrainNode", codes.Unavailable)
		s.requestDeletion()
		s.reconcile()
		s.wait()
		s.failEffect("", codes.OK)
		s.comment("the cluster answers again")
		s.wait()
	},
	"cluster away for longer than the drain timeout": func(s *story) {
		s.toRunning()
		s.addDrain(0, 0, 1).volumes = 1
		s.requestDeletion()
		s.reconcile()
		s.cluster.unreachable = true
		s.later(time.Hour, "the API server of the nodes does not answer")
		s.later(time.Hour+time.Second, "it has not answered for an hour; the manager has tried again every 3 min")
		s.wait()
		s.later(2*time.Minute, "it still does not answer, and the volumes have had their time")
		s.cluster.unreachable = false
		s.later(time.Minute, "it answers again")
	},
	"drain that fails even by force": func(s *story) {
		s.toRunning()
		s.addDrain(0, 0, 1)
		s.failEffect("DrainNode", codes.PermissionDenied)
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.requestDeletion()
		s.reconcile()
	},
	"drain that does not end even by force": func(s *story) {
		s.toRunning()
		s.addDrain(0, 0, 1).wedged = true
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.requestDeletion()
		s.reconcile()
		s.later(30*time.Second, "somebody looks")
		s.waitUpTo(2)
	},
	"volumes that are not detached in time": func(s *story) {
		s.toRunning()
		d := s.addDrain(0, 0, 1)
		d.volumes, d.detachAfter = 2, time.Hour
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.requestDeletion()
		s.reconcile()
		s.waitUpTo(3)
	},
	"volumes that nobody may detach": func(s *story) {
		s.toRunning()
		d := s.addDrain(0, 0, 1)
		d.volumes, d.detachAfter, d.refused = 1, time.Hour, "attachment a could not be deleted: no leave to delete"
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.requestDeletion()
		s.reconcile()
	},
	"volumes whose detaching fails": func(s *story) {
		s.toRunning()
		s.addDrain(0, 0, 1).volumes = 1
		s.failEffect("DetachVolumes", codes.Unavailable)
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.requestDeletion()
		s.reconcile()
		s.failEffect("", codes.OK)
		s.comment("the cluster answers again")
		s.wait()
	},
	"node goes while its volumes are detached": func(s *story) {
		s.toRunning()
		d := s.addDrain(0, 0, 1)
		d.volumes, d.detachAfter = 1, time.Hour
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.requestDeletion()
		s.reconcile()
		s.cluster.change(node, func(n *machine.Node) { n.Finalizers = nil })
		s.cluster.delete(node)
		s.later(time.Second, "somebody deletes the node, finalizer and all")
	},
	"node that a cache does not show is drained": func(s *story) {
		s.toRunning()
		s.addDrain(1, time.Minute, 0)
		s.requestDeletion()
		s.shell.lag = func() int { return 100 }
		s.cluster.nodes[node] = append([]*machine.Node{nil}, s.cluster.nodes[node]...)
		m := s.store.live()
		s.store.versions = []*machine.Machine{m}
		s.comment("the cache does not show the node")
		s.reconcile()
	},
	"crash while a node is drained": func(s *story) {
		s.toRunning()
		s.addDrain(2, time.Minute, 0)
		s.requestDeletion()
		s.killAt, s.killAfter = s.calls+4, true
		s.reconcile()
		s.restart()
		s.reconcile()
		s.waitUpTo(4)
		require.Nil(s.t, s.store.live())
	},
}

// hookStories are about hooks that block a deletion.
var hookStories = map[string]func(*story){
	"hook before the drain": func(s *story) {
		s.toRunning()
		s.addHooks("pre-drain.millwright-go/backup", "pre-drain.millwright-go/audit")
		s.requestDeletion()
		s.reconcile()
		s.removeHook("pre-drain.millwright-go/audit")
		s.removeHook("pre-drain.millwright-go/backup")
	},
	"hook before the VM goes": func(s *story) {
		s.toRunning()
		s.addHooks("pre-terminate.millwright-go/wipe")
		s.requestDeletion()
		s.reconcile()
		s.removeHook("pre-terminate.millwright-go/wipe")
	},
	"hook that nobody takes off": func(s *story) {
		s.toRunning()
		s.addHooks("pre-drain.millwright-go/forgotten")
		s.requestDeletion()
		s.reconcile()
		s.wait()
	},
	"hook and a deletion by force": func(s *story) {
		s.toRunning()
		s.addHooks("pre-drain.millwright-go/backup", "pre-terminate.millwright-go/wipe")
		s.requestDeletion()
		s.reconcile()
		s.comment("somebody forces it")
		s.force(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.reconcile()
	},
	"hook put on when the drain has begun": func(s *story) {
		s.toRunning()
		s.addDrain(1, 5*time.Minute, 0)
		s.requestDeletion()
		s.reconcile()
		s.addHooks("pre-terminate.millwright-go/wipe")
		s.waitUpTo(1)
		s.removeHook("pre-terminate.millwright-go/wipe")
	},
}

// TestHooksWithoutTimeoutHoldForever: with HookTimeout off, a hook blocks a deletion as long as it exists.
func TestHooksWithoutTimeoutHoldForever(t *testing.T) {
	for timeout, gone := range map[time.Duration]bool{0: true, object.Off: false} {
		w := newWorld(t)
		w.policy.HookTimeout = timeout
		w.createRunning()
		m := w.store.live().Clone()
		m.Annotations = map[string]string{"pre-terminate.millwright-go/wipe": ""}
		w.store.force(m)
		w.store.remove()
		w.runPass(&shell{w: w})
		require.NotEmpty(t, w.provider.vms, "the hook does not block the deletion")
		w.advance(1000 * time.Hour)
		w.runPass(&shell{w: w})
		require.Equal(t, gone, len(w.provider.vms) == 0, "timeout %s", timeout)
	}
}

// addHooks adds hooks, without a pass.
func (s *story) addHooks(names ...string) {
	s.comment("hooks are put on: %v", names)
	s.force(func(m *machine.Machine) {
		m.Annotations = map[string]string{}
		for _, name := range names {
			m.Annotations[name] = ""
		}
	})
}

// removeHook removes a hook, and runs a pass.
func (s *story) removeHook(name string) {
	s.comment("hook %s is taken off", name)
	s.force(func(m *machine.Machine) { delete(m.Annotations, name) })
	s.reconcile()
}
