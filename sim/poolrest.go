package sim

import (
	"context"
	"fmt"
	"slices"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/sim/internal/groups"
)

// PoolComplete reports whether the pool of that name, in Namespace, has converged.
func (w *World) PoolComplete(name string) bool {
	p := w.pool(object.Key{Namespace: Namespace, Name: name})
	return p != nil && w.poolLacks(p) == ""
}

// poolsComplete reports whether all pools have converged, and no group is left whose pool is gone.
func (w *World) poolsComplete() bool {
	for _, g := range w.groups.All() {
		if w.pool(g.Pool) == nil {
			return false
		}
	}
	return !slices.ContainsFunc(w.pools.all(), func(p *machinepool.Pool) bool { return w.poolLacks(p) != "" })
}

// poolLacks returns what a pool lacks to be at rest, or nothing. A pool at rest has as many
// instances as are wanted, all of them nodes that are ready and in service, and a status that says
// so.
func (w *World) poolLacks(p *machinepool.Pool) string {
	g, s, n := w.groups.Of(p.Key), &p.Status, p.Spec.Wanted()
	switch {
	case p.Deleted():
		return "it is being deleted"
	case g == nil || g.Going:
		return "it has no group"
	case g.Target != n || len(g.Instances) != int(n):
		return fmt.Sprintf("%d are wanted, the target is %d, %d instances are there", n, g.Target, len(g.Instances))
	case g.Class != p.Spec.Template.Class.Name:
		return "the group is made from class " + g.Class
	case !(&machinepool.Applied{RollingUpdate: g.Rolling}).Equal(&machinepool.Applied{RollingUpdate: p.Spec.RollingUpdate}):
		return "its group has not been told of the bounds of updates"
	case len(s.Leaving) > 0:
		return fmt.Sprintf("%d leave", len(s.Leaving))
	case s.Phase != w.restsAt(n) || s.ObservedGeneration != p.Generation || s.FailureReason != "":
		return fmt.Sprintf("its phase is %s %s", s.Phase, s.FailureMessage)
	case !w.statusCounts(p, n):
		return fmt.Sprintf("%d are wanted, and its status counts %d, ready %d, available %d, unavailable %d, nodes %d",
			n, s.Replicas, s.Ready, s.Available, s.Unavailable, len(s.NodeRefs))
	}
	for _, i := range g.Instances {
		if lacks := w.instanceLacks(i); lacks != "" {
			return lacks
		}
	}
	return ""
}

// restsAt is the phase of a pool at rest that wants n instances: without a cluster no node is ever ready.
func (w *World) restsAt(n int32) machinepool.Phase {
	if w.o.NoCluster && n > 0 {
		return machinepool.PhaseProvisioned
	}
	return machinepool.PhaseRunning
}

// statusCounts reports whether a pool's status says that it has so many instances, all of them at
// work.
func (w *World) statusCounts(p *machinepool.Pool, n int32) bool {
	s := &p.Status
	if w.o.NoCluster {
		return s.Replicas == n && len(p.Spec.ProviderIDs) == int(n)
	}
	return s.Replicas == n && s.Ready == n && s.Available == n && s.Unavailable == 0 && len(s.NodeRefs) == int(n) && len(p.Spec.ProviderIDs) == int(n)
}

func (w *World) instanceLacks(i *groups.Instance) string {
	if w.o.NoCluster {
		return ""
	}
	n, err := w.nodes.Get(context.Background(), object.Key{Name: i.Name})
	asks := err == nil && n.Annotations[w.poolPolicy().Keys.Replace] == "true"
	switch {
	case err != nil || !w.isReady(i.Name, i.ProviderID):
		return "the node of " + i.Name + " is not ready"
	case i.AwaitsDrain:
		return i.Name + " waits to be drained"
	case n.Unschedulable && !w.facts.cordoned[n.UID]:
		return "node " + i.Name + " stays, and is out of service"
	case asks && w.o.Pools.Features.ReplaceInstance:
		return "node " + i.Name + " asks to be replaced"
	}
	return ""
}

// checkPoolNodes: nodes of pools have an owner (P39).
func (w *World) checkPoolNodes() error {
	key := safety.DefaultPolicy().Keys.NotManaged
	if p := w.o.Manager.Policies.Safety; p != nil {
		key = p.Keys.NotManaged
	}
	for _, n := range w.nodes.all() {
		if _, i := w.groups.Instance(n.ProviderID); i != nil && n.Annotations[key] != "" {
			return w.violation("P39", "node %s is a pool's, and is said to have no owner", n.Name)
		}
	}
	return nil
}

// autoscaled reports whether the provider owns the size of a pool.
func (w *World) autoscaled(p *machinepool.Pool) bool {
	policy := w.poolPolicy()
	return policy.Autoscaled || policy.Keys.Autoscaled != "" && p.Annotations[policy.Keys.Autoscaled] == "true"
}

// drainIsOver reports whether the drain of an instance may have used up its time, by the clock of
// the manager that wrote when it began.
func (w *World) drainIsOver(l *machinepool.Leaving) bool {
	return w.faults[ClockJump] > 0 || w.managerNow().Sub(l.Since) >= w.poolPolicy().DrainTimeout-inFlight
}

// poolDrainEnds reports whether the drain of a pool's node may have used up its time now, or may no
// longer be one of ours.
func (w *World) poolDrainEnds(n *machine.Node) bool {
	for _, p := range w.pools.all() {
		for i := range p.Status.Leaving {
			if l := &p.Status.Leaving[i]; l.ProviderID == n.ProviderID {
				return p.Deleted() || w.drainIsOver(l)
			}
		}
	}
	return true
}
