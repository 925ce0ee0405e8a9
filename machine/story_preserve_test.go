package machine_test

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// ask annotates the machine; empty: no more.
func (w *world) preserve(value string) {
	w.edit(func(m *machine.Machine) { m.Annotations = annotated(m.Annotations, w.policy.Keys.Preserve, value) })
}

// preserveByNode annotates the node; empty: no more.
func (w *world) preserveByNode(value string) {
	w.cluster.change(node, func(n *machine.Node) {
		n.Annotations = annotated(n.Annotations, w.policy.Keys.Preserve, value)
	})
}

func annotated(have map[string]string, key, value string) map[string]string {
	out := map[string]string{}
	for k, v := range have {
		out[k] = v
	}
	if out[key] = value; value == "" {
		delete(out, key)
	}
	return out
}

// fail has the machine fail for its health.
func (s *story) fail() {
	s.cluster.ready(node, object.Unknown)
	s.later(0, "the kubelet stops reporting")
	s.wait()
}

// care notes what is done to the node.
func (s *story) care() {
	n := s.cluster.live(node)
	told := "not told"
	if c := object.FindCondition(n.Conditions, machine.NodePreserved); c != nil {
		told = string(c.Status) + " " + c.Reason
	}
	s.say("cordoned %t, taints %v, annotations %s, preserved: %s; ours %+v", n.Unschedulable, n.Taints, pairs(n.Annotations), told, struct{ Cordoned, Tainted, Kept bool }{
		n.Applied.Preserved.Cordoned, n.Applied.Preserved.Tainted, n.Applied.Preserved.Kept,
	})
}

var preserveStories = map[string]func(*story){
	"kept while running until the time is up": func(s *story) {
		s.toRunning()
		s.preserve(machine.PreserveNow)
		s.later(0, "a user asks to keep the machine now")
		s.care()
		s.wait()
		s.care()
		s.later(time.Hour, "the annotation is still there")
		s.preserve("")
		s.later(0, "the user takes it off")
		s.preserve(machine.PreserveNow)
		s.later(0, "and asks again")
	},
	"kept when failed until the time is up": func(s *story) {
		s.toRunning(func(m *machine.Machine) { m.Spec.Config.PreserveTimeout = 24 * time.Hour })
		s.drains(2, time.Minute, 0)
		s.preserveByNode(machine.PreserveWhenFailed)
		s.later(0, "a user asks on the node to keep it if it fails")
		s.fail()
		s.care()
		s.wait()
		s.wait()
		s.wait()
		s.care()
		s.later(time.Hour, "nobody has replaced it yet")
	},
	"kept when failed and recovered": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 0)
		s.preserve(machine.PreserveWhenFailed)
		s.fail()
		s.pass(time.Hour)
		s.cluster.ready(node, object.True)
		s.later(0, "the kubelet reports again")
		s.care()
		s.say("it fails once more")
		s.fail()
	},
	"kept now and recovered": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 0)
		s.preserve(machine.PreserveNow)
		s.later(0, "a user asks to keep the machine now")
		s.fail()
		s.care()
		s.pass(time.Hour)
		s.cluster.ready(node, object.True)
		s.later(0, "the kubelet reports again")
		s.care()
		s.say("it fails once more, and is drained once more")
		s.fail()
	},
	"kept no longer by word of the node": func(s *story) {
		s.toRunning()
		s.preserve(machine.PreserveNow)
		s.fail()
		s.preserveByNode(machine.PreserveNever)
		s.later(time.Hour, "a user says false on the node; now is on the machine still")
		s.care()
		s.preserveByNode("")
		s.later(time.Hour, "the word is taken off the node: what the machine says does not count any more")
	},
	"kept no longer by removal": func(s *story) {
		s.toRunning()
		s.preserve(machine.PreserveWhenFailed)
		s.fail()
		s.preserve("")
		s.later(time.Hour, "the user takes the annotation off")
	},
	"request that nobody understands": func(s *story) {
		s.toRunning()
		s.preserve("please")
		s.later(0, "a user writes please")
		s.preserve(machine.PreserveNow)
		s.later(time.Minute, "and corrects it")
		s.preserveByNode("yes")
		s.later(time.Minute, "another writes yes on the node")
	},
	"kept automatically": func(s *story) {
		s.toRunning()
		s.fail()
		s.preserve(machine.PreserveAutomatically)
		s.later(time.Second, "its set keeps the machine")
		s.care()
		s.preserveByNode(machine.PreserveNow)
		s.later(time.Hour, "a user wants to keep it")
		s.care()
	},
	"kept though the drain is blocked": func(s *story) {
		s.toRunning()
		s.drains(0, 0, 1)
		s.preserve(machine.PreserveWhenFailed)
		s.fail()
		s.cluster.faults = func(effect string) codes.Code {
			if effect == "DrainNode" {
				return codes.Unavailable
			}
			return codes.OK
		}
		s.later(time.Minute, "the API server does not answer the drain")
		s.cluster.faults = nil
		s.wait()
		s.cluster.drain.stuck = 0
		s.later(time.Minute, "the budget lets the pod go")
	},
	"kept on a node that others cordoned": func(s *story) {
		s.toRunning()
		taint := object.Taint{Key: s.policy.Keys.PreservedTaint, Effect: object.NoSchedule}
		s.cluster.change(node, func(n *machine.Node) {
			n.Unschedulable, n.Taints = true, []object.Taint{taint}
			n.Annotations = map[string]string{s.policy.Keys.KeepNode: "true"}
		})
		s.preserve(machine.PreserveWhenFailed)
		s.fail()
		s.care()
		s.cluster.ready(node, object.True)
		s.later(time.Hour, "the kubelet reports again")
		s.care()
	},
	"kept without its node": func(s *story) {
		s.toRunning()
		s.preserveByNode(machine.PreserveNow)
		s.later(0, "a user asks on the node to keep it")
		s.cluster.change(node, func(n *machine.Node) { n.Finalizers = nil })
		s.cluster.delete(node)
		s.later(time.Minute, "the node is gone, finalizer and all")
		s.wait()
		s.preserve(machine.PreserveNever)
		s.later(time.Hour, "a user says false on the machine")
	},
	"kept and deleted": func(s *story) {
		s.toRunning()
		s.preserve(machine.PreserveNow)
		s.fail()
		s.doomed()
		s.run()
	},
	"kept and its node deleted": func(s *story) {
		s.toRunning()
		s.preserve(machine.PreserveWhenFailed)
		s.fail()
		s.cluster.delete(node)
		s.later(time.Hour, "somebody deletes the node")
	},
	"kept though it never joined": func(s *story) {
		s.provider.boot = -1
		s.give(func(m *machine.Machine) {
			m.Annotations = map[string]string{s.policy.Keys.Preserve: machine.PreserveWhenFailed}
		})
		s.run()
		s.wait()
		s.wait()
	},
	"kept though it joined too late": func(s *story) {
		s.provider.boot = time.Hour
		s.give(func(m *machine.Machine) {
			m.Annotations = map[string]string{s.policy.Keys.Preserve: machine.PreserveWhenFailed}
		})
		s.run()
		s.wait()
		s.later(2*time.Hour, "its node joins, healthy: it is not what it should be all the same")
		s.care()
	},
	"kept beyond its time while frozen": func(s *story) {
		s.toRunning()
		s.preserve(machine.PreserveWhenFailed)
		s.fail()
		s.frozen = true
		s.later(97*time.Hour, "the fleet is frozen when the time is up")
		s.frozen = false
		s.later(time.Hour, "it thaws: nothing is added to the time that was promised")
	},
	"kept on a node that cannot be written": func(s *story) {
		s.toRunning()
		s.drains(1, time.Minute, 0)
		s.preserve(machine.PreserveWhenFailed)
		s.cluster.faults = func(effect string) codes.Code {
			if effect == "SyncNode" || effect == "MarkNode" {
				return codes.PermissionDenied
			}
			return codes.OK
		}
		s.fail()
		s.cluster.faults = nil
		s.wait()
		s.care()
	},
	"kept without a cluster": func(s *story) {
		s.cluster = nil
		s.give(func(m *machine.Machine) {
			m.Annotations = map[string]string{s.policy.Keys.Preserve: machine.PreserveNow}
		})
		s.run()
		s.wait()
	},
	"kept with an invalid spec": func(s *story) {
		s.toRunning()
		s.fail()
		s.edit(func(m *machine.Machine) { m.Spec.Class.Name = "" })
		s.preserve(machine.PreserveAutomatically)
		s.later(0, "the owner empties the class's name, and the set keeps the machine")
	},
	"kept and selected for an update": func(s *story) {
		s.toRunning()
		s.preserve(machine.PreserveNow)
		s.later(0, "a user asks to keep the machine now")
		s.ask(machine.InPlaceSelected)
		s.later(0, "its owner selects it for an update")
		s.preserve("")
		s.later(time.Hour, "the user takes the annotation off")
	},
	"kept and failed in one pass": func(s *story) {
		s.toRunning()
		s.cluster.ready(node, object.False)
		s.later(0, "the kubelet reports that it is not ready")
		s.frozen = true
		s.later(15*time.Minute, "the fleet is frozen when the time is up")
		s.preserve(machine.PreserveNow)
		s.frozen = false
		s.later(0, "thawed; a user asks to keep the machine now")
		s.care()
		s.later(0, "the write of the status wakes the machine")
		s.care()
	},
	"kept when its update is given up": func(s *story) {
		s.toRunning()
		s.cluster.agent = agentModel{answer: machine.UpdateFailed}
		s.preserve(machine.PreserveWhenFailed)
		s.ask(machine.InPlaceSelected)
		s.later(0, "its owner selects it for an update, which fails")
		s.run()
		s.wait()
		s.later(time.Hour, "its node is healthy, but not what it should be: it does not run again")
	},
	"kept during a rollout": func(s *story) {
		s.toRunning()
		s.mark(machine.RolloutMarks{Avoid: true, Keep: true})
		s.later(0, "a rollout begins")
		s.preserve(machine.PreserveNow)
		s.later(0, "a user asks to keep the machine now")
		s.mark(machine.RolloutMarks{})
		s.later(time.Hour, "the rollout ends")
		s.care()
		s.preserve("")
		s.later(time.Hour, "the user takes the annotation off")
		s.care()
	},
	"killed when it is kept no longer": func(s *story) {
		s.toRunning()
		s.preserve(machine.PreserveNow)
		s.later(0, "a user asks to keep the machine now")
		s.preserve("")
		s.killAt, s.after = s.calls+2, true
		s.later(time.Hour, "the user takes the annotation off")
		s.restart()
		s.run()
		s.care()
	},
}
