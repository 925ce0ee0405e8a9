package sim

import "github.com/millwright-go/millwright/machine"

// RuleChildren: the owner of machines is deleted after them.
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
		if !w.underWay(known.born) {
			w.violate(RuleChildren, "set %s is gone, and machine %s is there", m.Owner.Name, m.Name)
		}
	}
	w.was = now
}
