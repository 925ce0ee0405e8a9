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

// Options has the fields of sim.PoolOptions.
type Options struct {
	Features machinepool.Features
	Lag      time.Duration
	Asks     float64
}

// Provider holds all groups of an account, and is the pool driver for them. It finds the group of a pool
// by the pool's key. New makes it. It is not safe for concurrent use.
type Provider struct {
	world   World
	account Account
	options Options
	all     map[object.Key]*Group
	number  int
}

// Account returns what a class asks for, or an error if a call with that class and secret is refused.
type Account interface {
	Admit(*machine.Class, *machine.Secret) (drivertest.MemorySpec, error)
}

// New returns a provider without groups, for the classes and secrets of an account. The size that a
// class asks for is also the zone of its instances.
func New(w World, account Account, o Options) *Provider {
	return &Provider{world: w, account: account, options: o, all: map[object.Key]*Group{}}
}

// Group is a group of instances. Only the provider changes it.
type Group struct {
	ID        string
	Pool      object.Key
	Class     string // the class from which new instances are made
	Rolling   *machinepool.RollingUpdate
	Target    int32
	Instances []*Instance // oldest first
	Deleting  bool
	Made      time.Time
	Resized   time.Time // when Resize last set the target

	zone    string // the zone of new instances
	ready   bool
	failure string // why it does not work; empty: it works
	planned bool   // its next step is scheduled
}

// Instance is an instance of a group.
type Instance struct {
	machinepool.Instance
	Name string // name of its node

	class, zone    string
	gone           bool
	unhealthySince time.Time // when its node was first seen not to be ready; zero: it is ready
	drainAskedAt   time.Time // when the provider began to wait for its drain
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
		if !i.Terminating {
			out = append(out, i)
		}
	}
	return out
}

// outdated returns those of the given instances that were made from an earlier class.
func (g *Group) outdated(given []*Instance) (out []*Instance) {
	for _, i := range given {
		if i.class != g.Class {
			out = append(out, i)
		}
	}
	return out
}

// bounds returns the bounds of updates: those of the pool, or one instance after the other.
func (g *Group) bounds() rollout.Bounds {
	if g.Rolling == nil {
		return rollout.Bounds{Unavailable: 1}
	}
	return g.Rolling.Bounds(g.Target)
}

// members returns the number of instances in all groups.
func (p *Provider) members() (n int) {
	for _, g := range p.all {
		n += len(g.Instances)
	}
	return n
}
