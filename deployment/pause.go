package deployment

import (
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// A paused set keeps its size and is not deleted: not by a rollout, not with the deployment, and
// not as history. Machines neither come to it nor leave it, except for moves that had begun. Notes
// for later, such as rollout marks, are still written on it. A paused machine is not selected for
// an update and not replaced. The reason for a wait says if a paused object causes it.

// leaves reports whether an object is paused.
func (d *situation) leaves(m *object.Meta) bool {
	paused, _ := machine.Paused(m, d.p.Keys.Paused)
	return paused
}

// copiedPause reports whether a set is paused by a copy of its deployment's annotation. On a
// deployment the annotation means nothing. Other managers copy a deployment's annotations to its
// sets, where this one would pause them. So the deployment removes it from a set if both have the
// same.
func (d *situation) copiedPause(s *machineset.Set) bool {
	key := d.p.Keys.Paused
	text, ok := s.Annotations[key]
	return ok && key != "" && has(d.deployment.Annotations, key) && d.deployment.Annotations[key] == text
}

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}
