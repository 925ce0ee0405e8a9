package machine

import (
	"time"

	"github.com/millwright-go/millwright/decision"
)

// Write is one change of the machine in the store: *Update, *UpdateStatus or *Delete.
//
//sumtype:decl
type Write interface{ write() }

// Update stores metadata and spec.
type Update struct{ Machine *Machine }

// UpdateStatus stores the status.
type UpdateStatus struct{ Status Status }

// Delete asks for the deletion of the machine itself.
type Delete struct{}

func (*Update) write()       {}
func (*UpdateStatus) write() {}
func (*Delete) write()       {}

// Move is one step of a state machine that a write carries out.
type Move = decision.Move

// Plan is what to do next: carry out Write, or Effect, put the answer into
// the observation, and decide again; with neither, look again at At.
type Plan struct {
	Write  Write
	Moves  [6]Move // state changes that Write makes, in their order; unused ones, at the end, are zero
	Effect Effect  // only when Write is nil
	// At is when to look again though nothing has changed; zero: never.
	At  time.Time
	Why decision.Why
	// Warn is something tolerated that its owner should know; zero: nothing.
	Warn decision.Why
}
