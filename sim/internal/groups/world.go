// Package groups is the simulated provider of groups: of the instances that a pool counts. It does
// what such a provider does by itself. It replaces what is lost or ill, and what was made from an
// earlier template, one after the other, and it waits for drains. It knows nothing of the manager.
package groups

import (
	"time"

	"github.com/millwright-go/millwright/object"
)

// World is what the provider stands on.
type World interface {
	Now() time.Time
	// After schedules do to run once d has passed.
	After(d time.Duration, do func())
	// Chance returns a number from 0 to n-1.
	Chance(n int) int
	// UpTo returns a time from 0 to d, by chance.
	UpTo(d time.Duration) time.Duration
	// Happens reports true with probability p, and false once faults have stopped.
	Happens(p float64) bool
	// Faults are those that may happen now.
	Faults() Faults
	// Stopped reports whether faults have stopped.
	Stopped() bool
	// Count counts a fault.
	Count(f Fault)
	// Emit emits an event.
	Emit(event any)
	// Changed reports that the provider has done something by itself.
	Changed()

	// Back returns when a zone works again. It works if that time has passed.
	Back(zone string) time.Time
	// Boots reports whether an instance of a pool can boot now: its bootstrap token is good.
	Boots(pool object.Key) bool

	// NoCluster reports whether instances have no cluster to join. Otherwise Boot is how long an instance takes until it joins,
	// and Seen reports whether the cluster can be asked now.
	NoCluster() bool
	Boot() time.Duration
	Seen() bool

	// The following are about one instance, by the name of its node and its provider ID.

	// Placed tells that it is in a zone, and Removed that it is gone with what runs on it.
	Placed(id, zone string)
	Removed(name, id string)
	// Join makes its node, and Delete deletes it.
	Join(name, id string)
	Delete(name string)
	// Ready reports whether its node is ready, or there is no cluster.
	Ready(name, id string) bool
	// Silent makes the cluster note that its node does not report. Recover makes it ready again.
	Silent(name, id string)
	Recover(name, id string)
}

// Faults are how likely it is that an instance misbehaves: the fields of those names in sim.Faults.
type Faults struct {
	LostVM, DeadBoot float64
	SlowBoot         time.Duration
	Capacity         int
}

// Fault is a kind of misbehaviour: the one of that name in package sim.
type Fault int

// The faults of instances.
const (
	CapacityOut Fault = iota
	VMLost
	DeadBoot
)

// Gone is the event that a pool's group is deleted.
type Gone struct{ Pool object.Key }
