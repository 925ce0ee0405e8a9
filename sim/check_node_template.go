package sim

import (
	"context"
	"maps"
	"slices"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// p62: in the end, each machine's node is as the machine's template says, even if others changed it, and
// labels that others have added are still there.
type p62 struct {
	*World
	labelled map[string]bool // UIDs of nodes on which another program has put patrolLabel
}

func newP62(w *World) *p62 { return &p62{w, map[string]bool{}} }

func (w *p62) see(e event) {
	switch e := e.(type) {
	case stripped:
		w.labelled[e.uid] = true
	case allAtRest:
		for _, m := range w.machines.all() {
			if n, err := w.nodes.Get(context.Background(), object.Key{Name: m.Spec.NodeName}); err == nil && m.Ready() {
				w.checkNode(m, n)
			}
		}
	}
}

func (w *p62) checkNode(m *machine.Machine, n *machine.Node) {
	keys, want := w.machinePolicy().Keys, m.Spec.NodeTemplate.Clone()
	labels := withLabel(maps.Clone(want.Labels), keys.NodeMachine, m.Name)
	if w.labelled[n.UID] {
		labels[patrolLabel] = "yes"
	}
	switch {
	case !contains(n.Labels, labels) || !contains(n.Annotations, want.Annotations):
		w.violate("P62", "node %s has labels %v and annotations %v, and lacks some of %v and %v", n.Name, n.Labels, n.Annotations, labels, want.Annotations)
	case !n.HasFinalizer(machine.NodeFinalizer):
		w.violate("P62", "node %s lacks the finalizer that keeps it", n.Name)
	case n.Unschedulable && !w.excuses.cordoned[n.UID]:
		w.violate("P62", "node %s is cordoned, but nobody cordoned it", n.Name)
	}
	for _, t := range want.Taints {
		if !slices.Contains(n.Taints, t) {
			w.violate("P62", "node %s has taints %v, and lacks %v", n.Name, n.Taints, t)
		}
	}
	if slices.ContainsFunc(n.Taints, func(t object.Taint) bool { return t.Key == keys.NotReadyTaint }) {
		w.violate("P62", "node %s still has the taint of nodes that have not joined", n.Name)
	}
}

// contains reports whether m has all entries of part.
func contains(m, part map[string]string) bool {
	for key, value := range part {
		if is, found := m[key]; !found || is != value {
			return false
		}
	}
	return true
}
