package machine_test

import (
	"maps"
	"time"

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
