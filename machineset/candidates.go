package machineset

import (
	"time"

	"github.com/millwright-go/millwright/machine"
)

// chosen says when each of DeletionCandidates was chosen; nil: there are none.
func (i *Instructions) chosen() map[string]time.Time {
	if len(i.DeletionCandidates) == 0 {
		return nil
	}
	at := make(map[string]time.Time, len(i.DeletionCandidates))
	for _, v := range i.DeletionCandidates {
		at[v.Name] = v.At
	}
	return at
}

// asChosen reports whether a machine that a scaler has chosen to go still is what it
// was then. One that has become available since is expected to stay longer than
// those that are not: it is first among its equals only.
func (d *decider) asChosen(m *machine.Machine, available bool) bool {
	at, chosen := d.chosen[m.Name]
	return chosen && (!available || !m.AvailableAt(d.s.Spec.MinReady).After(at))
}

// chosenAt is when a scaler chose the machine of this name; false: none did.
func (i *Instructions) chosenAt(name string) (at time.Time, chosen bool) {
	for _, v := range i.DeletionCandidates {
		if v.Name == name {
			return v.At, true
		}
	}
	return time.Time{}, false
}

// class comes before everything else in the deletion order. A machine
// that a user keeps for inspection is last even if a scaler chose it, or its
// replacement was requested. One that works is deleted for its replacement
// only after those that do not: a rollout assumes that a set deletes these
// first.
func (d *decider) class(m *machine.Machine, available bool) class {
	switch {
	case d.explicit(m):
		return classExplicit
	case d.asChosen(m, available):
		return classMarked
	case !available && Requested(m, d.p.Keys.Replace):
		return classRequested
	case d.keeps(m):
		return classAutomatic
	}
	return classPlain
}
