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

// doomed asks for the machine's deletion.
func (s *story) doomed() {
	s.store.remove()
	s.say("deletion is asked for")
}

var deletionStories = map[string]func(*story){
	"deletion": func(s *story) {
		s.toRunning()
		s.doomed()
		s.run()
	},
	"deletion of a failed machine": func(s *story) {
		s.toRunning()
		s.cluster.ready(node, object.False)
		s.later(0, "the kubelet is not ready")
		s.wait()
		s.doomed()
		s.run()
		s.say("the node said of its end: %v", s.cluster.cached(node, 1).Conditions[2].Reason)
	},
	"deletion of a new machine": func(s *story) {
		s.give()
		s.doomed()
		s.run()
	},
	"deletion of a new machine without class": func(s *story) {
		s.class = nil
		s.give()
		s.run()
		s.doomed()
		s.run()
	},
	"deletion during creation": func(s *story) {
		s.provider.faults = func(call codes.Call) fault {
			if call == codes.CreateMachine {
				s.doomed()
			}
			return fault{}
		}
		s.give()
		s.run()
	},
	"deletion without cluster": func(s *story) {
		s.cluster = nil
		s.give()
		s.run()
		s.doomed()
		s.run()
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
		s.doomed()
		s.run()
		s.later(time.Second, "somebody looks")
		s.class = class
		s.later(time.Minute, "somebody restores the class")
	},
	"provider refuses to delete": func(s *story) {
		s.toRunning()
		s.failing(codes.DeleteMachine, codes.PreconditionFailed, false)
		s.doomed()
		s.run()
		s.failing(codes.DeleteMachine, codes.Unavailable, false)
		s.wait()
		s.wait()
		s.failing(codes.DeleteMachine, codes.OK, false)
		s.say("the provider does it at last")
		s.wait()
	},
	"lost response to a delete": func(s *story) {
		s.toRunning()
		s.failing(codes.DeleteMachine, codes.DeadlineExceeded, true)
		s.doomed()
		s.run()
		s.failing(codes.DeleteMachine, codes.OK, false)
		s.wait()
	},
	"crash after the VM was deleted": func(s *story) {
		s.toRunning()
		s.doomed()
		s.killAt, s.after = s.calls+6, true
		s.run()
		s.restart()
		s.run()
	},
	"unknown stage": func(s *story) {
		s.toRunning()
		s.doomed()
		m := s.store.live().Clone()
		m.Status.Phase = machine.PhaseTerminating
		m.Status.LastOperation = machine.Operation{Kind: machine.OperationDelete, Stage: "Meditating"}
		s.store.force(m)
		s.say("storage says that the deletion is at stage Meditating")
		s.run()
	},
	"unknown phase": func(s *story) {
		s.toRunning()
		m := s.store.live().Clone()
		m.Status.Phase = "Dancing"
		s.store.force(m)
		s.later(0, "storage says that the phase is Dancing")
		s.doomed()
		s.run()
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

// resumedStories are about what an earlier process, or another program, has stored.
var resumedStories = map[string]func(*story){
	"node that registers again before the record goes": func(s *story) {
		s.toRunning()
		s.doomed()
		s.killAt = s.calls + 10
		s.run()
		s.cluster.madeOf[s.cluster.add(node).UID] = ours
		s.restart()
		s.say("the kubelet was slow to stop: the node is there again")
		s.run()
		s.say("node %s: %t", node, s.cluster.live(node) != nil)
	},
	"unknown phase of a machine without VM": func(s *story) {
		s.give(func(m *machine.Machine) { m.Status.Phase = "Dancing" })
		s.say("storage says that the phase is Dancing")
		s.run()
		s.later(time.Minute, "the node registers")
	},
	"VM of another program without cluster": func(s *story) {
		s.cluster = nil
		s.provider.vms = []*vm{{id: "p://7", name: ours}}
		s.give(func(m *machine.Machine) { m.Spec.ProviderID = "p://7" })
		s.say("another program has recorded a VM and no phase")
		s.run()
	},
	"lost response without cluster": func(s *story) {
		s.cluster = nil
		s.failing(codes.CreateMachine, codes.DeadlineExceeded, true)
		s.give()
		s.run()
		s.wait()
	},
	"lost response beside a stale node": func(s *story) {
		s.cluster.add(node)
		s.pass(time.Hour)
		s.failing(codes.CreateMachine, codes.DeadlineExceeded, true)
		s.give()
		s.run()
		s.wait()
	},
	"announced without phase beside a stale node": func(s *story) {
		s.cluster.add(node)
		s.pass(time.Hour)
		s.provider.vms = []*vm{{id: "p://7", name: ours, node: node}}
		s.give(func(m *machine.Machine) {
			m.Status.LastOperation = machine.Operation{Kind: machine.OperationCreate, State: machine.StateProcessing, Stage: machine.StageCreateVM}
		})
		s.say("a create was announced, its VM is there, and no phase is stored")
		s.run()
	},
	"VM lost after the cluster was detached": func(s *story) {
		s.toRunning()
		s.cluster, s.provider.vms = nil, nil
		s.unlisted()
		s.later(time.Hour, "there is no cluster any more, and two listings did not name the VM")
	},
}

var deletionNodes = map[string]func(*story){
	"node name unknown": func(s *story) {
		s.toRunning()
		s.edit(func(m *machine.Machine) { m.Spec.NodeName = "" })
		s.cluster.change(node, func(n *machine.Node) { delete(n.Labels, s.policy.Keys.NodeMachine) })
		s.say("the record has lost its node name, and the node its label")
		s.doomed()
		s.run()
	},
	"node name unknown and driver unavailable": func(s *story) {
		s.toRunning()
		s.edit(func(m *machine.Machine) { m.Spec.NodeName = "" })
		s.cluster.change(node, func(n *machine.Node) { delete(n.Labels, s.policy.Keys.NodeMachine) })
		s.failing(codes.GetMachineStatus, codes.Unavailable, false)
		s.say("the record has lost its node name, and the node its label")
		s.doomed()
		s.run()
		s.later(2*time.Hour+time.Second, "the drain timeout is over, force is due")
	},
	"node name unknown but labelled": func(s *story) {
		s.toRunning()
		s.edit(func(m *machine.Machine) { m.Spec.NodeName = "" })
		s.say("the record has lost its node name")
		s.doomed()
		s.run()
	},
	"node cannot be marked": func(s *story) {
		s.toRunning()
		s.cluster.faults = func(effect string) codes.Code {
			if effect == "MarkNode" {
				return codes.Unavailable
			}
			return codes.OK
		}
		s.doomed()
		s.run()
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
		s.doomed()
		s.run()
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "True"} })
		s.later(time.Second, "the label force-deletion is set")
	},
	"forced while the cluster is away": func(s *story) {
		s.provider.boot = -1
		s.give()
		s.run()
		s.cluster.away = true
		s.say("the VM boots; the API server of the nodes does not answer, and the node is in no cache")
		s.doomed()
		s.run()
		s.later(time.Hour, "the API server still does not answer")
		s.later(time.Hour+time.Second, "the drain timeout is over, force is due")
		s.cluster.away = false
		s.later(time.Minute, "the API server answers again")
	},
	"forced by a node that does not answer": func(s *story) {
		s.toRunning()
		s.cluster.ready(node, object.Unknown)
		s.cluster.faults = func(effect string) codes.Code {
			if effect == "MarkNode" {
				return codes.Unavailable
			}
			return codes.OK
		}
		s.doomed()
		s.failing(codes.DeleteMachine, codes.OK, false)
		s.run()
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
		s.doomed()
		s.run()
		s.cluster.faults = nil
		s.say("somebody grants the permission")
		s.wait()
	},
	"deletion with a node of another machine": func(s *story) {
		s.toRunning()
		s.cluster.change(node, func(n *machine.Node) { n.Labels[s.policy.Keys.NodeMachine] = "m-2" })
		s.say("the node carries the name of machine m-2 now")
		s.doomed()
		s.run()
		s.say("node %s: %t", node, s.cluster.live(node) != nil)
	},
	"deletion after a stale node": func(s *story) {
		s.cluster.add(node)
		s.pass(time.Hour)
		s.give()
		s.failing(codes.DeleteMachine, codes.Unavailable, false)
		s.run()
		s.failing(codes.DeleteMachine, codes.OK, false)
		s.doomed()
		s.run()
		s.say("node %s, which was there before: %t", node, s.cluster.live(node) != nil)
	},
}

// refuse has an effect on the cluster fail from now on; codes.OK: no more.
func (s *story) refuse(effect string, code codes.Code) {
	s.cluster.faults = func(e string) codes.Code {
		if e == effect {
			return code
		}
		return codes.OK
	}
}

// waits lets passes follow each other for as long as the machine waits for a
// time and is there.
func (s *story) waits(most int) {
	for range most {
		if s.last.At.IsZero() || s.store.live() == nil {
			return
		}
		s.wait()
	}
}

// silenced has a machine with such pods be deleted, and its kubelet fall silent amid
// its drain.
func (s *story) silenced(pods int) *drainModel {
	s.toRunning()
	d := s.drains(pods, time.Hour, 0)
	s.doomed()
	s.run()
	s.cluster.ready(node, object.Unknown)
	s.later(time.Minute, "the kubelet stops reporting")
	return d
}

// drainStories are about the pods and volumes of a node that goes.
var drainStories = map[string]func(*story){
	"drain of an empty node": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 0)
		s.doomed()
		s.run()
	},
	"drain that takes its time": func(s *story) {
		s.toRunning()
		s.drains(3, 30*time.Second, 0)
		s.doomed()
		s.run()
		s.waits(5)
	},
	"drain that a budget holds up until a pod moves": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 1)
		s.doomed()
		s.run()
		s.later(10*time.Minute, "somebody looks")
		s.cluster.drain.stuck = 0
		s.later(time.Minute, "the budget allows it")
	},
	"drain that is forced when its time is up": func(s *story) {
		s.toRunning()
		d := s.drains(0, 0, 2)
		d.volumes, d.held = 1, 40*time.Second
		s.doomed()
		s.run()
		s.waits(5)
	},
	"drain forced by label": func(s *story) {
		s.toRunning()
		s.drains(2, time.Minute, 1)
		s.doomed()
		s.run()
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.later(time.Second, "the label force-deletion is set")
	},
	"drain forced by a node that does not answer": func(s *story) {
		s.silenced(2)
		s.waits(3)
	},
	"drain not forced by what a cache still says": func(s *story) {
		s.silenced(2)
		s.cluster.ready(node, object.True)
		machines := true
		s.shell.lag = func() (lag int) {
			if machines = !machines; machines {
				lag = 1 // of the node
			}
			return lag
		}
		s.later(5*time.Minute, "the kubelet reports again; the cache does not know")
	},
	"node that answers again before its volumes are detached": func(s *story) {
		d := s.silenced(1)
		d.volumes, d.held = 1, time.Hour
		s.wait()
		s.cluster.ready(node, object.True)
		s.later(time.Minute, "the kubelet reports again")
		d.volumes = 0
		s.later(time.Second, "it has let go of them")
	},
	"detachment that has had its time needs no word of the node": func(s *story) {
		d := s.silenced(1)
		d.volumes, d.held = 1, time.Hour
		s.waits(2)
	},
	"drain that fails and is tried again": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 0)
		s.refuse("DrainNode", codes.Unavailable)
		s.doomed()
		s.run()
		s.wait()
		s.refuse("", codes.OK)
		s.say("the cluster answers again")
		s.wait()
	},
	"cluster away for longer than the drain timeout": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 1).volumes = 1
		s.doomed()
		s.run()
		s.cluster.away = true
		s.later(time.Hour, "the API server of the nodes does not answer")
		s.later(time.Hour+time.Second, "it has not answered for an hour; the manager has tried again every 3 min")
		s.wait()
		s.later(2*time.Minute, "it still does not answer, and the volumes have had their time")
		s.cluster.away = false
		s.later(time.Minute, "it answers again")
	},
	"drain that fails even by force": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 1)
		s.refuse("DrainNode", codes.PermissionDenied)
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.doomed()
		s.run()
	},
	"drain that does not end even by force": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 1).wedged = true
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.doomed()
		s.run()
		s.later(30*time.Second, "somebody looks")
		s.waits(2)
	},
	"volumes that are not detached in time": func(s *story) {
		s.toRunning()
		d := s.drains(0, 0, 1)
		d.volumes, d.held = 2, time.Hour
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.doomed()
		s.run()
		s.waits(3)
	},
	"volumes that nobody may detach": func(s *story) {
		s.toRunning()
		d := s.drains(0, 0, 1)
		d.volumes, d.held, d.refused = 1, time.Hour, "attachment a could not be deleted: no leave to delete"
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.doomed()
		s.run()
	},
	"volumes whose detaching fails": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 1).volumes = 1
		s.refuse("DetachVolumes", codes.Unavailable)
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.doomed()
		s.run()
		s.refuse("", codes.OK)
		s.say("the cluster answers again")
		s.wait()
	},
	"node goes while its volumes are detached": func(s *story) {
		s.toRunning()
		d := s.drains(0, 0, 1)
		d.volumes, d.held = 1, time.Hour
		s.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.doomed()
		s.run()
		s.cluster.change(node, func(n *machine.Node) { n.Finalizers = nil })
		s.cluster.delete(node)
		s.later(time.Second, "somebody deletes the node, finalizer and all")
	},
	"node that a cache does not show is drained": func(s *story) {
		s.toRunning()
		s.drains(1, time.Minute, 0)
		s.doomed()
		s.shell.lag = func() int { return 100 }
		s.cluster.nodes[node] = append([]*machine.Node{nil}, s.cluster.nodes[node]...)
		m := s.store.live()
		s.store.versions = []*machine.Machine{m}
		s.say("the cache does not show the node")
		s.run()
	},
	"crash while a node is drained": func(s *story) {
		s.toRunning()
		s.drains(2, time.Minute, 0)
		s.doomed()
		s.killAt, s.after = s.calls+4, true
		s.run()
		s.restart()
		s.run()
		s.waits(4)
		require.Nil(s.t, s.store.live())
	},
}

// holdStories are about hooks that hold a deletion back.
var holdStories = map[string]func(*story){
	"hook before the drain": func(s *story) {
		s.toRunning()
		s.hook("pre-drain.millwright-go/backup", "pre-drain.millwright-go/audit")
		s.doomed()
		s.run()
		s.unhook("pre-drain.millwright-go/audit")
		s.unhook("pre-drain.millwright-go/backup")
	},
	"hook before the VM goes": func(s *story) {
		s.toRunning()
		s.hook("pre-terminate.millwright-go/wipe")
		s.doomed()
		s.run()
		s.unhook("pre-terminate.millwright-go/wipe")
	},
	"hook that nobody takes off": func(s *story) {
		s.toRunning()
		s.hook("pre-drain.millwright-go/forgotten")
		s.doomed()
		s.run()
		s.wait()
	},
	"hook and a deletion by force": func(s *story) {
		s.toRunning()
		s.hook("pre-drain.millwright-go/backup", "pre-terminate.millwright-go/wipe")
		s.doomed()
		s.run()
		s.say("somebody forces it")
		s.force(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.run()
	},
	"hook put on when the drain has begun": func(s *story) {
		s.toRunning()
		s.drains(1, 5*time.Minute, 0)
		s.doomed()
		s.run()
		s.hook("pre-terminate.millwright-go/wipe")
		s.waits(1)
		s.unhook("pre-terminate.millwright-go/wipe")
	},
}

// TestHooksHoldWithoutEnd: with HookTimeout off a hook holds a deletion back for as long as it is there.
func TestHooksHoldWithoutEnd(t *testing.T) {
	for timeout, gone := range map[time.Duration]bool{0: true, object.Off: false} {
		w := newWorld(t)
		w.policy.HookTimeout = timeout
		w.running()
		m := w.store.live().Clone()
		m.Annotations = map[string]string{"pre-terminate.millwright-go/wipe": ""}
		w.store.force(m)
		w.store.remove()
		w.passes(&shell{w: w})
		require.NotEmpty(t, w.provider.vms, "it holds the deletion back")
		w.pass(1000 * time.Hour)
		w.passes(&shell{w: w})
		require.Equal(t, gone, len(w.provider.vms) == 0, "timeout %s", timeout)
	}
}

func (s *story) hook(names ...string) {
	s.say("hooks are put on: %v", names)
	s.force(func(m *machine.Machine) {
		m.Annotations = map[string]string{}
		for _, name := range names {
			m.Annotations[name] = ""
		}
	})
}

func (s *story) unhook(name string) {
	s.say("hook %s is taken off", name)
	s.force(func(m *machine.Machine) { delete(m.Annotations, name) })
	s.run()
}
