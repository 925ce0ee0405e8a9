package machine_test

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

var creationStories = map[string]func(*story){
	"creation": func(s *story) {
		s.createMachine()
		s.reconcile()
		s.later(time.Minute, "the node registers, healthy")
		s.later(time.Hour, "nothing has changed")
	},
	"creation without finalizer": func(s *story) {
		s.createMachine(func(m *machine.Machine) { m.Finalizers = nil })
		s.reconcile()
	},
	"creation with words of the driver": func(s *story) {
		s.provider.note = "disk-7"
		s.provider.addresses = []machine.Address{{Type: "InternalIP", Value: "10.0.0.7"}}
		s.createMachine()
		s.reconcile()
	},
	"creation without cluster": func(s *story) {
		s.cluster = nil
		s.createMachine()
		s.reconcile()
		s.later(time.Hour, "nothing has changed")
	},
	"node registers before it is ready": func(s *story) {
		s.cluster.unready = true
		s.createMachine()
		s.reconcile()
		s.later(time.Minute, "the node registers, not ready")
		s.advance(20 * time.Second)
		s.cluster.setReady(node, object.True)
		s.later(0, "the node is ready")
	},
	"critical components": func(s *story) {
		s.createMachine()
		s.reconcile()
		s.advance(time.Minute)
		s.cluster.change(node, func(n *machine.Node) {
			n.Taints = append(n.Taints, object.Taint{Key: s.policy.Keys.CriticalComponents, Effect: object.NoSchedule})
		})
		s.later(0, "the node registers, waiting for critical components")
		s.advance(30 * time.Second)
		s.cluster.change(node, func(n *machine.Node) { n.Taints = nil })
		s.later(0, "the critical components are up, their taint is gone")
	},
	"adoption": func(s *story) {
		s.provider.vms = []*vm{{id: "p://old", name: ours, node: node, initialized: true, boots: true, bootAt: s.now}}
		s.createMachine()
		s.reconcile()
	},
	"adoption by an optional status call": func(s *story) {
		s.comment("the driver has no status call; a VM of the name exists and create adopts it")
		s.provider.noStatus = true
		s.provider.vms = []*vm{{id: "p://old", name: ours, node: node, initialized: true, boots: true, bootAt: s.now}}
		s.createMachine()
		s.reconcile()
	},
	"several VMs": func(s *story) {
		s.provider.vms = []*vm{{id: "p://1", name: ours, node: node}, {id: "p://2", name: ours, node: node}}
		s.createMachine()
		s.reconcile()
		s.provider.vms = s.provider.vms[:1]
		s.provider.vms[0].initialized = true
		s.comment("the orphan collection has deleted one of them")
		s.wait()
	},
	"initialization": func(s *story) {
		s.provider.hasInit = true
		s.createMachine()
		s.reconcile()
	},
	"initialization fails at first": func(s *story) {
		s.provider.hasInit = true
		s.failing(codes.InitializeMachine, codes.Internal, false)
		s.createMachine()
		s.reconcile()
		s.wait()
		s.failing(codes.InitializeMachine, codes.OK, false)
		s.comment("the driver can initialize again")
		s.wait()
	},
	"initialization of an adopted VM": func(s *story) {
		s.provider.hasInit = true
		s.provider.vms = []*vm{{id: "p://old", name: ours, node: node}}
		s.createMachine()
		s.reconcile()
	},
	"crash before initialization": func(s *story) {
		s.provider.hasInit = true
		s.createMachine()
		s.killAt = 5
		s.reconcile()
		s.restart()
		s.reconcile()
	},
	"name taken": func(s *story) {
		s.provider.differs = true
		s.createMachine()
		s.reconcile()
		s.later(time.Hour, "nothing has changed")
	},
	"stale node": func(s *story) {
		s.cluster.add(node)
		s.comment("a node %s exists", node)
		s.advance(time.Hour)
		s.createMachine()
		s.reconcile()
	},
	"crash before a stale node is seen": func(s *story) {
		s.cluster.add(node)
		s.comment("a node %s exists", node)
		s.advance(time.Hour)
		s.createMachine()
		s.killAt, s.killAfter = 3, true
		s.reconcile()
		s.restart()
		s.reconcile()
	},
	"lost response": func(s *story) {
		s.failing(codes.CreateMachine, codes.DeadlineExceeded, true)
		s.createMachine()
		s.reconcile()
		s.failing(codes.CreateMachine, codes.OK, false)
		s.wait()
	},
	"crash after create": func(s *story) {
		s.createMachine()
		s.killAt, s.killAfter = 3, true
		s.reconcile()
		s.restart()
		s.reconcile()
	},
	"crash after the announcement": func(s *story) {
		s.createMachine()
		s.killAt, s.killAfter = 2, true
		s.reconcile()
		s.restart()
		s.reconcile()
	},
	"stale reader": func(s *story) {
		s.createMachine()
		s.failing(codes.CreateMachine, codes.Unavailable, false)
		s.reconcile()
		s.comment("the cache still shows the machine as new, and the provider does not know why not")
		s.shell.lag = func() int { return len(s.store.versions) - 1 }
		s.reconcile()
	},
}

func init() {
	for name, run := range creationFailures {
		creationStories[name] = run
	}
}

var creationFailures = map[string]func(*story){
	"provider unavailable for a while": func(s *story) {
		s.failing(codes.CreateMachine, codes.Unavailable, false)
		s.createMachine()
		s.reconcile()
		for range 3 {
			s.wait()
		}
		s.failing(codes.CreateMachine, codes.OK, false)
		s.comment("the provider is back")
		s.wait()
	},
	"status unknown for a while": func(s *story) {
		s.failing(codes.GetMachineStatus, codes.Unauthenticated, false)
		s.createMachine()
		s.reconcile()
		s.failing(codes.GetMachineStatus, codes.OK, false)
		s.secret = "v2"
		s.later(time.Second, "somebody corrects the secret")
	},
	"quota exhausted until the time is up": func(s *story) {
		s.failing(codes.CreateMachine, codes.ResourceExhausted, false)
		s.createMachine()
		s.reconcile()
		s.wait()
		s.wait()
	},
	"invalid argument and the class corrected": func(s *story) {
		s.failing(codes.CreateMachine, codes.InvalidArgument, false)
		s.createMachine()
		s.reconcile()
		s.later(time.Second, "somebody looks")
		s.failing(codes.CreateMachine, codes.OK, false)
		s.class.Generation++
		s.later(time.Second, "the class is corrected")
	},
	"class missing": func(s *story) {
		class := s.class
		s.class = nil
		s.createMachine()
		s.reconcile()
		s.class = class
		s.later(time.Second, "somebody creates the class")
	},
	"class that cannot work": func(s *story) {
		s.class.SecretRef = &object.Key{}
		s.createMachine()
		s.reconcile()
		s.class.SecretRef.Name = "boot"
		s.class.Generation++
		s.later(time.Second, "the class is corrected")
	},
	"node never joins": func(s *story) {
		s.provider.boot = -1
		s.createMachine()
		s.reconcile()
		s.wait()
	},
	"node cannot be written while joining": func(s *story) {
		s.cluster.faults = func(string) codes.Code { return codes.PermissionDenied }
		s.createMachine(func(m *machine.Machine) { m.Spec.Config.CreationTimeout = 70 * time.Second })
		s.reconcile()
		s.later(time.Minute, "the node registers, healthy, but we may not write it")
		s.wait()
		s.later(10*time.Second, "the time is up")
	},
	"node without startup taint cannot be written while joining": func(s *story) {
		s.cluster.faults = func(string) codes.Code { return codes.PermissionDenied }
		s.createMachine()
		s.reconcile()
		s.advance(time.Minute)
		s.cluster.change(node, func(n *machine.Node) { n.Taints = nil })
		s.later(0, "the node registers, healthy and without taints, but we may not write it")
	},
	"something undoes what is synchronised while joining": func(s *story) {
		s.cluster.undo = func(n *machine.Node) { delete(n.Labels, "pool") }
		s.createMachine(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"pool": "a"} })
		s.reconcile()
		s.later(time.Minute, "the node registers, healthy; a webhook strips its label")
	},
	"something puts the startup taint back": func(s *story) {
		s.cluster.undo = func(n *machine.Node) {
			n.Taints = []object.Taint{{Key: s.policy.Keys.NotReadyTaint, Effect: object.NoSchedule}}
		}
		s.createMachine()
		s.reconcile()
		s.later(time.Minute, "the node registers, healthy; a webhook keeps its startup taint")
		s.wait()
		s.wait()
	},
	"nobody was there until the time was up": func(s *story) {
		s.createMachine()
		s.later(time.Hour, "the library was down")
	},
	"frozen and thawed": func(s *story) {
		s.frozen = true
		s.createMachine()
		s.reconcile()
		s.advance(time.Hour)
		s.frozen = false
		thawed := s.store.live().Status.Clone()
		thawed.ClockFrom = s.now
		_, _ = s.store.updateStatus(s.store.live().Version, thawed)
		s.later(0, "the fleet thaws, and the machine's clock starts again")
	},
	"invalid spec and repaired": func(s *story) {
		s.createMachine(func(m *machine.Machine) { m.Spec.Config.HealthTimeout = -time.Second })
		s.reconcile()
		s.later(time.Minute, "somebody looks")
		s.edit(func(m *machine.Machine) { m.Spec.Config.HealthTimeout = 0 })
		s.later(time.Minute, "the owner repairs the spec")
	},
}

// driverStories are about drivers and owners that do not do quite what they should.
var driverStories = map[string]func(*story){
	"driver gives no provider ID": func(s *story) {
		s.provider.noStatus = true
		s.provider.blank = func(answer *machine.VM) { answer.ProviderID = "" }
		s.createMachine()
		s.reconcile()
		s.provider.blank = nil
		s.comment("the driver is repaired")
		s.wait()
		s.later(time.Minute, "the node joins")
	},
	"driver gives no node name": func(s *story) {
		s.provider.noStatus = true
		s.provider.blank = func(answer *machine.VM) { answer.NodeName = "" }
		s.createMachine()
		s.reconcile()
		s.requestDeletion()
		s.reconcile()
	},
	"node name known after initialization": func(s *story) {
		s.provider.nameless, s.provider.hasInit = true, true
		s.provider.vms = []*vm{{id: "p://old", name: ours, node: node}}
		s.createMachine()
		s.reconcile()
	},
	"status uninitialized without provider ID": func(s *story) {
		s.failing(codes.GetMachineStatus, codes.Uninitialized, false)
		s.createMachine()
		s.reconcile()
	},
	"status uninitialized without a response": func(s *story) {
		s.provider.bare, s.provider.hasInit = true, true
		s.killAt, s.killAfter = s.calls+3, true
		s.createMachine()
		s.reconcile()
		s.restart()
		s.reconcile()
	},
	"initialization tells no provider ID": func(s *story) {
		s.provider.bare, s.provider.hasInit, s.provider.anonymous = true, true, true
		s.killAt, s.killAfter = s.calls+3, true
		s.createMachine()
		s.reconcile()
		s.restart()
		s.reconcile()
		s.wait()
	},
	"status of a recorded VM fails": func(s *story) {
		s.provider.hasInit = true
		s.failing(codes.InitializeMachine, codes.Uninitialized, false)
		s.createMachine()
		s.reconcile()
		s.failing(codes.GetMachineStatus, codes.PermissionDenied, false)
		s.wait()
	},
	"class goes while the VM is initialized": func(s *story) {
		s.provider.hasInit = true
		s.failing(codes.InitializeMachine, codes.Internal, false)
		s.createMachine()
		s.reconcile()
		s.class = nil
		s.later(time.Second, "somebody deletes the class")
	},
	"class goes before initialization": func(s *story) {
		s.provider.hasInit = true
		s.createMachine()
		s.killAt, s.killAfter = 5, true
		s.reconcile()
		s.restart()
		s.class = nil
		s.later(time.Second, "somebody deletes the class")
	},
	"recorded VM is gone before it is initialized": func(s *story) {
		s.provider.hasInit = true
		s.failing(codes.InitializeMachine, codes.Internal, false)
		s.createMachine()
		s.reconcile()
		s.provider.vms = nil
		s.failing(codes.InitializeMachine, codes.OK, false)
		s.comment("somebody deletes the VM by hand")
		s.wait()
		s.wait()
	},
	"stale node by its provider ID": func(s *story) {
		s.policy.ProviderIDsMatch = true
		s.createMachine()
		s.cluster.add(node, func(n *machine.Node) { n.ProviderID = "p://other" })
		s.comment("a node %s joins that is another VM's", node)
		s.reconcile()
	},
	"node by its provider ID in another spelling": func(s *story) {
		s.policy.ProviderIDsMatch = true
		s.createMachine()
		n := s.cluster.add(node, func(n *machine.Node) { n.ProviderID = "P://1/" })
		s.cluster.registeredBy[n.UID] = "m-1"
		s.comment("node %s joins, with the VM's ID in another spelling", node)
		s.reconcile()
		s.requestDeletion()
		s.reconcile()
		s.comment("node %s: %t", node, s.cluster.live(node) != nil)
	},
	"node that another VM takes over": func(s *story) {
		s.policy.ProviderIDsMatch = true
		s.toRunning()
		s.cluster.change(node, func(n *machine.Node) { n.ProviderID = "p://other" })
		s.later(time.Minute, "the node has the ID of another VM now, with our label")
		s.cluster.delete(node)
		s.later(time.Minute, "somebody deletes the node")
		s.requestDeletion()
		s.reconcile()
		s.comment("node %s: %t", node, s.cluster.live(node) != nil)
	},
	"deletion after a stale node by its provider ID": func(s *story) {
		s.policy.ProviderIDsMatch = true
		s.createMachine()
		s.cluster.add(node, func(n *machine.Node) { n.ProviderID = "p://other" })
		s.failing(codes.DeleteMachine, codes.Unavailable, false)
		s.reconcile()
		s.requestDeletion()
		s.killAt, s.killAfter = s.calls+7, false
		s.failing(codes.DeleteMachine, codes.OK, false)
		s.reconcile()
		s.restart()
		s.reconcile()
		s.comment("node %s, which is another VM's: %t", node, s.cluster.live(node) != nil)
	},
	"node deleted while joining": func(s *story) {
		s.cluster.unready = true
		s.createMachine()
		s.reconcile()
		s.later(time.Minute, "the node registers, not ready")
		s.cluster.delete(node)
		s.later(time.Second, "somebody deletes it")
	},
	"template names keys of ours": func(s *story) {
		s.toRunning(func(m *machine.Machine) {
			m.Spec.NodeTemplate.Labels = map[string]string{s.policy.Keys.NodeMachine: "mine"}
			m.Spec.NodeTemplate.Taints = []object.Taint{{Key: s.policy.Keys.NotReadyTaint, Effect: object.NoSchedule}}
		})
		s.commentNode()
		s.edit(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels["pool"] = "a" })
		s.later(time.Minute, "the owner adds a label")
		s.commentNode()
	},
	"class and node name gone": func(s *story) {
		s.toRunning()
		s.edit(func(m *machine.Machine) { m.Spec.NodeName = "" })
		s.cluster.change(node, func(n *machine.Node) { delete(n.Labels, s.policy.Keys.NodeMachine) })
		s.class = nil
		s.requestDeletion()
		s.reconcile()
	},
	"node goes while it is drained": func(s *story) {
		s.toRunning()
		s.requestDeletion()
		s.killAt, s.killAfter = s.calls+3, true
		s.reconcile()
		s.cluster.change(node, func(n *machine.Node) { n.Finalizers = nil })
		s.cluster.delete(node)
		s.restart()
		s.reconcile()
	},
	"cluster detached": func(s *story) {
		s.toRunning()
		s.cluster = nil
		s.later(time.Hour, "there is no cluster any more")
		s.requestDeletion()
		s.reconcile()
	},
}
