package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

const (
	// sweepEvery is how often the provider checks the health of its instances. illFor is how long
	// an instance may be without a ready node before the provider replaces it.
	sweepEvery = 5 * time.Minute
	illFor     = 20 * time.Minute
	// askFor is how long it waits to be told that an instance is drained.
	askFor = time.Hour
)

// groupController is what the provider of groups does by itself to make each group what it should
// be.
type groupController struct {
	*ground
	*groups
	*stores
	apis       *apis
	catalog    *catalog
	kubelets   *kubelets
	bootstraps bootstraps
}

func newGroupController(g *groups, b *bootstrapMaker, a *apis, c *catalog, k *kubelets) *groupController {
	return &groupController{ground: g.ground, groups: g, stores: b.stores, apis: a, catalog: c, kubelets: k, bootstraps: b.bootstraps}
}

func (g *groupController) lag() time.Duration { return time.Second + g.upTo(g.options.Lag) }

// soon schedules the provider's next look at a group after a while.
func (g *groupController) soon(at *group) {
	if at.planned {
		return
	}
	at.planned = true
	g.After(g.lag(), func() {
		at.planned = false
		if g.all[at.pool] != at {
			return
		}
		more := g.tend(at)
		g.changed()
		g.check()
		if more && g.all[at.pool] == at {
			g.soon(at)
		}
	})
}

// tend brings a group one step nearer to its target, and reports whether there is more to do.
func (g *groupController) tend(at *group) bool {
	staying := at.staying()
	going := slices.IndexFunc(at.instances, func(i *instance) bool { return i.Going || at.going })
	switch {
	case going >= 0:
		g.remove(at, at.instances[going])
	case at.going:
		g.vanish(at)
		return false
	case int32(len(staying)) > at.target:
		g.choose(staying).Going = true
	case int32(len(staying)) < at.target:
		return g.add(at)
	default:
		return g.refresh(at, staying)
	}
	return true
}

// choose returns the instance that the provider removes if no caller has named one: one that has
// not joined, else any.
func (g *groupController) choose(from []*instance) *instance {
	for _, i := range from {
		if !g.isReady(i.name, i.ProviderID) {
			return i
		}
	}
	return from[g.chance(len(from))]
}

// refresh replaces the instances made from an earlier template, one after the other. It replaces
// the next one when all are ready.
func (g *groupController) refresh(at *group, staying []*instance) (more bool) {
	var old *instance
	for _, i := range staying {
		if !g.isReady(i.name, i.ProviderID) {
			return false // the sweep comes again
		}
		if i.AwaitsDrain {
			return false
		}
		if old == nil && i.class != at.class {
			old = i
		}
	}
	if old != nil {
		g.takeOut(old)
	}
	return old != nil
}

// takeOut removes an instance because the provider wants it, with or without a request for a drain.
func (g *groupController) takeOut(i *instance) {
	if g.chance(1_000_000) < int(g.options.Asks*1_000_000) {
		i.AwaitsDrain, i.asked = true, g.Now()
		return
	}
	i.Going = true
}

// add makes an instance if there is room for one. Otherwise it tries again from time to time.
func (g *groupController) add(at *group) (more bool) {
	full := g.hazards.Capacity > 0 && g.members() >= g.hazards.Capacity
	if full || g.catalog.isDark(g.catalog.sizeOf(at.class)) {
		g.count(CapacityOut)
		g.After(time.Minute, func() { g.soon(at) })
		return false
	}
	g.number++
	i := &instance{name: fmt.Sprintf("%s-i%d", at.pool.Name, g.number), class: at.class}
	i.ProviderID = fmt.Sprintf("sim:///%s/%05d", at.id, g.number)
	at.instances = append(at.instances, i)
	g.catalog.zoneOf[i.ProviderID] = g.catalog.sizeOf(at.class)
	if g.happens(g.hazards.LostVM) {
		g.After(g.upTo(time.Hour), func() {
			if !g.faultsStopped && !g.catalog.removed[i.ProviderID] {
				g.count(VMLost)
				g.drop(i.ProviderID)
			}
		})
	}
	if g.happens(g.hazards.DeadBoot) {
		g.count(DeadBoot)
		return true
	}
	g.After(g.kubelets.boots+g.upTo(g.hazards.SlowBoot), func() { g.join(at, i) })
	return true
}

// join makes an instance a node, once its bootstrap token is good.
func (g *groupController) join(at *group, i *instance) {
	if g.catalog.removed[i.ProviderID] || g.kubelets.none {
		return
	}
	again := func() { g.join(at, i) }
	if dark := g.catalog.dark[g.catalog.zoneOf[i.ProviderID]]; g.Now().Before(dark) {
		g.After(dark.Sub(g.Now()), again)
		return
	}
	if !g.bootstraps.good(at.pool, g.Now()) {
		g.After(20*time.Second, again)
		return
	}
	g.kubelets.join(&machine.Node{Meta: object.Meta{Key: object.Key{Name: i.name}}, ProviderID: i.ProviderID})
}

// remove deletes an instance with what runs on it. The cluster collects its node.
func (g *groupController) remove(at *group, i *instance) {
	at.instances = slices.DeleteFunc(at.instances, func(other *instance) bool { return other == i })
	g.catalog.removed[i.ProviderID] = true
	g.kubelets.apps.Lost(i.name)
	g.After(30*time.Second, func() { g.kubelets.ready(i.name, i.ProviderID, object.Unknown) })
	g.After(time.Minute+g.upTo(2*time.Minute), func() {
		if n, err := g.nodes.Get(context.Background(), object.Key{Name: i.name}); err == nil {
			_ = g.nodes.Delete(context.Background(), n.Key, n.UID) // read in the same instant: it is there
			g.check()
		}
	})
}

// drop deletes an instance without the manager.
func (g *groupController) drop(id string) {
	if at, i := g.instance(id); i != nil {
		g.remove(at, i)
		g.soon(at)
	}
}

// sweep checks the provider's instances again and again. An instance that is unhealthy for too long
// is replaced. One that was not drained in time is removed undrained.
func (g *groupController) sweep(at *group) {
	g.After(sweepEvery, func() {
		if g.all[at.pool] != at {
			return
		}
		for _, i := range at.instances {
			g.examine(i)
		}
		g.soon(at)
		g.sweep(at)
	})
}

func (g *groupController) examine(i *instance) {
	now := g.Now()
	if g.apis.down(targetAPI) {
		return
	}
	since(&i.ill, now, !g.isReady(i.name, i.ProviderID) && !g.kubelets.none)
	switch {
	case i.AwaitsDrain && now.Sub(i.asked) > askFor:
		i.Going = true
	case i.AwaitsDrain || i.ill.IsZero() || now.Sub(i.ill) <= illFor:
	default:
		g.takeOut(i)
	}
}

// stopFaults ends what is wrong with groups.
func (g *groupController) stopFaults() {
	g.silent = time.Time{}
	for _, at := range g.sorted() {
		at.failure = ""
		for _, i := range at.instances {
			g.kubelets.recover(i.name, i.ProviderID)
		}
	}
}

// lose deletes a group with all of its instances, without the manager.
func (g *groupController) lose(at *group) {
	for len(at.instances) > 0 {
		g.remove(at, at.instances[0])
	}
	g.vanish(at)
}

// vanish deletes a group that has no instance.
func (g *groupController) vanish(at *group) {
	delete(g.all, at.pool)
	delete(g.lateGroups, at.pool)
}
