package groups

import (
	"fmt"
	"slices"
	"time"
)

const (
	// sweepEvery is how often the provider checks the health of its instances. unhealthyFor is how long
	// an instance may be without a ready node before the provider replaces it.
	sweepEvery   = 5 * time.Minute
	unhealthyFor = 20 * time.Minute
	// drainTimeout is how long the provider waits for a drain that it has requested.
	drainTimeout = time.Hour
)

func (p *Provider) lag() time.Duration { return time.Second + p.world.UpTo(p.options.Lag) }

// soon schedules the next step of a group, unless one is scheduled.
func (p *Provider) soon(g *Group) {
	if g.planned {
		return
	}
	g.planned = true
	p.world.After(p.lag(), func() {
		g.planned = false
		if p.all[g.Pool] != g {
			return
		}
		more := p.step(g)
		p.world.Changed()
		if more && p.all[g.Pool] == g {
			p.soon(g)
		}
	})
}

// step brings a group one step closer to its target, and reports whether there is more to do.
func (p *Provider) step(g *Group) bool {
	staying := g.staying()
	size := g.Target + min(g.bounds().Surge, int32(len(g.outdated(staying))))
	toRemove := slices.IndexFunc(g.Instances, func(i *Instance) bool { return i.Terminating || g.Deleting })
	switch {
	case toRemove >= 0:
		p.remove(g, g.Instances[toRemove])
	case g.Deleting:
		p.vanish(g)
		return false
	case int32(len(staying)) > size:
		p.choose(staying).Terminating = true
	case int32(len(staying)) < size:
		return p.add(g)
	default:
		return p.refresh(g, staying)
	}
	return true
}

// choose returns the instance to remove if no caller has named one: one that is not ready, or else a
// random one.
func (p *Provider) choose(from []*Instance) *Instance {
	for _, i := range from {
		if !p.world.Ready(i.Name, i.ProviderID) {
			return i
		}
	}
	return from[p.world.Chance(len(from))]
}

// refresh replaces the next instance that was made from an earlier class, if enough others are ready.
// If not, the next sweep tries again.
func (p *Provider) refresh(g *Group, staying []*Instance) (more bool) {
	atWork := slices.DeleteFunc(slices.Clone(staying), func(i *Instance) bool { return i.AwaitsDrain || !p.world.Ready(i.Name, i.ProviderID) })
	old := g.outdated(atWork)
	if len(old) == 0 || int32(len(atWork)) <= g.Target-g.bounds().Unavailable {
		return false
	}
	p.takeOut(old[0])
	return true
}

// takeOut marks an instance for removal or, as Options.Asks says, requests its drain before.
func (p *Provider) takeOut(i *Instance) {
	if p.world.Chance(1_000_000) < int(p.options.Asks*1_000_000) {
		i.AwaitsDrain, i.drainAskedAt = true, p.world.Now()
		return
	}
	i.Terminating = true
}

// add creates an instance if there is room for it. Otherwise it tries again every minute.
func (p *Provider) add(g *Group) (more bool) {
	faults := p.world.Faults()
	full := faults.Capacity > 0 && p.members() >= faults.Capacity
	if full || p.world.Now().Before(p.world.ZoneBack(g.zone)) {
		p.world.Count(CapacityOut)
		p.world.After(time.Minute, func() { p.soon(g) })
		return false
	}
	p.number++
	i := &Instance{Name: fmt.Sprintf("%s-i%d", g.Pool.Name, p.number), class: g.Class, zone: g.zone}
	i.ProviderID = fmt.Sprintf("sim:///%s/%05d", g.ID, p.number)
	g.Instances = append(g.Instances, i)
	p.world.Placed(i.ProviderID, i.zone)
	if p.world.Happens(faults.LostVM) {
		p.world.After(p.world.UpTo(time.Hour), func() {
			if !p.world.Stopped() && !i.gone {
				p.LoseInstance(i.ProviderID)
			}
		})
	}
	if p.world.Happens(faults.DeadBoot) {
		p.world.Count(DeadBoot)
		return true
	}
	p.world.After(p.world.Boot()+p.world.UpTo(faults.SlowBoot), func() { p.join(g, i) })
	return true
}

// join creates the node of an instance, as soon as its zone works and its bootstrap token is valid.
func (p *Provider) join(g *Group, i *Instance) {
	if i.gone || p.world.NoCluster() {
		return
	}
	again := func() { p.join(g, i) }
	if back := p.world.ZoneBack(i.zone); p.world.Now().Before(back) {
		p.world.After(back.Sub(p.world.Now()), again)
		return
	}
	if !p.world.CanBoot(g.Pool) {
		p.world.After(20*time.Second, again)
		return
	}
	p.world.Join(i.Name, i.ProviderID)
}

// remove deletes an instance with its pods. The cluster deletes its node some time later.
func (p *Provider) remove(g *Group, i *Instance) {
	g.Instances = slices.DeleteFunc(g.Instances, func(other *Instance) bool { return other == i })
	i.gone = true
	p.world.Removed(i.Name, i.ProviderID)
	p.world.After(30*time.Second, func() { p.world.MarkNotReady(i.Name, i.ProviderID) })
	p.world.After(time.Minute+p.world.UpTo(2*time.Minute), func() { p.world.Delete(i.Name) })
}

// LoseInstance removes an instance at the provider. The provider replaces it.
func (p *Provider) LoseInstance(id string) {
	p.world.Count(VMLost)
	if g, i := p.Instance(id); i != nil {
		p.remove(g, i)
		p.soon(g)
	}
}

// sweep checks the instances of a group again and again. An instance that has been unhealthy for too long
// is replaced. One that was not drained in time is removed all the same.
func (p *Provider) sweep(g *Group) {
	p.world.After(sweepEvery, func() {
		if p.all[g.Pool] != g {
			return
		}
		for _, i := range g.Instances {
			p.examine(i)
		}
		p.soon(g)
		p.sweep(g)
	})
}

func (p *Provider) examine(i *Instance) {
	if !p.world.ClusterAnswers() {
		return
	}
	now := p.world.Now()
	switch unhealthy := !p.world.Ready(i.Name, i.ProviderID); {
	case !unhealthy:
		i.unhealthySince = time.Time{}
	case i.unhealthySince.IsZero():
		i.unhealthySince = now
	}
	switch {
	case i.AwaitsDrain && now.Sub(i.drainAskedAt) > drainTimeout:
		i.Terminating = true
	case i.AwaitsDrain || i.unhealthySince.IsZero() || now.Sub(i.unhealthySince) <= unhealthyFor:
	default:
		p.takeOut(i)
	}
}

// vanish deletes a group that has no instances.
func (p *Provider) vanish(g *Group) {
	delete(p.all, g.Pool)
	p.world.Emit(Gone{g.Pool})
}
