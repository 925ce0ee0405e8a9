package groups

import "time"

// Resize sets a group's target as an autoscaler of the provider does.
func (p *Provider) Resize(g *Group, target int32) {
	g.Target, g.Resized = target, p.world.Now()
	p.soon(g)
}

// Fail makes a group report for a while that it does not work.
func (p *Provider) Fail(g *Group, d time.Duration) {
	g.failure = "the simulated provider is out of addresses"
	p.world.After(d, func() { g.failure = "" })
}

// AskDrain makes the provider want to remove an instance, and wait for its drain. It returns false
// if that is so already.
func (p *Provider) AskDrain(i *Instance) bool {
	if i.AwaitsDrain {
		return false
	}
	i.AwaitsDrain, i.asked = true, p.world.Now()
	return true
}

// Lose removes a group with all of its instances.
func (p *Provider) Lose(g *Group) {
	for len(g.Instances) > 0 {
		p.remove(g, g.Instances[0])
	}
	p.vanish(g)
}

// StopFaults ends what is wrong with groups.
func (p *Provider) StopFaults() {
	for _, g := range p.All() {
		g.failure = ""
		for _, i := range g.Instances {
			p.world.Recover(i.Name, i.ProviderID)
		}
	}
}
