package machine_test

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// driverStories are about drivers and owners that do not quite do as they should.
var driverStories = map[string]func(*story){
	"driver gives no provider ID": func(s *story) {
		s.provider.noStatus = true
		s.provider.blank = func(answer *machine.VM) { answer.ProviderID = "" }
		s.give()
		s.run()
		s.provider.blank = nil
		s.say("the driver is repaired")
		s.wait()
		s.later(time.Minute, "the node joins")
	},
	"driver gives no node name": func(s *story) {
		s.provider.noStatus = true
		s.provider.blank = func(answer *machine.VM) { answer.NodeName = "" }
		s.give()
		s.run()
		s.doomed()
		s.run()
	},
	"node name known after initialization": func(s *story) {
		s.provider.nameless, s.provider.hasInit = true, true
		s.provider.vms = []*vm{{id: "p://old", name: ours, node: node}}
		s.give()
		s.run()
	},
	"status uninitialized without provider ID": func(s *story) {
		s.failing(codes.GetMachineStatus, codes.Uninitialized, false)
		s.give()
		s.run()
	},
	"status uninitialized without a response": func(s *story) {
		s.provider.bare, s.provider.hasInit = true, true
		s.killAt, s.after = s.calls+3, true
		s.give()
		s.run()
		s.restart()
		s.run()
	},
	"initialization tells no provider ID": func(s *story) {
		s.provider.bare, s.provider.hasInit, s.provider.anonymous = true, true, true
		s.killAt, s.after = s.calls+3, true
		s.give()
		s.run()
		s.restart()
		s.run()
		s.wait()
	},
	"status of a recorded VM fails": func(s *story) {
		s.provider.hasInit = true
		s.failing(codes.InitializeMachine, codes.Uninitialized, false)
		s.give()
		s.run()
		s.failing(codes.GetMachineStatus, codes.PermissionDenied, false)
		s.wait()
	},
	"class goes while the VM is initialized": func(s *story) {
		s.provider.hasInit = true
		s.failing(codes.InitializeMachine, codes.Internal, false)
		s.give()
		s.run()
		s.class = nil
		s.later(time.Second, "somebody deletes the class")
	},
	"class goes before initialization": func(s *story) {
		s.provider.hasInit = true
		s.give()
		s.killAt, s.after = 5, true
		s.run()
		s.restart()
		s.class = nil
		s.later(time.Second, "somebody deletes the class")
	},
	"recorded VM is gone before it is initialized": func(s *story) {
		s.provider.hasInit = true
		s.failing(codes.InitializeMachine, codes.Internal, false)
		s.give()
		s.run()
		s.provider.vms = nil
		s.failing(codes.InitializeMachine, codes.OK, false)
		s.say("somebody deletes the VM by hand")
		s.wait()
		s.wait()
	},
	"stale node by its provider ID": func(s *story) {
		s.policy.ProviderIDsMatch = true
		s.give()
		s.cluster.add(node, func(n *machine.Node) { n.ProviderID = "p://other" })
		s.say("a node %s joins that is another VM's", node)
		s.run()
	},
	"node by its provider ID in another spelling": func(s *story) {
		s.policy.ProviderIDsMatch = true
		s.give()
		n := s.cluster.add(node, func(n *machine.Node) { n.ProviderID = "P://1/" })
		s.cluster.madeOf[n.UID] = "m-1"
		s.say("node %s joins, with the VM's ID in another spelling", node)
		s.run()
		s.doomed()
		s.run()
		s.say("node %s: %t", node, s.cluster.live(node) != nil)
	},
	"node that another VM takes over": func(s *story) {
		s.policy.ProviderIDsMatch = true
		s.toRunning()
		s.cluster.change(node, func(n *machine.Node) { n.ProviderID = "p://other" })
		s.later(time.Minute, "the node has the ID of another VM now, with our label")
		s.cluster.delete(node)
		s.later(time.Minute, "somebody deletes the node")
		s.doomed()
		s.run()
		s.say("node %s: %t", node, s.cluster.live(node) != nil)
	},
	"deletion after a stale node by its provider ID": func(s *story) {
		s.policy.ProviderIDsMatch = true
		s.give()
		s.cluster.add(node, func(n *machine.Node) { n.ProviderID = "p://other" })
		s.failing(codes.DeleteMachine, codes.Unavailable, false)
		s.run()
		s.doomed()
		s.killAt, s.after = s.calls+7, false
		s.failing(codes.DeleteMachine, codes.OK, false)
		s.run()
		s.restart()
		s.run()
		s.say("node %s, which is another VM's: %t", node, s.cluster.live(node) != nil)
	},
	"node deleted while joining": func(s *story) {
		s.cluster.unready = true
		s.give()
		s.run()
		s.later(time.Minute, "the node registers, not ready")
		s.cluster.delete(node)
		s.later(time.Second, "somebody deletes it")
	},
	"template names keys of ours": func(s *story) {
		s.toRunning(func(m *machine.Machine) {
			m.Spec.NodeTemplate.Labels = map[string]string{s.policy.Keys.NodeMachine: "mine"}
			m.Spec.NodeTemplate.Taints = []object.Taint{{Key: s.policy.Keys.NotReadyTaint, Effect: object.NoSchedule}}
		})
		s.shape()
		s.edit(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels["pool"] = "a" })
		s.later(time.Minute, "the owner adds a label")
		s.shape()
	},
	"class and node name gone": func(s *story) {
		s.toRunning()
		s.edit(func(m *machine.Machine) { m.Spec.NodeName = "" })
		s.cluster.change(node, func(n *machine.Node) { delete(n.Labels, s.policy.Keys.NodeMachine) })
		s.class = nil
		s.doomed()
		s.run()
	},
	"node goes while it is drained": func(s *story) {
		s.toRunning()
		s.doomed()
		s.killAt, s.after = s.calls+3, true
		s.run()
		s.cluster.change(node, func(n *machine.Node) { n.Finalizers = nil })
		s.cluster.delete(node)
		s.restart()
		s.run()
	},
	"cluster detached": func(s *story) {
		s.toRunning()
		s.cluster = nil
		s.later(time.Hour, "there is no cluster any more")
		s.doomed()
		s.run()
	},
}
