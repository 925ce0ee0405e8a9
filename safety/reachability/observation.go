package reachability

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// Stage says how much may be done to a fleet, given which API servers answer. The zero value is
// that of a new process: frozen.
type Stage int

// The stages, in the order in which a fleet goes through them.
const (
	// Unproven: one of them has not answered yet. Frozen.
	Unproven Stage = iota
	// Open: nothing is held back.
	Open
	// Lost: one has been down for too long. Frozen.
	Lost
	// Restarting: both answer again, and clocks are being restarted. Frozen.
	Restarting
	// Settling: all clocks were restarted, and nodes have time to report. Frozen.
	Settling
)

// Frozen reports whether machines and sets are to be decided about as frozen.
func (s Stage) Frozen() bool { return s != Open }

// State is what a process knows of its API servers. It is kept in memory, because a server that is
// down could not store it. The zero value is right for a new process.
type State struct {
	Stage Stage
	// Checked is when both were last asked. Zero: never.
	Checked time.Time
	// Control has the objects, Target the nodes.
	Control, Target Side
	// From is the time that clocks are restarted from, whole seconds. Zero, in Restarting: continue
	// from the time that an earlier process left unfinished.
	From time.Time
	// Until is when Settling ends.
	Until time.Time
}

// Side is what is known of one API server.
type Side struct {
	// Up: the last answer came.
	Up bool
	// DownSince is when the first of the latest failed checks in a row failed. Zero: the last check
	// succeeded.
	DownSince time.Time
	// Last is the answer to the last check.
	Last machine.Outcome
}

// Observation is what a decision about reachability is made from.
type Observation struct {
	// State is Plan.State of the last plan.
	State State
	// NoTarget: there is no target cluster.
	NoTarget bool
	// Control and Target are the answers of this pass. Nil: not asked. Any error but the server's
	// "not found" has a code.
	Control, Target *machine.Outcome
	// Machines are all machines, read live in this pass after both servers have answered. Nil: not
	// read. Empty, not nil: there are none.
	Machines []*machine.Machine
}

// Plan is what to do next: Check, or ReadMachines, or Restart. With none of them, decide again at
// At.
type Plan struct {
	// State replaces the memory with every plan, before the rest of the plan is carried out. From
	// then on State.Stage.Frozen() goes to all other decisions.
	State State
	// Check asks for a cheap read on both API servers, without caches and with a timeout of its
	// own. The name need not exist.
	Check bool
	// ReadMachines asks for a live read of all machines.
	ReadMachines bool
	// Restart are writes of machines, each under the version observed. The store's answer replaces
	// the machine. Remove a machine that is gone from Machines, and read a machine again after a
	// conflict. Any other error ends the pass.
	Restart []RestartClock
	At      time.Time
	Why     decision.Why
	// Warn is a warning for the operator. Zero: there is none.
	Warn decision.Why
}

// RestartClock is a write of a machine's status that restarts its waits.
type RestartClock struct {
	Machine *machine.Machine // as observed
	Status  machine.Status
	// Move is what the write means for the phase. Zero: nothing.
	Move machine.Move
	Why  decision.Why
}
