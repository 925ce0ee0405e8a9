package machine

import (
	"maps"
	"slices"

	"github.com/millwright-go/millwright/object"
)

// Values of the marks, in the spelling that other programs look for.
const (
	avoidValue = "True"
	keepValue  = "true"
)

// made are the marks that are, or are to be, on a node and ours. The keys of
// the template are never among them.
type made struct{ avoid, keep, kept bool }

func (m made) annotations() (n int) {
	if m.keep {
		n++
	}
	if m.kept {
		n++
	}
	return n
}

func (m made) taints() int {
	if m.avoid {
		return 1
	}
	return 0
}

// recorded are the marks that the node's record has as ours.
func (d *decider) recorded(n *Node) made {
	t, last, keys := &d.m.Spec.NodeTemplate, &n.Applied.NodeTemplate, &d.p.Keys
	return made{
		avoid: slices.Contains(last.Taints, d.avoidTaint()) && !d.templateAvoids(),
		keep:  keeps(last.Annotations, keys.KeepNode) && !has(t.Annotations, keys.KeepNode),
		kept:  keeps(last.Annotations, keys.keptByUs()) && !has(t.Annotations, keys.KeptByUs),
	}
}

// due are the marks that should be on the node and ours: those wanted whose
// place is free, or holds what we put there. A preserved machine's stay.
func (d *decider) due(n *Node) made {
	if d.preserved() {
		return d.recorded(n)
	}
	want, t, keys := d.m.Spec.Marks, &d.m.Spec.NodeTemplate, &d.p.Keys
	var m made
	m.avoid = want.Avoid && keys.AvoidTaint != "" && !d.templateAvoids() && d.mayTaint(n)
	m.keep = want.Keep && keys.KeepNode != "" && !has(t.Annotations, keys.KeepNode) && mayAnnotate(n, keys.KeepNode)
	m.kept = m.keep && keys.keptByUs() != "" && !has(t.Annotations, keys.KeptByUs) && mayAnnotate(n, keys.KeptByUs)
	return m
}

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok && key != ""
}

// keeps tells whether a key has the value that a mark has.
func keeps(m map[string]string, key string) bool { return key != "" && m[key] == keepValue }

// mayAnnotate tells whether an annotation is missing, or as we left it.
func mayAnnotate(n *Node, key string) bool {
	value, taken := n.Annotations[key]
	last, ours := n.Applied.Annotations[key]
	return !taken || ours && value == last
}

func (d *decider) avoidTaint() object.Taint {
	return object.Taint{Key: d.p.Keys.AvoidTaint, Value: avoidValue, Effect: object.PreferNoSchedule}
}

func (d *decider) templateAvoids() bool {
	return slices.ContainsFunc(d.m.Spec.NodeTemplate.Taints, d.avoidTaint().Same)
}

// mayTaint tells whether the taint is missing, or as we left it.
func (d *decider) mayTaint(n *Node) bool {
	i := slices.IndexFunc(n.Taints, d.avoidTaint().Same)
	return i < 0 || slices.Contains(n.Applied.Taints, n.Taints[i])
}

// rolloutInLine tells whether the marks are on the node that should be, and
// recorded as ours, and no others are.
func (d *decider) rolloutInLine(n *Node, due made) bool {
	return due == d.recorded(n) && (!due.avoid || slices.Contains(n.Taints, d.avoidTaint())) &&
		(!due.keep || keeps(n.Annotations, d.p.Keys.KeepNode)) && (!due.kept || keeps(n.Annotations, d.p.Keys.KeptByUs))
}

// marked is a copy of the template with the marks that are due.
func (d *decider) marked(due made) NodeTemplate {
	t := d.m.Spec.NodeTemplate.Clone()
	if due.annotations() > 0 {
		annotations := make(map[string]string, len(t.Annotations)+due.annotations())
		maps.Copy(annotations, t.Annotations)
		annotations[d.p.Keys.KeepNode] = keepValue
		if due.kept {
			annotations[d.p.Keys.KeptByUs] = keepValue
		}
		t.Annotations = annotations
	}
	if due.avoid {
		t.Taints = append(t.Taints, d.avoidTaint())
	}
	return t
}
