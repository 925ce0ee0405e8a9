package groups

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// Options say how groups are provided. The fields are those of sim.PoolOptions.
type Options struct {
	Features machinepool.Features
	Lag      time.Duration
	Asks     float64
}

// Provider has all groups of an account, and is the pool driver for them. A group belongs to its pool
// by the pool's key, as names are unique in an account. New makes it. It is not safe for concurrent
// use.
type Provider struct {
	world   World
	account Account // whose classes and secrets it takes
	options Options
	all     map[object.Key]*Group
	number  int
}

// Account says what a class asks for, or why a call with that class and secret is refused.
type Account interface {
	Admit(*machine.Class, *machine.Secret) (drivertest.MemorySpec, error)
}

// New returns a provider without groups, for the classes and secrets of an account. The size that a
// class asks for is the zone that its instances are in.
func New(w World, account Account, o Options) *Provider {
	return &Provider{world: w, account: account, options: o, all: map[object.Key]*Group{}}
}

// Group is one of a provider's groups. Only the provider changes it.
type Group struct {
	ID        string
	Pool      object.Key
	Class     string // that instances are made from
	Rolling   *machinepool.RollingUpdate
	Target    int32
	Instances []*Instance // oldest first
	Going     bool
	Made      time.Time
	Resized   time.Time // when Resize last set the target

	zone    string // that instances are made in
	ready   bool
	failure string // empty: it works
	planned bool   // a look at it is scheduled
}

// Instance is one of a group's.
type Instance struct {
	machinepool.Instance
	Name string // of its node

	class, zone string
	gone        bool
	ill         time.Time // since when its node was seen not to be ready; zero: it is ready
	asked       time.Time // since when the provider waits for its drain
}

// Of returns the group of a pool, or nil.
func (p *Provider) Of(pool object.Key) *Group { return p.all[pool] }

// All returns all groups, in the order of their pools.
func (p *Provider) All() []*Group {
	return slices.SortedFunc(maps.Values(p.all), func(a, b *Group) int {
		return cmp.Or(cmp.Compare(a.Pool.Namespace, b.Pool.Namespace), cmp.Compare(a.Pool.Name, b.Pool.Name))
	})
}

// Count returns how many groups there are.
func (p *Provider) Count() int { return len(p.all) }

// Instance returns the instance of that ID and its group, or nil.
func (p *Provider) Instance(id string) (*Group, *Instance) {
	for _, g := range p.all {
		if i := g.Find(id); i != nil {
			return g, i
		}
	}
	return nil, nil
}

// Find returns the instance of that ID, or nil.
func (g *Group) Find(id string) *Instance {
	for _, i := range g.Instances {
		if i.ProviderID == id {
			return i
		}
	}
	return nil
}

// staying returns the instances that are not being removed.
func (g *Group) staying() (out []*Instance) {
	for _, i := range g.Instances {
		if !i.Going {
			out = append(out, i)
		}
	}
	return out
}

// outdated returns those of some instances that are made from an earlier template.
func (g *Group) outdated(all []*Instance) (out []*Instance) {
	for _, i := range all {
		if i.class != g.Class {
			out = append(out, i)
		}
	}
	return out
}

// bounds are those of an update: one after the other, unless the pool has some.
func (g *Group) bounds() rollout.Bounds {
	if g.Rolling == nil {
		return rollout.Bounds{Unavailable: 1}
	}
	return g.Rolling.Bounds(g.Target)
}

// members returns how many instances there are in all groups together.
func (p *Provider) members() (n int) {
	for _, g := range p.all {
		n += len(g.Instances)
	}
	return n
}
