package sim

import (
	"time"

	"github.com/millwright-go/millwright/machine"
)

// RuleChildren is the name of the rule that the owner of machines is deleted after them.
const RuleChildren = "children first"

// children checks RuleChildren.
type children struct {
	*World
	existed map[string]bool // UIDs of the sets that existed at the last effect
}

func newChildren(w *World) *children { return &children{w, map[string]bool{}} }

func (w *children) see(e event) {
	if _, ok := e.(effect); ok {
		w.checkOwners(w.machines.all())
	}
}

// checkOwners checks that no set was deleted while a machine of it existed that the manager must have
// known.
func (w *children) checkOwners(machines []*machine.Machine) {
	now := map[string]bool{}
	for _, s := range w.sets.all() {
		now[s.UID] = true
	}
	for _, m := range machines {
		known := w.lives[m.UID]
		if m.Owner == nil || now[m.Owner.UID] || !w.existed[m.Owner.UID] || w.belated || known == nil {
			continue
		}
		if !w.underWay(known.firstSeen) {
			w.violate(RuleChildren, "set %s is gone, but machine %s still exists", m.Owner.Name, m.Name)
		}
	}
	w.existed = now
}

// RuleClass is the name of the rule that no machine is taken out of service to be updated to a class that
// does not exist.
const RuleClass = "class first"

// classFirst checks RuleClass.
type classFirst struct {
	*World
	gone map[string]time.Time // when a class was removed, by name
}

// classPresence: a user has removed a class (gone), or created it again.
type classPresence struct {
	name string
	gone bool
}

func newClassFirst(w *World) *classFirst { return &classFirst{w, map[string]time.Time{}} }

func (w *classFirst) see(e event) {
	switch e := e.(type) {
	case classPresence:
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
