package groups

import (
	"fmt"
	"slices"
	"time"
)

const (
	// sweepEvery is how often the provider checks the health of its instances. illFor is how long
	// an instance may be without a ready node before the provider replaces it.
	sweepEvery = 5 * time.Minute
	illFor     = 20 * time.Minute
	// askFor is how long it waits to be told that an instance is drained.
	askFor = time.Hour
)

func (p *Provider) lag() time.Duration { return time.Second + p.world.UpTo(p.options.Lag) }

// soon schedules the provider's next look at a group after a while.
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
		more := p.tend(g)
		p.world.Changed()
		if more && p.all[g.Pool] == g {
			p.soon(g)
		}
	})
}

// tend brings a group one step nearer to its target, and reports whether there is more to do.
func (p *Provider) tend(g *Group) bool {
	staying := g.staying()
	size := g.Target + min(g.bounds().Surge, int32(len(g.outdated(staying))))
	going := slices.IndexFunc(g.Instances, func(i *Instance) bool { return i.Going || g.Going })
	switch {
	case going >= 0:
		p.remove(g, g.Instances[going])
	case g.Going:
		p.vanish(g)
		return false
	case int32(len(staying)) > size:
		p.choose(staying).Going = true
	case int32(len(staying)) < size:
		return p.add(g)
	default:
		return p.refresh(g, staying)
	}
	return true
}

// choose returns the instance that the provider removes if no caller has named one: one that has
// not joined, else any.
func (p *Provider) choose(from []*Instance) *Instance {
	for _, i := range from {
		if !p.world.Ready(i.Name, i.ProviderID) {
			return i
		}
	}
	return from[p.world.Chance(len(from))]
}

// refresh replaces the next instance made from an earlier template, if enough others are at work.
// Otherwise the sweep comes again.
func (p *Provider) refresh(g *Group, staying []*Instance) (more bool) {
	atWork := slices.DeleteFunc(slices.Clone(staying), func(i *Instance) bool { return i.AwaitsDrain || !p.world.Ready(i.Name, i.ProviderID) })
	old := g.outdated(atWork)
	if len(old) == 0 || int32(len(atWork)) <= g.Target-g.bounds().Unavailable {
		return false
	}
	p.takeOut(old[0])
	return true
}

// takeOut removes an instance because the provider wants it, with or without a request for a drain.
func (p *Provider) takeOut(i *Instance) {
	if p.world.Chance(1_000_000) < int(p.options.Asks*1_000_000) {
		i.AwaitsDrain, i.asked = true, p.world.Now()
		return
	}
	i.Going = true
}

// add makes an instance if there is room for one. Otherwise it tries again from time to time.
func (p *Provider) add(g *Group) (more bool) {
	faults := p.world.Faults()
	full := faults.Capacity > 0 && p.members() >= faults.Capacity
	if full || p.world.Now().Before(p.world.Back(g.zone)) {
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

// join makes an instance a node, once its bootstrap token is good.
func (p *Provider) join(g *Group, i *Instance) {
	if i.gone || p.world.NoCluster() {
		return
	}
	again := func() { p.join(g, i) }
	if back := p.world.Back(i.zone); p.world.Now().Before(back) {
		p.world.After(back.Sub(p.world.Now()), again)
		return
	}
	if !p.world.Boots(g.Pool) {
		p.world.After(20*time.Second, again)
		return
	}
	p.world.Join(i.Name, i.ProviderID)
}

// remove deletes an instance with what runs on it. The cluster collects its node.
func (p *Provider) remove(g *Group, i *Instance) {
	g.Instances = slices.DeleteFunc(g.Instances, func(other *Instance) bool { return other == i })
	i.gone = true
	p.world.Removed(i.Name, i.ProviderID)
	p.world.After(30*time.Second, func() { p.world.Silent(i.Name, i.ProviderID) })
	p.world.After(time.Minute+p.world.UpTo(2*time.Minute), func() { p.world.Delete(i.Name) })
}

// LoseInstance removes an instance. Another one replaces it.
func (p *Provider) LoseInstance(id string) {
	p.world.Count(VMLost)
	if g, i := p.Instance(id); i != nil {
		p.remove(g, i)
		p.soon(g)
	}
}

// sweep checks the provider's instances again and again. An instance that is unhealthy for too long
// is replaced. One that was not drained in time is removed undrained.
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
	if !p.world.Seen() {
		return
	}
	now := p.world.Now()
	switch ill := !p.world.Ready(i.Name, i.ProviderID); {
	case !ill:
		i.ill = time.Time{}
	case i.ill.IsZero():
		i.ill = now
	}
	switch {
	case i.AwaitsDrain && now.Sub(i.asked) > askFor:
		i.Going = true
	case i.AwaitsDrain || i.ill.IsZero() || now.Sub(i.ill) <= illFor:
	default:
		p.takeOut(i)
	}
}

// vanish deletes a group that has no instance.
func (p *Provider) vanish(g *Group) {
	delete(p.all, g.Pool)
	p.world.Emit(Gone{g.Pool})
}
