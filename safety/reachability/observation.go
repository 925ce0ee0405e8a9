package reachability

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// Stage says whether a fleet is frozen, and why. The zero value is the stage of a new process: frozen.
type Stage int

// The stages, in the order in which a fleet goes through them.
const (
	// Unproven: an API server has not answered this process yet. Frozen.
	Unproven Stage = iota
	// Open: not frozen.
	Open
	// Lost: an API server has not answered for too long. Frozen.
	Lost
	// Restarting: both API servers answer again, and clocks are being restarted. Frozen.
	Restarting
	// Settling: all clocks were restarted, and nodes have time to report. Frozen.
	Settling
)

// Frozen reports whether the fleet is frozen.
func (s Stage) Frozen() bool { return s != Open }

// State is what a process knows of its API servers. It is kept in memory, because a server that is
// down could not store it. The zero value is right for a new process.
type State struct {
	Stage Stage
	// Checked is when both were last asked. Zero: never.
	Checked time.Time
	// Control is the API server with the objects, Target the one with the nodes.
	Control, Target Side
	// From is the time that clocks are restarted from, whole seconds. Zero while Restarting: an earlier
	// process may not have restarted all clocks, so its time is used.
	From time.Time
	// Until is when Settling ends.
	Until time.Time
}

// Side is what is known of one API server.
type Side struct {
	// Up: it answered the last check.
	Up bool
	// DownSince is when the first of the latest consecutive failed checks failed. Zero: the last check
	// succeeded.
	DownSince time.Time
	// Last is the answer to the last check.
	Last machine.Outcome
}

// Observation is the input of a decision about reachability.
type Observation struct {
	// State is Plan.State of the last plan.
	State State
	// NoTarget: there is no target cluster.
	NoTarget bool
	// Control and Target are the answers of this pass. Nil: not asked.
	Control, Target *machine.Outcome
	// Machines are all machines, read live in this pass after both servers have answered. Nil: not
	// read. Empty, not nil: there are none.
	Machines []*machine.Machine
}

// Plan is what to do next: Check, or ReadMachines, or Restart. With none of them, decide again at
// At.
type Plan struct {
	// State replaces the memory with every plan, before the rest of the plan is carried out. Pass
	// State.Stage.Frozen() to all other decisions from then on.
	State State
	// Check asks for a cheap read on both API servers, without caches and with a timeout of its
	// own. The object that is read need not exist.
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

// RestartClock is a write of a machine's status that restarts its timeouts.
type RestartClock struct {
	Machine *machine.Machine // as observed
	Status  machine.Status
	// Move is the change of the phase by this write. Zero: the phase stays.
	Move machine.Move
	Why  decision.Why
}
