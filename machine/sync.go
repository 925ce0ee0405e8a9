package machine

import (
	"maps"
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/object"
)

// sync brings a node in line: the machine's name, our finalizer, the template
// and the class's virtual capacity. joining also takes the startup taint off.
// busy: the plan has to be carried out first, or waits after a failure.
func (d *decision) sync(n *Node, joining bool) (plan Plan, busy bool) {
	if answer := d.o.NodeSynced; answer != nil && answer.Code != codes.OK {
		why := Why{Reason: ReasonSyncFailed, Name: n.Name, Code: answer.Code, Detail: answer.Message}
		return Plan{At: d.now.Add(nodeRetry), Why: why}, true
	}
	if n.Deleted() {
		return Plan{}, false
	}
	spec, capacity := !d.inLine(n, joining), !d.capacityInLine(n)
	if !spec && !capacity {
		return Plan{}, false
	}
	want := n.Clone()
	d.apply(want, joining)
	return Plan{
		Effect: &SyncNode{Node: want, Spec: spec || capacity, Capacity: capacity},
		Why:    Why{Reason: ReasonSyncNode, Name: n.Name},
	}, true
}

// inLine tells whether metadata and taints are as apply would leave them. A
// settled machine spends most of its time here: nothing is allocated, and each
// label is looked up once in the node and once in the record.
func (d *decision) inLine(n *Node, joining bool) bool {
	key := d.p.Keys.NodeMachine
	if key != "" && n.Labels[key] != d.m.Name || !n.HasFinalizer(Finalizer) {
		return false
	}
	if joining && n.hasTaint(d.p.Keys.NotReadyTaint) {
		return false
	}
	t, last := &d.m.Spec.NodeTemplate, &n.Applied
	return mapInLine(n.Labels, last.Labels, t.Labels) &&
		mapInLine(n.Annotations, last.Annotations, t.Annotations) &&
		slices.Equal(last.Taints, t.Taints) && holdsTaints(n.Taints, t.Taints)
}

func (d *decision) capacityInLine(n *Node) bool {
	return mapInLine(n.Capacity, n.Applied.VirtualCapacity, d.virtualCapacity())
}

func (d *decision) virtualCapacity() map[string]string {
	if d.o.Class == nil || d.o.Class.NodeTemplate == nil {
		return nil
	}
	return d.o.Class.NodeTemplate.VirtualCapacity
}

// mapInLine tells whether want is what was applied last, and still there.
func mapInLine(have, last, want map[string]string) bool {
	if len(last) != len(want) {
		return false
	}
	for k, v := range want {
		if have[k] != v || last[k] != v {
			return false
		}
	}
	return true
}

func holdsTaints(have, want []object.Taint) bool {
	for i := range want {
		if !slices.Contains(have, want[i]) {
			return false
		}
	}
	return true
}

// apply changes a copy of a node into what it should be.
func (d *decision) apply(n *Node, joining bool) {
	t := &d.m.Spec.NodeTemplate
	n.Labels = merge(n.Labels, n.Applied.Labels, t.Labels)
	n.Annotations = merge(n.Annotations, n.Applied.Annotations, t.Annotations)
	n.Capacity = merge(n.Capacity, n.Applied.VirtualCapacity, d.virtualCapacity())
	n.Taints = mergeTaints(n.Taints, n.Applied.Taints, t.Taints)
	n.Applied = Applied{t.Clone(), maps.Clone(d.virtualCapacity())}
	if key := d.p.Keys.NodeMachine; key != "" {
		n.Labels = merge(n.Labels, nil, map[string]string{key: d.m.Name})
	}
	if taint := d.p.Keys.NotReadyTaint; joining && taint != "" {
		n.Taints = slices.DeleteFunc(n.Taints, func(t object.Taint) bool { return t.Key == taint })
	}
	n.AddFinalizer(Finalizer)
}

// merge removes from have what was applied last and is not wanted any more,
// unless somebody gave it another value since, and puts in what is wanted.
func merge(have, last, want map[string]string) map[string]string {
	out := maps.Clone(have)
	if out == nil {
		out = make(map[string]string, len(want))
	}
	for k, v := range last {
		if out[k] == v {
			delete(out, k)
		}
	}
	maps.Copy(out, want)
	return out
}

// mergeTaints is merge for taints, which key and effect identify.
func mergeTaints(have, last, want []object.Taint) []object.Taint {
	out := slices.DeleteFunc(slices.Clone(have), func(t object.Taint) bool {
		return slices.Contains(last, t) || slices.ContainsFunc(want, t.Same)
	})
	return append(out, want...)
}
