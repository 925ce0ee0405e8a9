package sim

import (
	"time"

	"github.com/millwright-go/millwright/machine"
)

// RuleChildren is the name of the rule that the owner of machines is deleted after them.
const RuleChildren = "children first"

// children is that rule. was has the sets that there were at the last effect, by UID.
type children struct {
	*World
	was map[string]bool
}

func newChildren(w *World) *children { return &children{w, map[string]bool{}} }

func (w *children) see(e event) {
	if _, ok := e.(effect); ok {
		w.checkOwners(w.machines.all())
	}
}

// checkOwners: a set that is gone leaves no machine behind that it must have known.
func (w *children) checkOwners(machines []*machine.Machine) {
	now := map[string]bool{}
	for _, s := range w.sets.all() {
		now[s.UID] = true
	}
	for _, m := range machines {
		known := w.lives[m.UID]
		if m.Owner == nil || now[m.Owner.UID] || !w.was[m.Owner.UID] || w.belated || known == nil {
			continue
		}
		if !w.underWay(known.firstSeen) {
			w.violate(RuleChildren, "set %s is gone, but machine %s still exists", m.Owner.Name, m.Name)
		}
	}
	w.was = now
}

// RuleClass is the name of the rule that no machine is taken out of service to be updated to a class that
// does not exist.
const RuleClass = "class first"

// classFirst is that rule. gone says since when classes are not there, by name.
type classFirst struct {
	*World
	gone map[string]time.Time
}

// classTurns: somebody has removed a class, or made it again.
type classTurns struct {
	name string
	gone bool
}

func newClassFirst(w *World) *classFirst { return &classFirst{w, map[string]time.Time{}} }

func (w *classFirst) see(e event) {
	switch e := e.(type) {
	case classTurns:
		if delete(w.gone, e.name); e.gone {
			w.gone[e.name] = w.Now()
		}
	case machineChanged:
		if e.seen.last.Spec.InPlace != machine.InPlaceSelected && e.now.Spec.InPlace == machine.InPlaceSelected {
			w.checkSelected(e.now)
		}
	}
}

func (w *classFirst) checkSelected(m *machine.Machine) {
	target := m.Annotations[w.deploymentPolicy().Keys.InPlaceTarget]
	for _, s := range w.sets.all() {
		class := s.Spec.Template.Spec.Class.Name
		if since, gone := w.gone[class]; gone && s.Name == target && !w.unknown(since) && !w.belated {
			w.violate(RuleClass, "machine %s was selected for an update in place to class %s, which is not there since %s", m.Name, class, since.Format(time.TimeOnly))
		}
	}
}
