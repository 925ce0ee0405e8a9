package machine

import (
	"maps"
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// outOfLine tells whether a node is to be synced. A node that is going stays
// as it is.
func (d *decider) outOfLine(n *Node, joining bool) bool {
	return !(d.inLine(n, joining) && d.capacityInLine(n)) && !n.Deleted()
}

// sync brings a node in line: the machine's name, our finalizer, the template
// and the class's virtual capacity. joining also takes the startup taint off.
func (d *decider) sync(n *Node, joining bool) Plan {
	if d.behind(n) {
		return d.fence(n)
	}
	want := n.toApply()
	d.apply(want, joining)
	return Plan{
		Effect: &SyncNode{Node: want, Spec: true, Capacity: !d.capacityInLine(n)},
		Why:    decision.Why{Reason: reasonSyncNode, Name: n.Name},
	}
}

// toApply is a clone, but for what apply replaces anyway.
func (n *Node) toApply() *Node {
	c := *n
	meta := object.Meta{Finalizers: n.Finalizers, Owner: n.Owner}
	meta = meta.CloneMeta()
	c.Finalizers, c.Owner = meta.Finalizers, meta.Owner
	c.Conditions, c.Addresses = slices.Clone(n.Conditions), slices.Clone(n.Addresses)
	c.Drain = n.Drain.Clone()
	return &c
}

// undone tells whether the node was written, and something else keeps changing
// it back. No machine fails to join for that, unless the startup taint stays.
func (d *decider) undone(n *Node) bool {
	return d.o.NodeSynced.Code == codes.OK && !n.hasTaint(d.p.Keys.NotReadyTaint)
}

// notInLine says why a node is not as it should be though it was just written.
func (d *decider) notInLine(n *Node) decision.Why {
	answer := d.o.NodeSynced
	if answer.Code == codes.OK {
		return decision.Why{Reason: reasonSyncUndone, Name: n.Name}
	}
	return decision.Why{Reason: reasonSyncFailed, Name: n.Name, Code: answer.Code, Detail: answer.Message}
}

// syncLater has a plan that ends the pass look again soon at a node that could
// not be brought in line. It holds nothing else up: verdicts and deadlines do
// not wait for a node that can't be written.
func (d *decider) syncLater(plan Plan, n *Node) Plan {
	if plan.Write != nil || plan.Effect != nil {
		return plan
	}
	wait := nodeRetry
	if d.o.NodeSynced.Code == codes.OK {
		wait = undoneRetry
	}
	if at := d.now.Add(wait); plan.At.IsZero() || at.Before(plan.At) {
		plan.At = at
	}
	plan.Warn = d.notInLine(n)
	return plan
}

// inLine tells whether metadata and taints are as apply would leave them. A
// settled machine spends most of its time here: nothing is allocated, and the
// record is not compared while its generation vouches for it.
func (d *decider) inLine(n *Node, joining bool) bool {
	key := d.p.Keys.NodeMachine
	if key != "" && d.owner != d.m.Name || !n.HasFinalizer(NodeFinalizer) || joining && n.hasTaint(d.p.Keys.NotReadyTaint) {
		return false
	}
	last := &n.Applied
	// Generations of different machines say nothing, hence the name first.
	vouched := key != "" && last.Generation != 0 && last.Generation == d.m.Generation
	var due made
	if !vouched || d.m.Spec.Marks != (RolloutMarks{}) {
		due = d.due(n)
		if !d.rolloutInLine(n, due) {
			return false
		}
	}
	return d.marksInLine(n) && d.preservedInLine(n) && d.templateInLine(n, vouched, due)
}

// templateInLine tells whether the template is on the node as it was recorded.
func (d *decider) templateInLine(n *Node, vouched bool, due made) bool {
	t, last := &d.m.Spec.NodeTemplate, &n.Applied
	return d.mapInLine(n.Labels, last.Labels, t.Labels, ownLabel, vouched, 0) &&
		d.mapInLine(n.Annotations, last.Annotations, t.Annotations, ownAnnotation, vouched, due.annotations()) &&
		(vouched || recordsTaints(last.Taints, t.Taints, due.taints())) && d.holdsTaints(n.Taints, t.Taints)
}

// recordsTaints tells whether want is what was applied last, with so many
// marks behind it.
func recordsTaints(last, want []object.Taint, marks int) bool {
	return len(last) == len(want)+marks && slices.Equal(last[:len(want)], want)
}

func (d *decider) capacityInLine(n *Node) bool {
	return d.mapInLine(n.Capacity, n.Applied.VirtualCapacity, d.virtualCapacity(), nil, false, 0)
}

func (d *decider) virtualCapacity() map[string]string {
	if d.o.Class == nil || d.o.Class.NodeTemplate == nil {
		return nil
	}
	return d.o.Class.NodeTemplate.VirtualCapacity
}

// mapInLine tells whether want is what was applied last, unless that is vouched
// for, and still there. Of an entry that is the library's own, only the record
// counts. An absent entry is not one with an empty value. The record has so many
// marks besides, which are known to be in line.
func (d *decider) mapInLine(have, last, want map[string]string, own func(*Keys, string) bool, vouched bool, marks int) bool {
	if !vouched && len(last) != len(want)+marks {
		return false
	}
	for k, v := range want {
		if is, ok := have[k]; (!ok || is != v) && (own == nil || !own(&d.p.Keys, k)) {
			return false
		}
		if vouched {
			continue
		}
		if was, ok := last[k]; !ok || was != v {
			return false
		}
	}
	return true
}

func (d *decider) holdsTaints(have, want []object.Taint) bool {
	for i := range want {
		if !slices.Contains(have, want[i]) && !d.startup(want[i]) {
			return false
		}
	}
	return true
}

// startup tells whether a taint is the one that nodes register with and that
// goes when they join. A template that names it changes nothing about that.
func (d *decider) startup(t object.Taint) bool {
	return t.Key != "" && t.Key == d.p.Keys.NotReadyTaint
}

// apply changes a node into what it should be. It replaces the maps of labels,
// annotations and capacity, the taints, and the record of what was applied.
func (d *decider) apply(n *Node, joining bool) {
	marks := d.preservedMarks(n)
	d.dropKept(n, marks)
	due := d.due(n)
	t := d.marked(due)
	n.Labels = merge(n.Labels, n.Applied.Labels, t.Labels)
	n.Annotations = merge(n.Annotations, n.Applied.Annotations, t.Annotations)
	n.Capacity = merge(n.Capacity, n.Applied.VirtualCapacity, d.virtualCapacity())
	n.Taints = mergeTaints(n.Taints, without(n.Applied.Taints, d.startup), without(t.Taints, d.startup))
	n.Applied = Applied{
		NodeTemplate: t, VirtualCapacity: maps.Clone(d.virtualCapacity()), Generation: d.m.Generation,
		Update: n.Applied.Update, Critical: n.Applied.Critical, Preserved: n.Applied.Preserved,
	}
	if d.m.Spec.Marks == (RolloutMarks{}) && due != (made{}) {
		n.Applied.Generation = 0 // a preserved machine's marks, which are to go once it is not preserved any more
	}
	if key := d.p.Keys.NodeMachine; key != "" {
		n.Labels[key] = d.m.Name
	}
	if joining {
		n.Taints = without(n.Taints, d.startup)
	}
	d.applyMarks(n)
	d.applyPreserved(n, marks)
	n.AddFinalizer(NodeFinalizer)
}
