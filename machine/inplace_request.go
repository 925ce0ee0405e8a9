package machine

import (
	"time"
)

// InPlaceRequest is what a rollout that updates machines in place asks of one
// of them. The machine's owner writes it.
type InPlaceRequest string

// The requests.
const (
	// InPlaceNone asks for nothing. To a machine whose update is done it says
	// that it is where it belongs and may work again; to one whose update is
	// under way, that it was withdrawn.
	InPlaceNone InPlaceRequest = ""
	// InPlaceCandidate says that the machine is to be updated at some time:
	// its node is labelled, and a user may select it by a label on the node.
	InPlaceCandidate InPlaceRequest = "Candidate"
	// InPlaceWaiting says the same, but that the owner decides when: a label on
	// the node begins no update, and is told. One that has begun goes on.
	InPlaceWaiting InPlaceRequest = "Waiting"
	// InPlaceSelected says that it is the machine's turn.
	InPlaceSelected InPlaceRequest = "Selected"
)

func (r InPlaceRequest) known() bool {
	return r == InPlaceNone || r == InPlaceCandidate || r == InPlaceWaiting || r == InPlaceSelected
}

// The answers of an update agent, values of the label Keys.UpdateResult.
const (
	UpdateSuccessful = "successful"
	UpdateFailed     = "failed"
)

// NodeInPlaceUpdate is the condition of a node that says where its update
// stands. Its status is always True, and its reason says the stage. An update
// agent works at ReasonReadyForUpdate only. The condition
// stays on the node: the next update begins at ReasonUpdateSuccessful, or where
// the condition is missing.
const (
	NodeInPlaceUpdate = "InPlaceUpdate"

	ReasonCandidateForUpdate = "CandidateForUpdate"
	ReasonSelectedForUpdate  = "SelectedForUpdate"
	// ReasonDrainSuccessful is read only: this library goes on to
	// ReasonReadyForUpdate at once.
	ReasonDrainSuccessful = "DrainSuccessful"
	ReasonReadyForUpdate  = "ReadyForUpdate"
	// ReasonUpdateSuccessful also stands for an update that was withdrawn: there
	// is nothing for an agent to do.
	ReasonUpdateSuccessful = "UpdateSuccessful"
	ReasonNodeUpdateFailed = "UpdateFailed"
)

// UpdateMarks is the record of what an in-place update has put on a node, so
// that nothing else is taken off again.
type UpdateMarks struct {
	// Since is when the update began that took the node out of service,
	// whole seconds. Zero: none did.
	Since     time.Time
	Candidate bool // the label Keys.CandidateForUpdate is ours
	Selected  bool // the label Keys.SelectedForUpdate is ours, not a user's
	Cordoned  bool // the node was schedulable before
}

func (u *UpdateMarks) equal(v *UpdateMarks) bool {
	return u.Since.Equal(v.Since) && u.Candidate == v.Candidate && u.Selected == v.Selected && u.Cordoned == v.Cordoned
}

func (u *UpdateMarks) none() bool {
	return !u.Candidate && !u.Selected && !u.Cordoned && u.Since.IsZero()
}
