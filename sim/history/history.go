package history

import "time"

// History is one run of one fleet. Its zero value is an empty one, to be filled
// by Add and Note; it stays below half a megabyte, however long the run and
// however large the fleet.
type History struct {
	// Name is that of the fleet.
	Name string
	// Seed is what the run followed from.
	Seed uint64
	// Start is when recording began, in the time of the simulation.
	Start time.Time
	// Length is how long it has been going on; nothing in it is later.
	Length time.Duration

	// Samples are how the fleet stood, in the order of time; each holds until
	// the next.
	Samples []Sample
	// Stride is the finest time that is told apart: of all that changed within
	// one, there is one sample. It is 1 s or more; zero: there is no sample.
	Stride time.Duration

	// Marks are what happened, in the order in which it began.
	Marks []Mark
	// Gap is the longest time between two marks of the same kind and words that
	// have become one. It is 1 s or more; zero: there is no mark.
	Gap time.Duration
	// Unkept is how many marks there was no room for.
	Unkept int
}

// Sample is how a fleet stands from a moment on.
type Sample struct {
	// After is when, since the start.
	After time.Duration
	// Wanted is how many machines the fleet's owner wants. Floor is how many
	// have to be available for the manager to take one away; Ceiling is how many
	// there may be for it to make one.
	Wanted, Floor, Ceiling int

	// OldAvailable and NewAvailable are machines that do their work (phases
	// Running and Available), from an earlier template and from that of now.
	OldAvailable, NewAvailable int
	// Pending are those being made, or waiting for their node.
	Pending int
	// Updating are those in any phase of an update in place.
	Updating int
	// Unknown, CrashLoop and Failed are those in the phase of that name.
	Unknown, CrashLoop, Failed int
	// Terminating are those being deleted, whatever their phase. No bound
	// counts them.
	Terminating int

	// Fewest and Most are the lowest Available and the highest Total while the
	// sample holds: between two moments that are told apart more may happen.
	Fewest, Most int
	// Short and Over are by how many machines it was below its floor and above
	// its ceiling at most, in that time; zero: it was not.
	Short, Over int
}

// Available is how many machines do their work. How long they have been ready
// is not asked.
func (s *Sample) Available() int { return s.OldAvailable + s.NewAvailable }

// Total is how many machines there are, without those being deleted.
func (s *Sample) Total() int {
	return s.Available() + s.Pending + s.Updating + s.Unknown + s.CrashLoop + s.Failed
}

// Kind is what sort of thing happened.
type Kind uint8

// The kinds.
const (
	// Fault is something that went wrong around the fleet.
	Fault Kind = iota
	// Edit is a change of what is wanted, by the fleet's owner.
	Edit
	// Kill is an end of the manager's process.
	Kill
	// Outage is a time in which something did not answer.
	Outage
	// Freeze is a time in which the fleet was frozen.
	Freeze
	// Violation is something that must never be.
	Violation

	kindCount = int(Violation) + 1
)

var kindNames = [kindCount]string{
	Fault: "fault", Edit: "edit", Kill: "kill", Outage: "outage", Freeze: "freeze", Violation: "violation",
}

// String is what a person calls it.
func (k Kind) String() string {
	if int(k) >= kindCount {
		return "unknown"
	}
	return kindNames[k]
}

// Mark is something that happened: once, several times close to each other, or
// for a while.
type Mark struct {
	// After and Until are when it began, or happened first, and when it ended,
	// or happened last, since the start.
	After, Until time.Duration
	Kind         Kind
	// What it was, in a few words.
	What string
	// Times is how often it happened.
	Times int
}
