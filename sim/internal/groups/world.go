// Package groups is the simulated provider of instance groups: each pool has one. It does what such
// a provider does by itself: it replaces lost and unhealthy instances, and those of an earlier template
// one after the other, and it waits for drains. It knows nothing of the manager.
package groups

import (
	"time"

	"github.com/millwright-go/millwright/object"
)

// World is what the provider needs from the simulated world.
type World interface {
	Now() time.Time
	// After calls do once d has passed.
	After(d time.Duration, do func())
	// Chance returns a number from 0 to n-1.
	Chance(n int) int
	// UpTo returns a random time from 0 to d.
	UpTo(d time.Duration) time.Duration
	// Happens reports true with probability p, and false once faults have stopped.
	Happens(p float64) bool
	// Faults returns the faults that may happen now.
	Faults() Faults
	// Stopped reports whether faults have stopped.
	Stopped() bool
	// Count counts a fault.
	Count(f Fault)
	// Emit emits an event.
	Emit(event any)
	// Changed reports that the provider has done something by itself.
	Changed()

	// ZoneBack returns when the outage of a zone ends. If that time has passed, the zone works.
	ZoneBack(zone string) time.Time
	// CanBoot reports whether an instance of a pool can boot now: its bootstrap token is valid.
	CanBoot(pool object.Key) bool

	// NoCluster reports whether there is no cluster to join. Otherwise Boot returns how long an instance
	// takes until it joins, and ClusterAnswers reports whether the API of the cluster answers now.
	NoCluster() bool
	Boot() time.Duration
	ClusterAnswers() bool

	// The following methods are about one instance, by the name of its node and its provider ID.

	// Placed notes the zone of a new instance, and Removed that an instance is gone with its pods.
	Placed(id, zone string)
	Removed(name, id string)
	// Join creates its node, and Delete deletes the node.
	Join(name, id string)
	Delete(name string)
	// Ready reports whether its node is ready, or there is no cluster.
	Ready(name, id string) bool
	// MarkNotReady makes its node NotReady, and Recover makes the node ready again.
	MarkNotReady(name, id string)
	Recover(name, id string)
}

// Faults say how likely it is that an instance misbehaves: see the fields with the same names in
// sim.Faults.
type Faults struct {
	LostVM, DeadBoot float64
	SlowBoot         time.Duration
	Capacity         int
}

// Fault is a kind of fault: the one with the same name in package sim.
type Fault int

// The faults of instances.
const (
	CapacityOut Fault = iota
	VMLost
	DeadBoot
)

// Gone is the event that a pool's group is deleted.
type Gone struct{ Pool object.Key }
