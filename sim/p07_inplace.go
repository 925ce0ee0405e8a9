package sim

import (
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
)

// p07InPlace: of a fleet whose rollout selects machines for their update in place, no more are out of
// service for it at a time than the bounds allow, even if somebody selects more by labels on nodes.
type p07InPlace struct{ *World }

func (w p07InPlace) see(e event) {
	if e, ok := e.(machineChanged); ok && e.seen.last.Status.Phase == machine.PhaseRunning && e.now.Status.Phase == machine.PhaseInPlaceUpdating {
		w.checkAtOnce(e.now)
	}
}

func (w p07InPlace) checkAtOnce(m *machine.Machine) {
	s := w.setRecords[ownerUID(m)]
	if s == nil || s.last.Owner == nil || w.belated {
		return
	}
	d := w.deployment(s.last.Owner.Name)
	if d == nil || d.Deleted() || d.Spec.Strategy.Kind != deployment.InPlaceUpdate || d.Spec.Strategy.Orchestration != deployment.Automatic {
		return
	}
	b, out := w.bounds[d.UID], 0
	for _, other := range w.fleetOf(d) {
		if other.Status.Phase == machine.PhaseInPlaceUpdating && !other.Deleted() {
			out++
		}
	}
	if b != nil && out > b.ceiling-b.floor {
		w.violate("P7", "machine %s of %s is taken out of service for its update: %d are at a time, %d may be", m.Name, d.Name, out, b.ceiling-b.floor)
	}
}
