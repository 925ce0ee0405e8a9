package machine

import (
	"strconv"
	"time"
)

// DefaultPriority is the deletion priority of a machine that records none.
const DefaultPriority = 3

// Ready tells whether a machine does its work: it runs, or is available where
// there is no cluster, and is not being deleted.
func (m *Machine) Ready() bool {
	return !m.Deleted() && (m.Status.Phase == PhaseRunning || m.Status.Phase == PhaseAvailable)
}

// AvailableAt is when a ready machine has been ready for minReady; zero if it
// is not ready.
func (m *Machine) AvailableAt(minReady time.Duration) time.Time {
	if !m.Ready() {
		return time.Time{}
	}
	at := m.Status.Since.Add(minReady)
	if minReady > 0 {
		at = at.Add(time.Second) // Since lost its fraction of a second
	}
	return at
}

// Priority is the deletion priority recorded under an annotation key: lower
// ones go first. DefaultPriority if there is none, or none that can be read.
func (m *Machine) Priority(key string) int {
	text, ok := m.Annotations[key]
	if !ok {
		return DefaultPriority
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return DefaultPriority
	}
	return n
}
