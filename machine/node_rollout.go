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
func (r nodeRollout) recorded() made {
	t, last, keys := &r.m.Spec.NodeTemplate, &r.n.Applied.NodeTemplate, &r.p.Keys
	return made{
		avoid: slices.Contains(last.Taints, r.avoidTaint()) && !r.templateAvoids(),
		keep:  keeps(last.Annotations, keys.KeepNode) && !has(t.Annotations, keys.KeepNode),
		kept:  keeps(last.Annotations, keys.keptByUs()) && !has(t.Annotations, keys.KeptByUs),
	}
}

// due are the marks that should be on the node and ours: those wanted whose
// place is free, or holds what we put there. A preserved machine's stay.
func (r nodeRollout) due() made {
	if r.preserved() {
		return r.recorded()
	}
	want, t, keys := r.m.Spec.Marks, &r.m.Spec.NodeTemplate, &r.p.Keys
	var m made
	m.avoid = want.Avoid && keys.AvoidTaint != "" && !r.templateAvoids() && r.mayTaint()
	m.keep = want.Keep && keys.KeepNode != "" && !has(t.Annotations, keys.KeepNode) && mayAnnotate(r.n, keys.KeepNode)
	m.kept = m.keep && keys.keptByUs() != "" && !has(t.Annotations, keys.KeptByUs) && mayAnnotate(r.n, keys.KeptByUs)
	return m
}

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok && key != ""
}

// keeps reports whether a key has the value that a mark has.
func keeps(m map[string]string, key string) bool { return key != "" && m[key] == keepValue }

// mayAnnotate reports whether an annotation is missing, or as we left it.
func mayAnnotate(n *Node, key string) bool {
	value, taken := n.Annotations[key]
	last, ours := n.Applied.Annotations[key]
	return !taken || ours && value == last
}

func (r nodeRollout) avoidTaint() object.Taint {
	return object.Taint{Key: r.p.Keys.AvoidTaint, Value: avoidValue, Effect: object.PreferNoSchedule}
}

func (r nodeRollout) templateAvoids() bool {
	return slices.ContainsFunc(r.m.Spec.NodeTemplate.Taints, r.avoidTaint().Same)
}

// mayTaint reports whether the taint is missing, or as we left it.
func (r nodeRollout) mayTaint() bool {
	i := slices.IndexFunc(r.n.Taints, r.avoidTaint().Same)
	return i < 0 || slices.Contains(r.n.Applied.Taints, r.n.Taints[i])
}

// inLine reports whether the marks are on the node that should be, and
// recorded as ours, and no others are.
func (r nodeRollout) inLine(due made) bool {
	return due == r.recorded() && (!due.avoid || slices.Contains(r.n.Taints, r.avoidTaint())) &&
		(!due.keep || keeps(r.n.Annotations, r.p.Keys.KeepNode)) && (!due.kept || keeps(r.n.Annotations, r.p.Keys.KeptByUs))
}

// template is a copy of the template with the marks that are due.
func (r nodeRollout) template(due made) NodeTemplate {
	usable := r.m.Spec.NodeTemplate.usable()
	t := usable.Clone()
	if due.annotations() > 0 {
		annotations := make(map[string]string, len(t.Annotations)+due.annotations())
		maps.Copy(annotations, t.Annotations)
		annotations[r.p.Keys.KeepNode] = keepValue
		if due.kept {
			annotations[r.p.Keys.KeptByUs] = keepValue
		}
		t.Annotations = annotations
	}
	if due.avoid {
		t.Taints = append(t.Taints, r.avoidTaint())
	}
	return t
}
