package convert

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Nodes translates nodes. The template and capacity that were applied last are in the annotations where
// other managers look for them.
func Nodes(keys Keys) *Kind[*corev1.Node, *machine.Node] {
	return &Kind[*corev1.Node, *machine.Node]{
		name: "node", keys: keys,
		empty: func() *corev1.Node { return &corev1.Node{} },
		clone: (*corev1.Node).DeepCopy,
		blank: func() *machine.Node { return &machine.Node{} },
		read:  readNode, write: writeNode, writeStatus: writeNodeStatus,
		hidden: []string{keys.LastApplied, keys.LastAppliedCapacity, keys.Applied},
		records: []record[*machine.Node]{
			{keys.Drain, func(n *machine.Node) any { return &n.Drain }},
		},
	}
}

func readNode(r *reader, w *corev1.Node, n *machine.Node) {
	n.ProviderID, n.Unschedulable, n.Taints = w.Spec.ProviderID, w.Spec.Unschedulable, readTaints(w.Spec.Taints)
	n.Conditions = nodeConditions.read(w.Status.Conditions)
	n.Capacity = readQuantities(w.Status.Capacity)
	for _, a := range w.Status.Addresses {
		n.Addresses = append(n.Addresses, machine.Address{Type: string(a.Type), Value: a.Address})
	}
	if text, ok := w.Annotations[r.keys.Applied]; ok {
		r.annotation(r.keys.Applied, decode(text, &n.Applied))
	}
	n.Applied.NodeTemplate, n.Applied.VirtualCapacity = machine.NodeTemplate{}, nil
	if text, ok := w.Annotations[r.keys.LastApplied]; ok {
		var t v1alpha1.NodeTemplateSpec
		err := json.Unmarshal([]byte(text), &t)
		if r.annotation(r.keys.LastApplied, err); err == nil {
			n.Applied.NodeTemplate = readNodeTemplate(&t)
		}
	}
	if text, ok := w.Annotations[r.keys.LastAppliedCapacity]; ok {
		var list corev1.ResourceList
		err := json.Unmarshal([]byte(text), &list)
		if r.annotation(r.keys.LastAppliedCapacity, err); err == nil {
			n.Applied.VirtualCapacity = readQuantities(list)
		}
	}
	r.rollout(n)
}

// rollout counts annotations and the taint that another manager's rollout has left on a node as
// applied, so that they are removed when no rollout here wants them. The annotation KeptByUs says that
// the other manager has set both annotations, and only rollouts use the taint's key. On the node of a
// preserved machine, the annotations belong to the preservation.
func (r *reader) rollout(n *machine.Node) {
	k, last := r.keys, &n.Applied.NodeTemplate
	kept := object.FindCondition(n.Conditions, machine.NodePreserved)
	preserved := n.Applied.Preserved != (machine.PreservedMarks{}) || kept != nil && kept.Status == object.True
	if n.Annotations[k.KeepNode] == "true" && n.Annotations[k.KeptByUs] == "true" && last.Annotations[k.KeptByUs] == "" && !preserved {
		annotations := map[string]string{k.KeepNode: "true", k.KeptByUs: "true"}
		maps.Copy(annotations, last.Annotations)
		last.Annotations = annotations
	}
	avoid := object.Taint{Key: k.AvoidTaint, Value: "True", Effect: object.PreferNoSchedule}
	if slices.Contains(n.Taints, avoid) && !slices.Contains(last.Taints, avoid) {
		last.Taints = append(slices.Clone(last.Taints), avoid)
	}
}

// annotation reports an annotation that can't be read.
func (r *reader) annotation(key string, err error) {
	if err != nil {
		r.add("metadata.annotations["+key+"]", "can't be read")
	}
}

func writeNode(x *writer, w *corev1.Node, was, now *machine.Node) {
	put(&w.Spec.ProviderID, was.ProviderID, now.ProviderID)
	put(&w.Spec.Unschedulable, was.Unschedulable, now.Unschedulable)
	writeTaints(&w.Spec.Taints, was.Taints, now.Taints)

	a, b := was.Applied, now.Applied
	if !a.Equal(&b.NodeTemplate) {
		var t v1alpha1.NodeTemplateSpec
		writeNodeTemplate(&t, &machine.NodeTemplate{}, &b.NodeTemplate)
		annotate(w, x.keys.LastApplied, x.json(x.keys.LastApplied, t, len(b.Labels)+len(b.NodeTemplate.Annotations)+len(b.Taints)))
	}
	if !maps.Equal(a.VirtualCapacity, b.VirtualCapacity) {
		var list corev1.ResourceList
		writeQuantities(x, x.keys.LastAppliedCapacity, &list, nil, b.VirtualCapacity)
		annotate(w, x.keys.LastAppliedCapacity, x.json(x.keys.LastAppliedCapacity, list, len(list)))
	}
	a.NodeTemplate, a.VirtualCapacity = machine.NodeTemplate{}, nil
	b.NodeTemplate, b.VirtualCapacity = machine.NodeTemplate{}, nil
	if before, after := x.encode(x.keys.Applied, &a), x.encode(x.keys.Applied, &b); before != after {
		annotate(w, x.keys.Applied, after)
	}
}

// json returns a value as JSON, or "" if it has no entries.
func (x *writer) json(field string, value any, entries int) string {
	if entries == 0 {
		return ""
	}
	text, err := json.Marshal(value)
	if err != nil {
		x.fail(object.Invalid(field, "can't be stored"))
	}
	return string(text)
}

func writeNodeStatus(x *writer, w *corev1.Node, was, now *machine.Node) {
	nodeConditions.write(&w.Status.Conditions, was.Conditions, now.Conditions)
	writeQuantities(x, "status.capacity", &w.Status.Capacity, was.Capacity, now.Capacity)
	if !slices.Equal(was.Addresses, now.Addresses) {
		w.Status.Addresses = nil
		for _, a := range now.Addresses {
			w.Status.Addresses = append(w.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(a.Type), Address: a.Value})
		}
	}
}
