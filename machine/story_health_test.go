package machine_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

var healthStories = map[string]func(*story){
	"unhealthy and recovered": func(s *story) {
		s.toRunning()
		s.cluster.setReady(node, object.Unknown)
		s.later(0, "the kubelet stops reporting")
		s.advance(5 * time.Minute)
		s.cluster.setReady(node, object.True)
		s.later(0, "the kubelet reports again")
	},
	"unhealthy until the time is up": func(s *story) {
		s.toRunning()
		s.cluster.change(node, func(n *machine.Node) { n.Conditions[0].Status = object.True })
		s.later(0, "the disk is full")
		s.wait()
	},
	"available where there is a cluster": func(s *story) {
		s.toRunning()
		s.cluster.setReady(node, object.False)
		m := s.store.live().Clone()
		m.Status.Phase = machine.PhaseAvailable
		s.store.force(m)
		s.later(0, "another program writes the phase, and the kubelet is not ready")
		s.cluster.setReady(node, object.True)
		s.later(time.Hour, "the kubelet is ready an hour later")
	},
	"unhealthy with health timeout disabled": func(s *story) {
		s.toRunning(func(m *machine.Machine) { m.Spec.Config.DisableHealthTimeout = true })
		s.cluster.setReady(node, object.False)
		s.later(0, "the kubelet is not ready")
		s.later(240*time.Hour, "ten days later")
	},
	"node vanishes and returns": func(s *story) {
		s.toRunning()
		was := s.cluster.live(node)
		s.cluster.change(node, func(n *machine.Node) { n.Finalizers = nil })
		s.cluster.delete(node)
		s.later(0, "the node is gone, finalizer and all")
		s.cluster.nodes[node] = append(s.cluster.nodes[node], was)
		s.later(time.Minute, "it is back")
	},
	"startup taint that comes back": func(s *story) {
		s.toRunning()
		again := func(n *machine.Node) {
			n.Taints = append(n.Taints, object.Taint{Key: s.policy.Keys.NotReadyTaint, Effect: object.NoSchedule})
		}
		s.cluster.change(node, again)
		s.later(time.Minute, "the kubelet was restarted, and has put its startup taint on the node again")
		s.comment("taints: %v", s.cluster.live(node).Taints)
		s.cluster.change(node, again)
		s.cluster.setReady(node, object.False)
		s.later(time.Minute, "the node was rebooted: it has the taint, and is not ready")
		s.comment("taints: %v", s.cluster.live(node).Taints)
		s.cluster.setReady(node, object.True)
		s.later(time.Minute, "it is ready")
		s.comment("taints: %v", s.cluster.live(node).Taints)
	},
	"node deleted by somebody": func(s *story) {
		s.toRunning()
		s.cluster.delete(node)
		s.later(time.Minute, "somebody deletes the node")
	},
	"node of another machine": func(s *story) {
		s.toRunning()
		s.cluster.change(node, func(n *machine.Node) { n.Labels[s.policy.Keys.NodeMachine] = "m-2" })
		s.later(0, "the node carries the name of machine m-2 now")
		s.later(time.Hour, "still so")
	},
	"conditions change": func(s *story) {
		s.toRunning()
		s.cluster.change(node, func(n *machine.Node) { n.Conditions[1].Message = "kubelet is posting ready status" })
		s.later(time.Minute, "the kubelet finds other words")
	},
	"frozen while unhealthy": func(s *story) {
		s.toRunning()
		s.cluster.setReady(node, object.False)
		s.later(0, "the kubelet is not ready")
		s.frozen = true
		s.later(time.Hour, "the fleet is frozen")
	},
	"unhealthy node that cannot be written": func(s *story) {
		s.toRunning()
		s.cluster.faults = func(string) codes.Code { return codes.PermissionDenied }
		s.edit(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"pool": "a"} })
		s.later(0, "a label is wanted, but we may not write nodes any more")
		s.cluster.setReady(node, object.False)
		s.later(time.Second, "the kubelet is not ready")
		s.later(20*time.Minute, "still so")
	},
	"something undoes what is synchronised": func(s *story) {
		s.toRunning()
		s.cluster.undo = func(n *machine.Node) { delete(n.Labels, "pool") }
		s.edit(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"pool": "a"} })
		s.later(0, "a label is wanted that a webhook strips")
		s.wait()
	},
	"template changes": templateChanges,
	"virtual capacity": func(s *story) {
		s.class.NodeTemplate = &machine.NodeShape{VirtualCapacity: map[string]string{"example.org/slots": "4"}}
		s.toRunning()
		s.commentCapacity()
		s.class.NodeTemplate.VirtualCapacity = map[string]string{"example.org/lanes": "2"}
		s.class.Generation++
		s.later(time.Minute, "the class offers lanes in place of slots")
		s.commentCapacity()
	},
	"invalid spec while running": func(s *story) {
		s.toRunning()
		s.edit(func(m *machine.Machine) { m.Spec.Class.Name = "" })
		s.later(0, "the owner empties the class's name")
		s.later(time.Hour, "still so")
		s.edit(func(m *machine.Machine) { m.Spec.Class.Name = "small" })
		s.later(time.Hour, "the owner repairs it")
	},
	"in place update that nobody asked for": func(s *story) {
		s.toRunning()
		m := s.store.live().Clone()
		m.Status.Phase = machine.PhaseInPlaceUpdating
		s.store.force(m)
		s.cluster.setReady(node, object.False)
		s.later(time.Hour, "storage speaks of an in-place update that nobody asked for, the node is not ready")
		m = s.store.live().Clone()
		m.Status.Phase, m.Status.Since = machine.PhaseInPlaceUpdateFailed, s.now
		s.store.force(m)
		s.later(0, "storage says that an update has failed")
		s.wait()
	},
}

// templateChanges applies a template, changes it, and lets others change the node.
func templateChanges(s *story) {
	s.toRunning(func(m *machine.Machine) {
		m.Spec.NodeTemplate = machine.NodeTemplate{
			Labels:      map[string]string{"pool": "a", "role": "", "zone": "1"},
			Annotations: map[string]string{"note": "first"},
			Taints:      []object.Taint{{Key: "gpu", Value: "yes", Effect: object.NoSchedule}},
		}
	})
	s.commentNode()
	s.cluster.change(node, func(n *machine.Node) {
		n.Labels["others"], n.Labels["zone"] = "label", "theirs"
		n.Taints = append(n.Taints, object.Taint{Key: "others", Effect: object.NoExecute})
	})
	s.edit(func(m *machine.Machine) {
		m.Spec.NodeTemplate = machine.NodeTemplate{
			Labels: map[string]string{"pool": "b", "tier": ""},
			Taints: []object.Taint{{Key: "gpu", Value: "no", Effect: object.NoSchedule}},
		}
	})
	s.later(time.Minute, "others add a label and a taint, and take label zone over;\n%-12s"+
		"the owner changes pool and gpu, adds tier, drops role, zone and note", "")
	s.commentNode()
	s.cluster.change(node, func(n *machine.Node) { delete(n.Labels, "tier") })
	s.later(time.Minute, "others remove tier, whose value is empty")
	s.commentNode()
	s.edit(func(m *machine.Machine) { m.Spec.NodeTemplate = machine.NodeTemplate{} })
	s.later(time.Minute, "the owner empties the template")
	s.commentNode()
}

// commentNode writes what is on the node.
func (s *story) commentNode() {
	n := s.cluster.live(node)
	s.comment("labels %s annotations %s taints %v", pairs(n.Labels), pairs(n.Annotations), n.Taints)
}

func (s *story) commentCapacity() {
	n := s.cluster.live(node)
	s.comment("capacity %s, recorded as ours %s", pairs(n.Capacity), pairs(n.Applied.VirtualCapacity))
}

func pairs(m map[string]string) []string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s=%q", k, m[k]))
	}
	return all
}

// preserve annotates the machine with a request for its preservation; empty: removes it.
func (w *world) preserve(value string) {
	w.edit(func(m *machine.Machine) { m.Annotations = annotated(m.Annotations, w.policy.Keys.Preserve, value) })
}

// preserveByNode annotates the node with such a request; empty: removes it.
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

// failHealth makes the machine fail for its health.
func (s *story) failHealth() {
	s.cluster.setReady(node, object.Unknown)
	s.later(0, "the kubelet stops reporting")
	s.wait()
}

// commentPreservation writes which marks of a preservation are on the node.
func (s *story) commentPreservation() {
	n := s.cluster.live(node)
	condition := "not told"
	if c := object.FindCondition(n.Conditions, machine.NodePreserved); c != nil {
		condition = string(c.Status) + " " + c.Reason
	}
	s.comment("cordoned %t, taints %v, annotations %s, preserved: %s; ours %+v", n.Unschedulable, n.Taints, pairs(n.Annotations), condition, struct{ Cordoned, Tainted, Kept bool }{
		n.Applied.Preserved.Cordoned, n.Applied.Preserved.Tainted, n.Applied.Preserved.Kept,
	})
}

var preserveStories = map[string]func(*story){
	"kept while running until the time is up": func(s *story) {
		s.toRunning()
		s.preserve(machine.PreserveNow)
		s.later(0, "a user asks to keep the machine now")
		s.commentPreservation()
		s.wait()
		s.commentPreservation()
		s.later(time.Hour, "the annotation is still there")
		s.preserve("")
		s.later(0, "the user takes it off")
		s.preserve(machine.PreserveNow)
		s.later(0, "and asks again")
	},
	"kept when failed until the time is up": func(s *story) {
		s.toRunning(func(m *machine.Machine) { m.Spec.Config.PreserveTimeout = 24 * time.Hour })
		s.addDrain(2, time.Minute, 0)
		s.preserveByNode(machine.PreserveWhenFailed)
		s.later(0, "a user asks on the node to keep it if it fails")
		s.failHealth()
		s.commentPreservation()
		s.wait()
		s.wait()
		s.wait()
		s.commentPreservation()
		s.later(time.Hour, "nobody has replaced it yet")
	},
	"kept when failed and recovered": func(s *story) {
		s.toRunning()
		s.addDrain(0, 0, 0)
		s.preserve(machine.PreserveWhenFailed)
		s.failHealth()
		s.advance(time.Hour)
		s.cluster.setReady(node, object.True)
		s.later(0, "the kubelet reports again")
		s.commentPreservation()
		s.comment("it fails once more")
		s.failHealth()
	},
	"kept now and recovered": func(s *story) {
		s.toRunning()
		s.addDrain(0, 0, 0)
		s.preserve(machine.PreserveNow)
		s.later(0, "a user asks to keep the machine now")
		s.failHealth()
		s.commentPreservation()
		s.advance(time.Hour)
		s.cluster.setReady(node, object.True)
		s.later(0, "the kubelet reports again")
		s.commentPreservation()
		s.comment("it fails once more, and is drained once more")
		s.failHealth()
	},
	"kept no longer by word of the node": func(s *story) {
		s.toRunning()
		s.preserve(machine.PreserveNow)
		s.failHealth()
		s.preserveByNode(machine.PreserveNever)
		s.later(time.Hour, "a user says false on the node; now is on the machine still")
		s.commentPreservation()
		s.preserveByNode("")
		s.later(time.Hour, "the word is taken off the node: what the machine says does not count any more")
	},
	"kept no longer by removal": func(s *story) {
		s.toRunning()
		s.preserve(machine.PreserveWhenFailed)
		s.failHealth()
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
		s.failHealth()
		s.preserve(machine.PreserveAutomatically)
		s.later(time.Second, "its set keeps the machine")
		s.commentPreservation()
		s.preserveByNode(machine.PreserveNow)
		s.later(time.Hour, "a user wants to keep it")
		s.commentPreservation()
	},
	"kept though the drain is blocked": func(s *story) {
		s.toRunning()
		s.addDrain(0, 0, 1)
		s.preserve(machine.PreserveWhenFailed)
		s.failHealth()
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
		s.failHealth()
		s.commentPreservation()
		s.cluster.setReady(node, object.True)
		s.later(time.Hour, "the kubelet reports again")
		s.commentPreservation()
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
		s.failHealth()
		s.requestDeletion()
		s.reconcile()
	},
	"kept and its node deleted": func(s *story) {
		s.toRunning()
		s.preserve(machine.PreserveWhenFailed)
		s.failHealth()
		s.cluster.delete(node)
		s.later(time.Hour, "somebody deletes the node")
	},
	"kept though it never joined": func(s *story) {
		s.provider.boot = -1
		s.createMachine(func(m *machine.Machine) {
			m.Annotations = map[string]string{s.policy.Keys.Preserve: machine.PreserveWhenFailed}
		})
		s.reconcile()
		s.wait()
		s.wait()
	},
	"kept though it joined too late": func(s *story) {
		s.provider.boot = time.Hour
		s.createMachine(func(m *machine.Machine) {
			m.Annotations = map[string]string{s.policy.Keys.Preserve: machine.PreserveWhenFailed}
		})
		s.reconcile()
		s.wait()
		s.later(2*time.Hour, "its node joins, healthy: it is not what it should be all the same")
		s.commentPreservation()
	},
	"kept beyond its time while frozen": func(s *story) {
		s.toRunning()
		s.preserve(machine.PreserveWhenFailed)
		s.failHealth()
		s.frozen = true
		s.later(97*time.Hour, "the fleet is frozen when the time is up")
		s.frozen = false
		s.later(time.Hour, "it thaws: nothing is added to the time that was promised")
	},
	"kept on a node that cannot be written": func(s *story) {
		s.toRunning()
		s.addDrain(1, time.Minute, 0)
		s.preserve(machine.PreserveWhenFailed)
		s.cluster.faults = func(effect string) codes.Code {
			if effect == "SyncNode" || effect == "MarkNode" {
				return codes.PermissionDenied
			}
			return codes.OK
		}
		s.failHealth()
		s.cluster.faults = nil
		s.wait()
		s.commentPreservation()
	},
	"kept without a cluster": func(s *story) {
		s.cluster = nil
		s.createMachine(func(m *machine.Machine) {
			m.Annotations = map[string]string{s.policy.Keys.Preserve: machine.PreserveNow}
		})
		s.reconcile()
		s.wait()
	},
	"kept with an invalid spec": func(s *story) {
		s.toRunning()
		s.failHealth()
		s.edit(func(m *machine.Machine) { m.Spec.Class.Name = "" })
		s.preserve(machine.PreserveAutomatically)
		s.later(0, "the owner empties the class's name, and the set keeps the machine")
	},
	"kept and selected for an update": func(s *story) {
		s.toRunning()
		s.preserve(machine.PreserveNow)
		s.later(0, "a user asks to keep the machine now")
		s.requestInPlace(machine.InPlaceSelected)
		s.later(0, "its owner selects it for an update")
		s.preserve("")
		s.later(time.Hour, "the user takes the annotation off")
	},
	"kept and failed in one pass": func(s *story) {
		s.toRunning()
		s.cluster.setReady(node, object.False)
		s.later(0, "the kubelet reports that it is not ready")
		s.frozen = true
		s.later(15*time.Minute, "the fleet is frozen when the time is up")
		s.preserve(machine.PreserveNow)
		s.frozen = false
		s.later(0, "thawed; a user asks to keep the machine now")
		s.commentPreservation()
		s.later(0, "the write of the status wakes the machine")
		s.commentPreservation()
	},
	"kept when its update is given up": func(s *story) {
		s.toRunning()
		s.cluster.agent = agentModel{answer: machine.UpdateFailed}
		s.preserve(machine.PreserveWhenFailed)
		s.requestInPlace(machine.InPlaceSelected)
		s.later(0, "its owner selects it for an update, which fails")
		s.reconcile()
		s.wait()
		s.later(time.Hour, "its node is healthy, but not what it should be: it does not run again")
	},
	"kept during a rollout": func(s *story) {
		s.toRunning()
		s.marks = machine.RolloutMarks{Avoid: true, Keep: true}
		s.later(0, "a rollout begins")
		s.preserve(machine.PreserveNow)
		s.later(0, "a user asks to keep the machine now")
		s.marks = machine.RolloutMarks{}
		s.later(time.Hour, "the rollout ends")
		s.commentPreservation()
		s.preserve("")
		s.later(time.Hour, "the user takes the annotation off")
		s.commentPreservation()
	},
	"killed when it is kept no longer": func(s *story) {
		s.toRunning()
		s.preserve(machine.PreserveNow)
		s.later(0, "a user asks to keep the machine now")
		s.preserve("")
		s.killAt, s.killAfter = s.calls+2, true
		s.later(time.Hour, "the user takes the annotation off")
		s.restart()
		s.reconcile()
		s.commentPreservation()
	},
}
