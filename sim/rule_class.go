package sim

import (
	"time"

	"github.com/millwright-go/millwright/machine"
)

// RuleClass: no machine is taken out of service to be updated to a class that is not there.
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
