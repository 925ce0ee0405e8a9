package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// This is what the provider of groups does by itself.
const (
	// sweepEvery is how often the provider checks the health of its instances. illFor is how long
	// an instance may be without a ready node before the provider replaces it.
	sweepEvery = 5 * time.Minute
	illFor     = 20 * time.Minute
	// askFor is how long it waits to be told that an instance is drained.
	askFor = time.Hour
)

func (g *groups) lag() time.Duration { return time.Second + g.w.upTo(g.w.o.Pools.Lag) }

// soon schedules the provider's next look at a group after a while.
func (g *groups) soon(at *group) {
	if at.planned {
		return
	}
	at.planned = true
	g.w.clock.after(g.lag(), func() {
		at.planned = false
		if g.all[at.pool] != at {
			return
		}
		more := g.tend(at)
		g.w.changed()
		g.w.check()
		if more && g.all[at.pool] == at {
			g.soon(at)
		}
	})
}

// tend brings a group one step nearer to its target, and reports whether there is more to do.
func (g *groups) tend(at *group) bool {
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
func (g *groups) choose(from []*instance) *instance {
	for _, i := range from {
		if !g.w.isReady(i.name, i.ProviderID) {
			return i
		}
	}
	return from[g.w.chance(len(from))]
}

// refresh replaces the instances made from an earlier template, one after the other. It replaces
// the next one when all are ready.
func (g *groups) refresh(at *group, staying []*instance) (more bool) {
	var old *instance
	for _, i := range staying {
		if !g.w.isReady(i.name, i.ProviderID) {
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
func (g *groups) takeOut(i *instance) {
	if g.w.chance(1_000_000) < int(g.w.o.Pools.Asks*1_000_000) {
		i.AwaitsDrain, i.asked = true, g.w.clock.now
		return
	}
	i.Going = true
}

// add makes an instance if there is room for one. Otherwise it tries again from time to time.
func (g *groups) add(at *group) (more bool) {
	w := g.w
	full := w.o.Faults.Capacity > 0 && g.count() >= w.o.Faults.Capacity
	if full || w.isDark(w.sizeOf(at.class)) {
		w.count(CapacityOut)
		w.clock.after(time.Minute, func() { g.soon(at) })
		return false
	}
	g.number++
	i := &instance{name: fmt.Sprintf("%s-i%d", at.pool.Name, g.number), class: at.class}
	i.ProviderID = fmt.Sprintf("sim:///%s/%05d", at.id, g.number)
	at.instances = append(at.instances, i)
	w.zoneOf[i.ProviderID] = w.sizeOf(at.class)
	if w.happens(w.o.Faults.LostVM) {
		w.clock.after(w.upTo(time.Hour), func() {
			if !w.faultsStopped && !w.gone[i.ProviderID] {
				w.count(VMLost)
				g.drop(i.ProviderID)
			}
		})
	}
	if w.happens(w.o.Faults.DeadBoot) {
		w.count(DeadBoot)
		return true
	}
	w.clock.after(w.o.Boot+w.upTo(w.o.Faults.SlowBoot), func() { g.join(at, i) })
	return true
}

// join makes an instance a node, once its bootstrap token is good.
func (g *groups) join(at *group, i *instance) {
	w := g.w
	if w.gone[i.ProviderID] || w.o.NoCluster {
		return
	}
	again := func() { g.join(at, i) }
	if dark := w.dark[w.zoneOf[i.ProviderID]]; w.clock.now.Before(dark) {
		w.clock.after(dark.Sub(w.clock.now), again)
		return
	}
	if !w.bootstraps.good(at.pool, w.clock.now) {
		w.clock.after(20*time.Second, again)
		return
	}
	node := &machine.Node{Meta: object.Meta{Key: object.Key{Name: i.name}}, ProviderID: i.ProviderID}
	if _, err := w.nodes.Create(context.Background(), node); err != nil {
		return // it has joined already
	}
	w.clock.after(w.upTo(2*time.Second), func() { w.recover(i.name, i.ProviderID) })
	w.flap(i.name, i.ProviderID)
}

// remove deletes an instance with what runs on it. The cluster collects its node.
func (g *groups) remove(at *group, i *instance) {
	w := g.w
	at.instances = slices.DeleteFunc(at.instances, func(other *instance) bool { return other == i })
	w.gone[i.ProviderID] = true
	w.apps.lost(i.name)
	w.clock.after(30*time.Second, func() { w.ready(i.name, i.ProviderID, object.Unknown) })
	w.clock.after(time.Minute+w.upTo(2*time.Minute), func() {
		if n, err := w.nodes.Get(context.Background(), object.Key{Name: i.name}); err == nil {
			_ = w.nodes.Delete(context.Background(), n.Key, n.UID) // read in the same instant: it is there
			w.check()
		}
	})
}

// drop deletes an instance without the manager.
func (g *groups) drop(id string) {
	if at, i := g.instance(id); i != nil {
		g.remove(at, i)
		g.soon(at)
	}
}

// sweep checks the provider's instances again and again. An instance that is unhealthy for too long
// is replaced. One that was not drained in time is removed undrained.
func (g *groups) sweep(at *group) {
	g.w.clock.after(sweepEvery, func() {
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

func (g *groups) examine(i *instance) {
	now := g.w.clock.now
	if g.w.down(target) {
		return
	}
	since(&i.ill, now, !g.w.isReady(i.name, i.ProviderID) && !g.w.o.NoCluster)
	switch {
	case i.AwaitsDrain && now.Sub(i.asked) > askFor:
		i.Going = true
	case i.AwaitsDrain || i.ill.IsZero() || now.Sub(i.ill) <= illFor:
	default:
		g.takeOut(i)
	}
}

// stopFaults ends what is wrong with groups.
func (g *groups) stopFaults() {
	g.silent = time.Time{}
	for _, at := range g.sorted() {
		at.failure = ""
		for _, i := range at.instances {
			g.w.recover(i.name, i.ProviderID)
		}
	}
}

// lose deletes a group with all of its instances, without the manager.
func (g *groups) lose(at *group) {
	for len(at.instances) > 0 {
		g.remove(at, at.instances[0])
	}
	g.vanish(at)
}

// vanish deletes a group that has no instance.
func (g *groups) vanish(at *group) {
	delete(g.all, at.pool)
	delete(g.w.facts.lateGroups, at.pool)
}
