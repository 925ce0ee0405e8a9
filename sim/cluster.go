package sim

import (
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/sim/internal/cluster"
)

// clusterWorld is the world as its cluster sees it.
type clusterWorld struct {
	*ground
	nodes *trackedStore[*machine.Node]
}

// UpTo implements cluster.World.
func (w clusterWorld) UpTo(d time.Duration) time.Duration { return w.upTo(d) }

// Happens implements cluster.World.
func (w clusterWorld) Happens(p float64) bool { return w.happens(p) }

// Faults implements cluster.World.
func (w clusterWorld) Faults() cluster.Faults {
	f := w.hazards
	return cluster.Faults{
		PodEnd: f.PodEnd, KeptPod: f.KeptPod, KeptPodFor: f.KeptPodFor, FailedPod: f.FailedPod,
		StuckVolume: f.StuckVolume, SlowVolume: f.SlowVolume,
	}
}

// Stopped implements cluster.World.
func (w clusterWorld) Stopped() bool { return w.faultsStopped }

// Count implements cluster.World.
func (w clusterWorld) Count(f cluster.Fault) { w.count(clusterFaults[f]) }

var clusterFaults = [...]Fault{
	cluster.PodFinished: PodFinished, cluster.PodKept: PodKept, cluster.PodFailed: PodFailed,
	cluster.PodCompleted: PodCompleted, cluster.VolumeSlow: VolumeSlow, cluster.VolumeStuck: VolumeStuck,
}

// Emit implements cluster.World.
func (w clusterWorld) Emit(e any) { w.emit(e) }

// Nodes implements cluster.World.
func (w clusterWorld) Nodes() []*machine.Node { return w.nodes.all() }

// followNodes makes a cluster follow the nodes.
func followNodes(c *cluster.Cluster) func(event) {
	return func(e event) {
		if e, ok := e.(stored[*machine.Node]); ok {
			c.Soon()
			if e.now == nil {
				c.Lost(e.key.Name)
			}
		}
	}
}
