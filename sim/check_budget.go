package sim

import "github.com/millwright-go/millwright/machine"

// p24: no more machines of a fleet are marked failed at a time than the replacement budget allows. A budget
// in percent is not checked.
type p24 struct{ *World }

func (w p24) see(e event) {
	if e, ok := e.(machineFailed); ok {
		w.checkBudget(e.machine, e.fleet)
	}
}

func (w p24) checkBudget(m *machine.Machine, fleet []*machine.Machine) {
	p := w.o.Manager.Policies.Safety
	if p == nil || p.Replacements.Percent {
		return
	}
	givenUp := 0
	for _, other := range fleet {
		if known := w.lives[other.UID]; known != nil && known.givenUp && !other.Deleted() && w.records[other.UID].kept.IsZero() && !w.isPaused(other) {
			givenUp++
		}
	}
	if givenUp > int(max(p.Replacements.Value, 1)) {
		w.violate("P24", "machine %s was marked failed, which makes %d failed at a time", m.Name, givenUp)
	}
}
