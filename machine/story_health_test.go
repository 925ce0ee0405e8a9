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
		s.cluster.ready(node, object.Unknown)
		s.later(0, "the kubelet stops reporting")
		s.pass(5 * time.Minute)
		s.cluster.ready(node, object.True)
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
		s.cluster.ready(node, object.False)
		m := s.store.live().Clone()
		m.Status.Phase = machine.PhaseAvailable
		s.store.force(m)
		s.later(0, "another program writes the phase, and the kubelet is not ready")
		s.cluster.ready(node, object.True)
		s.later(time.Hour, "the kubelet is ready an hour later")
	},
	"unhealthy with health timeout disabled": func(s *story) {
		s.toRunning(func(m *machine.Machine) { m.Spec.Config.DisableHealthTimeout = true })
		s.cluster.ready(node, object.False)
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
		s.say("taints: %v", s.cluster.live(node).Taints)
		s.cluster.change(node, again)
		s.cluster.ready(node, object.False)
		s.later(time.Minute, "the node was rebooted: it has the taint, and is not ready")
		s.say("taints: %v", s.cluster.live(node).Taints)
		s.cluster.ready(node, object.True)
		s.later(time.Minute, "it is ready")
		s.say("taints: %v", s.cluster.live(node).Taints)
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
		s.cluster.ready(node, object.False)
		s.later(0, "the kubelet is not ready")
		s.frozen = true
		s.later(time.Hour, "the fleet is frozen")
	},
	"unhealthy node that cannot be written": func(s *story) {
		s.toRunning()
		s.cluster.faults = func(string) codes.Code { return codes.PermissionDenied }
		s.edit(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"pool": "a"} })
		s.later(0, "a label is wanted, but we may not write nodes any more")
		s.cluster.ready(node, object.False)
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
		s.capacity()
		s.class.NodeTemplate.VirtualCapacity = map[string]string{"example.org/lanes": "2"}
		s.class.Generation++
		s.later(time.Minute, "the class offers lanes in place of slots")
		s.capacity()
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
		s.cluster.ready(node, object.False)
		s.later(time.Hour, "storage speaks of an in-place update that nobody asked for, the node is not ready")
		m = s.store.live().Clone()
		m.Status.Phase, m.Status.Since = machine.PhaseInPlaceUpdateFailed, s.now
		s.store.force(m)
		s.later(0, "storage says that an update has failed")
		s.wait()
	},
}

// templateChanges applies a template, changes it, and has others add to the node.
func templateChanges(s *story) {
	s.toRunning(func(m *machine.Machine) {
		m.Spec.NodeTemplate = machine.NodeTemplate{
			Labels:      map[string]string{"pool": "a", "role": "", "zone": "1"},
			Annotations: map[string]string{"note": "first"},
			Taints:      []object.Taint{{Key: "gpu", Value: "yes", Effect: object.NoSchedule}},
		}
	})
	s.shape()
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
	s.shape()
	s.cluster.change(node, func(n *machine.Node) { delete(n.Labels, "tier") })
	s.later(time.Minute, "others remove tier, whose value is empty")
	s.shape()
	s.edit(func(m *machine.Machine) { m.Spec.NodeTemplate = machine.NodeTemplate{} })
	s.later(time.Minute, "the owner empties the template")
	s.shape()
}

// shape notes what is on the node.
func (s *story) shape() {
	n := s.cluster.live(node)
	s.say("labels %s annotations %s taints %v", pairs(n.Labels), pairs(n.Annotations), n.Taints)
}

func (s *story) capacity() {
	n := s.cluster.live(node)
	s.say("capacity %s, recorded as ours %s", pairs(n.Capacity), pairs(n.Applied.VirtualCapacity))
}

func pairs(m map[string]string) []string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s=%q", k, m[k]))
	}
	return all
}
