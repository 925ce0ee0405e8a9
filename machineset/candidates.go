package machineset

import (
	"time"

	"github.com/millwright-go/millwright/machine"
)

// DeletionCandidate is a machine that a scaler has chosen to go.
type DeletionCandidate struct {
	Name string
	At   time.Time // when the scaler said so or, where its clock is another one, when the set was told; whole seconds
}

// Equal tells whether both say the same, the same instant in whatever location.
func (v DeletionCandidate) Equal(w DeletionCandidate) bool {
	return v.Name == w.Name && v.At.Equal(w.At)
}

// chosen says when each of DeletionCandidates was chosen; nil: there are none.
func (s *Spec) chosen() map[string]time.Time {
	if len(s.DeletionCandidates) == 0 {
		return nil
	}
	at := make(map[string]time.Time, len(s.DeletionCandidates))
	for _, v := range s.DeletionCandidates {
		at[v.Name] = v.At
	}
	return at
}

// asChosen tells whether a machine that a scaler has chosen to go still is what it
// was then. One that has become available since is counted on to stay before
// those that are not: it goes first among its equals only.
func (d *decider) asChosen(m *machine.Machine, available bool) bool {
	at, chosen := d.chosen[m.Name]
	return chosen && (!available || !m.AvailableAt(d.s.Spec.MinReady).After(at))
}

// chosenAt is when a scaler chose the machine of this name; false: none did.
func (s *Spec) chosenAt(name string) (at time.Time, chosen bool) {
	for i := range s.DeletionCandidates {
		if s.DeletionCandidates[i].Name == name {
			return s.DeletionCandidates[i].At, true
		}
	}
	return time.Time{}, false
}

// class comes before everything else in the deletion order. A machine
// that a user keeps for inspection goes last even if a scaler chose it, or
// another was asked for in its place. One that works goes for its replacement's sake
// only after those that do not: a rollout counts on it that a set gives up
// these first.
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
