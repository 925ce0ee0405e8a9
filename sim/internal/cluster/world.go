// Package cluster simulates what runs on the nodes of a fleet: apps and their pods, disruption budgets
// and volumes, and the controllers that keep the number of pods. It behaves as an API server, its
// controllers and kubelets do. It knows nothing of machines, VMs or the manager.
//
// Its events are EvictionTried, PodEvicted, PodDeleted, VolumeMoved and DetachOrdered. Each is
// emitted at the moment at which it happens.
package cluster

import (
	"time"

	"github.com/millwright-go/millwright/machine"
)

// World is what a cluster needs from the simulated world.
type World interface {
	Now() time.Time
	// After calls do once d has passed.
	After(d time.Duration, do func())
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
	// Nodes returns the nodes of the cluster, in the order of their names.
	Nodes() []*machine.Node
}

// Faults say how likely it is that a pod or a volume misbehaves, and for how long: see the fields with
// the same names in sim.Faults.
type Faults struct {
	PodEnd, KeptPodFor, SlowVolume  time.Duration
	KeptPod, FailedPod, StuckVolume float64
}

// Fault is a kind of fault: the one with the same name in package sim.
type Fault int

// The faults of pods and volumes.
const (
	PodFinished Fault = iota
	PodKept
	PodFailed
	PodCompleted
	VolumeSlow
	VolumeStuck
)
