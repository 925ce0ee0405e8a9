package machineset

import (
	"time"

	"github.com/millwright-go/millwright/machine"
)

// candidates are the machines that a scaler chose, and when; nil: not needed.
type candidates map[string]time.Time

// chosen says when each of DeletionCandidates was chosen; nil: there are none.
func (i *Instructions) chosen() candidates {
	if len(i.DeletionCandidates) == 0 {
		return nil
	}
	at := make(candidates, len(i.DeletionCandidates))
	for _, v := range i.DeletionCandidates {
		at[v.Name] = v.At
	}
	return at
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

// still reports whether a machine that a scaler has chosen to go still is what it
// was then. One that has become available since is expected to stay longer than
// those that are not: it is first among its equals only.
func (c candidates) still(m *machine.Machine, available bool, minReady time.Duration) bool {
	at, chosen := c[m.Name]
	return chosen && (!available || !m.AvailableAt(minReady).After(at))
}
