package machineset

import (
	"time"

	"github.com/millwright-go/millwright/machine"
)

// Victim is a machine that a scaler has chosen to go.
type Victim struct {
	Name string
	At   time.Time // when the scaler said so; whole seconds
}

// Equal tells whether both say the same, the same instant in whatever location.
func (v Victim) Equal(w Victim) bool { return v.Name == w.Name && v.At.Equal(w.At) }

// chosen are the names of Victims; nil: there are none.
func (s *Spec) chosen() map[string]bool {
	if len(s.Victims) == 0 {
		return nil
	}
	names := make(map[string]bool, len(s.Victims))
	for i := range s.Victims {
		names[s.Victims[i].Name] = true
	}
	return names
}

// chosenAt is when a scaler chose the machine of this name; false: none did.
func (s *Spec) chosenAt(name string) (at time.Time, chosen bool) {
	for i := range s.Victims {
		if s.Victims[i].Name == name {
			return s.Victims[i].At, true
		}
	}
	return time.Time{}, false
}

// class is what comes before everything else in the order of victims. A machine
// that is explicitly preserved would be plain even if it was chosen.
func (d *decision) class(m *machine.Machine) class {
	switch {
	case d.chosen[m.Name]:
		return classMarked
	case Requested(m, d.p.Keys.Replace):
		return classRequested
	}
	return classPlain
}
