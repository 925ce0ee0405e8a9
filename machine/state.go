package machine

import (
	"strconv"
	"time"
)

// defaultPriority is the deletion priority of a machine that records none.
const defaultPriority = 3

// Ready reports whether a machine does its work: it is Running, or Available if there
// is no cluster, and it is not being deleted.
func (m *Machine) Ready() bool {
	return !m.Deleted() && (m.Status.Phase == PhaseRunning || m.Status.Phase == PhaseAvailable)
}

// DeletionStage is where the machine stands in the deletion table: at StageNone until its
// deletion was begun.
func (s *Status) DeletionStage() Stage {
	op := &s.LastOperation
	if s.Phase != PhaseTerminating || op.Kind != OperationDelete {
		return StageNone
	}
	return Stage(deletions.State(string(op.Stage)))
}

// UpdateStage is where the machine stands in the table of updates in place. While the agent may
// be at work the operation says it, afterwards the phase does. It is StageCandidate outside of updates.
func (s *Status) UpdateStage() Stage {
	op := &s.LastOperation
	stage := StageNone
	if op.Kind == OperationInPlaceUpdate {
		stage = op.Stage
	}
	switch s.Phase {
	case PhaseInPlaceUpdating:
		if stage == StageSelected || stage == StageReady {
			return stage
		}
		return Unrecognized
	case PhaseInPlaceUpdateSuccessful:
		return StageUpdateSuccessful
	case PhaseInPlaceUpdateFailed:
		if stage != StageCandidate {
			return StageUpdateFailed
		}
	}
	return StageCandidate
}

// AvailableAt returns when a ready machine has been ready for minReady; zero if it is
// not ready.
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
// ones go first. It is 3 if there is none, or none that can be read.
func (m *Machine) Priority(key string) int {
	text, ok := m.Annotations[key]
	if !ok {
		return defaultPriority
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return defaultPriority
	}
	return n
}

// Preserved reports whether the machine is kept for inspection and not being
// deleted.
func (m *Machine) Preserved(now time.Time) bool {
	return !m.Deleted() && m.Status.Preservation.Active(now)
}

// PreservedFailed reports whether the machine failed and is kept for inspection. The lists of failed
// machines leave it out: nothing needs to be done about it.
func (m *Machine) PreservedFailed(now time.Time) bool {
	return m.Status.Phase == PhaseFailed && m.Preserved(now)
}

// ToBePreserved reports whether a failed machine's own annotation, under this
// key, asks to keep it, and its status does not say so yet.
func (m *Machine) ToBePreserved(key string) bool {
	p := &m.Status.Preservation
	if key == "" || m.Deleted() || m.Status.Phase != PhaseFailed || p.NodeAsked || !p.Since.IsZero() {
		return false
	}
	switch text := m.Annotations[key]; text {
	case PreserveNow, PreserveWhenFailed, PreserveAutomatically:
		return text != p.Request
	}
	return false
}

// untouched reports whether it is certain that no create was issued for this machine.
func (m *Machine) untouched() bool {
	s := &m.Status
	fresh := s.Phase == PhaseNew && s.LastOperation.Kind == ""
	return m.Spec.ProviderID == "" && (s.NeverCreated || fresh)
}
