package sim

import (
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/sim/internal/cluster"
)

// clusterWorld is the world as its cluster sees it.
type clusterWorld struct {
	chances
	nodes *trackedStore[*machine.Node]
}

// Faults implements cluster.World.
func (w clusterWorld) Faults() cluster.Faults {
	f := w.hazards
	return cluster.Faults{
		PodEnd: f.PodEnd, KeptPod: f.KeptPod, KeptPodFor: f.KeptPodFor, FailedPod: f.FailedPod,
		StuckVolume: f.StuckVolume, SlowVolume: f.SlowVolume,
	}
}

// Count implements cluster.World.
func (w clusterWorld) Count(f cluster.Fault) { w.count(clusterFaults[f]) }

var clusterFaults = [...]Fault{
	cluster.PodFinished: PodFinished, cluster.PodKept: PodKept, cluster.PodFailed: PodFailed,
	cluster.PodCompleted: PodCompleted, cluster.VolumeSlow: VolumeSlow, cluster.VolumeStuck: VolumeStuck,
}

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
