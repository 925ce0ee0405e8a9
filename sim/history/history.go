package history

import "time"

// History is one run of one fleet. Its zero value is an empty one, for Add and Note to fill. It
// stays below half a megabyte, for any length of run and any size of fleet.
type History struct {
	// Name is that of the fleet.
	Name string
	// Seed is what the run followed from.
	Seed uint64
	// Start is when recording began, in the time of the simulation.
	Start time.Time
	// Length is how long the run has taken. Nothing in the history is later.
	Length time.Duration

	// Samples are how the fleet stood, in the order of time. Each holds until the next.
	Samples []Sample
	// Stride is the finest time that the history tells apart: there is one sample for all changes
	// within one stride. It is 1 s or more. Zero means that there is no sample.
	Stride time.Duration

	// Marks are what happened, in the order in which it began.
	Marks []Mark
	// Gap is the longest time between two marks of the same kind and words that were merged. It is
	// 1 s or more. Zero means that there is no mark.
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
	// Terminating are those being deleted, in any phase. No bound counts them.
	Terminating int

	// Fewest and Most are the lowest Available and the highest Total while the sample holds. More
	// may happen between two moments that the history tells apart.
	Fewest, Most int
	// Short and Over are by how many machines the fleet was below its floor and above its ceiling
	// at most, in that time. Zero means that it was not.
	Short, Over int
}

// Available returns how many machines do their work, for however short a time they have been ready.
func (s *Sample) Available() int { return s.OldAvailable + s.NewAvailable }

// Total returns how many machines there are, without those being deleted.
func (s *Sample) Total() int {
	return s.Available() + s.Pending + s.Updating + s.Unknown + s.CrashLoop + s.Failed
}

// Kind is what sort of thing happened.
type Kind uint8

// These are the kinds.
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
	// Violation is something that must never happen.
	Violation

	kindCount = int(Violation) + 1
)

var kindNames = [kindCount]string{
	Fault: "fault", Edit: "edit", Kill: "kill", Outage: "outage", Freeze: "freeze", Violation: "violation",
}

// String returns the kind's name for people.
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
	// What is what happened, in a few words.
	What string
	// Times is how often it happened.
	Times int
}
