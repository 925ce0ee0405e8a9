package groups

import "time"

// Resize sets a group's target as an autoscaler of the provider does.
func (p *Provider) Resize(g *Group, target int32) {
	g.Target, g.Resized = target, p.world.Now()
	p.soon(g)
}

// Fail makes the status of a group report a failure for a while.
func (p *Provider) Fail(g *Group, d time.Duration) {
	g.failure = "the simulated provider is out of addresses"
	p.world.After(d, func() { g.failure = "" })
}

// AskDrain makes the provider request the drain of an instance before it removes the instance. It returns
// false if it has requested that already.
func (p *Provider) AskDrain(i *Instance) bool {
	if i.AwaitsDrain {
		return false
	}
	i.AwaitsDrain, i.drainAskedAt = true, p.world.Now()
	return true
}

// Lose removes a group with all of its instances.
func (p *Provider) Lose(g *Group) {
	for len(g.Instances) > 0 {
		p.remove(g, g.Instances[0])
	}
	p.vanish(g)
}

// StopFaults ends all failures of groups, and makes the nodes of instances ready.
func (p *Provider) StopFaults() {
	for _, g := range p.All() {
		g.failure = ""
		for _, i := range g.Instances {
			p.world.Recover(i.Name, i.ProviderID)
		}
	}
}
