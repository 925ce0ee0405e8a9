package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/sim/internal/groups"
)

// PoolOptions say how the simulated provider runs the groups of pools. The zero value is a provider
// without optional calls that does everything at once.
type PoolOptions struct {
	// Features are what the simulated driver of groups declares.
	Features machinepool.Features
	// Lag is the longest time until the next instance is added or removed, and until a new group
	// works.
	Lag time.Duration
	// Asks is the probability, from 0 to 1, that the provider requests a drain before it removes an
	// instance. It then waits for at most an hour until the manager reports that the drain is done.
	Asks float64
}

// newGroups returns the simulated provider of groups.
func newGroups(o *PoolOptions, c *classCatalog, b *bootstrapMaker, a *apis, k *kubelets) *groups.Provider {
	if o == nil {
		o = &PoolOptions{}
	}
	return groups.New(groupWorld{random{b.base}, b.stores, b.bootstraps, a, k.cloud, k}, groupAccount{c}, groups.Options(*o))
}

// groupWorld is the world as the provider of groups sees it.
type groupWorld struct {
	random
	stores     *stores
	bootstraps bootstraps
	apis       *apis
	cloud      *cloud
	kubelets   *kubelets
}

// Faults implements groups.World.
func (w groupWorld) Faults() groups.Faults {
	f := w.hazards
	return groups.Faults{LostVM: f.LostVM, DeadBoot: f.DeadBoot, SlowBoot: f.SlowBoot, Capacity: f.Capacity}
}

// Count implements groups.World.
func (w groupWorld) Count(f groups.Fault) {
	w.count([...]Fault{groups.CapacityOut: CapacityOut, groups.VMLost: VMLost, groups.DeadBoot: DeadBoot}[f])
}

// Changed implements groups.World.
func (w groupWorld) Changed() {
	w.changed()
	w.check()
}

// ZoneBack implements groups.World.
func (w groupWorld) ZoneBack(zone string) time.Time { return w.cloud.zoneOutUntil[zone] }

// CanBoot implements groups.World.
func (w groupWorld) CanBoot(pool object.Key) bool { return w.bootstraps.canJoin(pool, w.Now()) }

// Placed implements groups.World.
func (w groupWorld) Placed(id, zone string) { w.cloud.zoneOf[id] = zone }

// Removed implements groups.World.
func (w groupWorld) Removed(name, id string) {
	w.cloud.removed[id] = true
	w.kubelets.apps.Lost(name)
}

// Boot implements groups.World.
func (w groupWorld) Boot() time.Duration { return w.kubelets.bootTime }

// NoCluster implements groups.World.
func (w groupWorld) NoCluster() bool { return w.kubelets.noCluster }

// Join implements groups.World.
func (w groupWorld) Join(name, id string) {
	w.kubelets.join(&machine.Node{Meta: object.Meta{Key: object.Key{Name: name}}, ProviderID: id})
}

// Ready implements groups.World. Without a cluster there are no nodes, and every VM counts as ready.
func (w groupWorld) Ready(name, id string) bool {
	return w.kubelets.noCluster || w.stores.isReady(name, id)
}

// ClusterAnswers implements groups.World.
func (w groupWorld) ClusterAnswers() bool { return !w.apis.down(targetAPI) }

// MarkNotReady implements groups.World.
func (w groupWorld) MarkNotReady(name, id string) { w.kubelets.ready(name, id, object.Unknown) }

// Recover implements groups.World.
func (w groupWorld) Recover(name, id string) { w.kubelets.recover(name, id) }

// Delete implements groups.World.
func (w groupWorld) Delete(name string) {
	if n, err := w.stores.nodes.Get(context.Background(), object.Key{Name: name}); err == nil {
		_ = w.stores.nodes.Delete(context.Background(), n.Key, n.UID) // read in the same instant: it is there
		w.check()
	}
}

// PoolComplete reports whether the pool of that name, in Namespace, has converged.
func (w *World) PoolComplete(name string) bool {
	p := w.pool(object.Key{Namespace: Namespace, Name: name})
	return p != nil && w.poolNotConverged(p) == ""
}

// poolsComplete reports whether all pools have converged, and no group is left whose pool is gone.
func (w *World) poolsComplete() bool {
	for _, g := range w.groups.All() {
		if w.pool(g.Pool) == nil {
			return false
		}
	}
	return !slices.ContainsFunc(w.pools.all(), func(p *machinepool.Pool) bool { return w.poolNotConverged(p) != "" })
}

// poolNotConverged returns what a pool lacks to be at rest, or "". A pool at rest has as many instances
// as are wanted, each of them with a ready and schedulable node, and a status that says so.
func (w *World) poolNotConverged(p *machinepool.Pool) string {
	g, s, n := w.groups.Of(p.Key), &p.Status, p.Spec.Wanted()
	switch {
	case p.Deleted():
		return "it is being deleted"
	case g == nil || g.Deleting:
		return "it has no group"
	case g.Target != n || len(g.Instances) != int(n):
		return fmt.Sprintf("%d are wanted, the target is %d, %d instances are there", n, g.Target, len(g.Instances))
	case g.Class != p.Spec.Template.Class.Name:
		return "the group is made from class " + g.Class
	case !(&machinepool.Applied{RollingUpdate: g.Rolling}).Equal(&machinepool.Applied{RollingUpdate: p.Spec.RollingUpdate}):
		return "its group has not been told of the bounds of updates"
	case len(s.Leaving) > 0:
		return fmt.Sprintf("%d leave", len(s.Leaving))
	case s.Phase != w.phaseAtRest(n) || s.ObservedGeneration != p.Generation || s.FailureReason != "":
		return fmt.Sprintf("its phase is %s %s", s.Phase, s.FailureMessage)
	case !w.statusCounts(p, n):
		return fmt.Sprintf("%d are wanted, and its status counts %d, ready %d, available %d, unavailable %d, nodes %d",
			n, s.Replicas, s.Ready, s.Available, s.Unavailable, len(s.NodeRefs))
	}
	for _, i := range g.Instances {
		if lacks := w.instanceNotConverged(i); lacks != "" {
			return lacks
		}
	}
	return ""
}

// phaseAtRest returns the phase of a pool at rest that wants n instances. Without a cluster no node is
// ever ready.
func (w *World) phaseAtRest(n int32) machinepool.Phase {
	if w.o.NoCluster && n > 0 {
		return machinepool.PhaseProvisioned
	}
	return machinepool.PhaseRunning
}

// statusCounts reports whether a pool's status counts n instances, all of them available.
func (w *World) statusCounts(p *machinepool.Pool, n int32) bool {
	s := &p.Status
	if w.o.NoCluster {
		return s.Replicas == n && len(p.Spec.ProviderIDs) == int(n)
	}
	return s.Replicas == n && s.Ready == n && s.Available == n && s.Unavailable == 0 && len(s.NodeRefs) == int(n) && len(p.Spec.ProviderIDs) == int(n)
}

func (w *World) instanceNotConverged(i *groups.Instance) string {
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
	case n.Unschedulable && !w.excuses.cordoned[n.UID]:
		return "node " + i.Name + " stays, and is out of service"
	case asks && w.o.Pools.Features.ReplaceInstance:
		return "node " + i.Name + " asks to be replaced"
	}
	return ""
}

// checkPoolNodes checks that no node of a pool is marked as a node without an owner (P39).
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

// drainIsOver reports whether the drain of an instance may have reached its timeout, by the manager's
// clock, by which its beginning was recorded.
func (w *World) drainIsOver(l *machinepool.Leaving) bool {
	return w.faults[ClockJump] > 0 || w.managerNow().Sub(l.Since) >= w.poolPolicy().DrainTimeout-inFlight
}

// poolDrainEnds reports whether the drain of a pool's node may have reached its timeout, or need not be
// finished: the pool is being deleted, or the instance does not leave.
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

// bootstraps holds the data that machines of pools boot from, by the pools' keys. The data contain a
// token that expires. Machines that boot after that can't join until it is renewed.
type bootstraps map[object.Key]*bootstrap

type bootstrap struct {
	pool    string // UID of the pool
	there   bool
	made    bool      // made for this pool, and deleted with it
	expires time.Time // when the token expires; zero: there is no token
}

// canJoin reports whether a machine of a pool can join now.
func (b bootstraps) canJoin(pool object.Key, now time.Time) bool {
	have := b[pool]
	return have != nil && have.there && (have.expires.IsZero() || now.Before(have.expires))
}

// needsData reports whether a pool's machines boot from bootstrap data.
func needsData(p *machinepool.Pool) bool {
	name := p.Spec.Template.Bootstrap.DataSecret
	return name != nil && *name != ""
}

// bootstrapMaker makes the bootstrap data of pools.
type bootstrapMaker struct {
	*base
	*stores
	bootstraps bootstraps
	renewals   int // of tokens
}

// see deletes the data of a pool that is gone.
func (b *bootstrapMaker) see(e event) {
	if e, ok := e.(stored[*machinepool.Pool]); ok && e.now == nil {
		delete(b.bootstraps, e.key)
	}
}

// bootstrapOf begins to make the bootstrap data of a pool. That takes a while. Then the pool's template
// gets the name of the data.
func (b *bootstrapMaker) bootstrapOf(p *machinepool.Pool) {
	boot := &p.Spec.Template.Bootstrap
	made := &bootstrap{pool: p.UID, there: boot.Config == "", made: boot.Config != ""}
	b.bootstraps[p.Key] = made
	if boot.Config == "" {
		return
	}
	b.After(10*time.Second+b.upTo(time.Minute), func() {
		if b.bootstraps[p.Key] != made {
			return // the pool is gone
		}
		made.there, made.expires = true, b.Now().Add(15*time.Minute)
		name := p.Name + "-boot"
		b.editPool(p.Name, func(now *machinepool.Pool) { now.Spec.Template.Bootstrap.DataSecret = &name })
		b.check()
	})
}

// bootstrapper gives one process access to the maker of bootstrap data.
type bootstrapper struct {
	p           *process
	maker       *bootstrapMaker
	skewedClock *managerClock // the manager sees the times of tokens by its own clock
}

// dataDeleted: the bootstrap data of a pool are deleted.
type dataDeleted struct{ pool object.Key }

// State implements manager.PoolBootstrap. It answers at once, as a cache does, also during an outage.
func (b bootstrapper) State(_ context.Context, p *machinepool.Pool) (machinepool.BootstrapAnswer, error) {
	if b.p.dead {
		return machinepool.BootstrapAnswer{}, errDead
	}
	have := b.maker.bootstraps[p.Key]
	if have == nil {
		return machinepool.BootstrapAnswer{}, nil
	}
	answer := machinepool.BootstrapAnswer{Ready: have.there, Found: have.there}
	if !have.expires.IsZero() {
		answer.TokenExpires = have.expires.Add(b.skewedClock.skew)
	}
	return answer, nil
}

// Data implements manager.PoolBootstrap.
func (b bootstrapper) Data(_ context.Context, p *machinepool.Pool) (data *machine.Secret, err error) {
	err = b.p.call(controlAPI, func() error {
		if have := b.maker.bootstraps[p.Key]; have != nil && have.there && needsData(p) {
			data = &machine.Secret{Data: map[string][]byte{machine.UserData: []byte("join")}}
		}
		return nil
	})
	return data, err
}

// Renew implements manager.PoolBootstrap.
func (b bootstrapper) Renew(_ context.Context, p *machinepool.Pool, until time.Time) error {
	return b.p.call(controlAPI, func() error {
		b.maker.renewals++
		if have := b.maker.bootstraps[p.Key]; have != nil && have.there {
			have.expires = until.Add(-b.skewedClock.skew)
		}
		return nil
	})
}

// Delete implements manager.PoolBootstrap.
func (b bootstrapper) Delete(_ context.Context, p *machinepool.Pool) error {
	return b.p.call(controlAPI, func() error {
		if have := b.maker.bootstraps[p.Key]; have == nil || have.pool != p.UID {
			if have != nil && !b.p.belated { // a late call of a dead process may do that
				b.p.violate("P35", "the bootstrap data of pool %s were to be deleted for an earlier one", p.Name)
			}
			return nil
		}
		b.p.emit(dataDeleted{p.Key})
		delete(b.maker.bootstraps, p.Key)
		return nil
	})
}
