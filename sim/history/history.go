package history

import "time"

// History is one run of one fleet. Its zero value is an empty one, for Add and Note to fill. It
// stays below half a megabyte, for any length of run and any size of fleet.
type History struct {
	// Name is the fleet's name.
	Name string
	// Seed is the one that the run was made from.
	Seed uint64
	// Start is when recording began, in the time of the simulation.
	Start time.Time
	// Length is how long the run has taken. Nothing in the history is later.
	Length time.Duration

	// Samples are the fleet's counts, ordered by time. Each sample holds until the next one.
	Samples []Sample
	// Stride is the resolution of Samples: all changes within one stride are in one sample. It is
	// 1 s or more. Zero means that there is no sample.
	Stride time.Duration

	// Marks are the things that happened, ordered by the time at which they began.
	Marks []Mark
	// Gap is the longest time between two marks of the same kind and words that were merged. It is
	// 1 s or more. Zero means that there is no mark.
	Gap time.Duration
	// Dropped counts the marks that were left out for want of room.
	Dropped int
}

// Sample holds a fleet's counts from a moment on.
type Sample struct {
	// After is the time between the start and that moment.
	After time.Duration
	// Wanted is how many machines the fleet's owner wants. The manager deletes no machine if fewer
	// than Floor would remain available, and creates none if there would be more than Ceiling.
	Wanted, Floor, Ceiling int

	// OldAvailable and NewAvailable count the machines that do their work (phases Running and
	// Available), from an earlier template and from the current one.
	OldAvailable, NewAvailable int
	// Pending counts machines that are being created, or wait for their node.
	Pending int
	// Updating counts machines in any phase of an update in place.
	Updating int
	// Unknown, CrashLoop and Failed count machines in the phase of that name.
	Unknown, CrashLoop, Failed int
	// Terminating counts machines that are being deleted, in any phase. No bound counts them.
	Terminating int

	// MinAvailable and MaxTotal are the lowest Available and the highest Total while the sample
	// holds. They include changes within the stride, which the counts above don't show.
	MinAvailable, MaxTotal int
	// Short and Over are how many machines the fleet was below its floor and above its ceiling, at
	// most, while the sample holds.
	Short, Over int
}

// Available returns how many machines do their work, for however short a time they have been ready.
func (s *Sample) Available() int { return s.OldAvailable + s.NewAvailable }

// Total returns how many machines there are, without those being deleted.
func (s *Sample) Total() int {
	return s.Available() + s.Pending + s.Updating + s.Unknown + s.CrashLoop + s.Failed
}

// Kind is the sort of thing that happened.
type Kind uint8

// These are the kinds.
const (
	// Fault is something that went wrong around the fleet.
	Fault Kind = iota
	// Edit is a change of what is wanted, by the fleet's owner.
	Edit
	// Kill is a crash of the manager's process.
	Kill
	// Outage is a period in which something did not answer.
	Outage
	// Freeze is a period in which the fleet was frozen.
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

// Mark is something that happened: once, several times close to each other, or for a while.
type Mark struct {
	// After is when it began or first happened, Until when it ended or last happened. Both count
	// from the start.
	After, Until time.Duration
	Kind         Kind
	// What says in a few words what happened.
	What string
	// Times is how often it happened.
	Times int
}
