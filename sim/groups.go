package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// PoolOptions say how the provider provides the groups of a world's pools. The zero value is a
// provider without optional calls that does everything at once.
type PoolOptions struct {
	// Features are what the simulated driver of groups declares.
	Features machinepool.Features
	// Lag is the longest time until the next instance is added or removed, and until a new group
	// works.
	Lag time.Duration
	// Asks is the probability, from 0 to 1, that the provider requests a drain before it removes an
	// instance. It then waits for an hour to be told that the drain is done.
	Asks float64
}

// groups are those of the simulated provider. A group belongs to its pool by the pool's key, as
// names are unique in an account.
type groups struct {
	*ground
	options PoolOptions
	all     map[object.Key]*group
	number  int
	silent  time.Time // until then no call is answered
}

func newGroups(g *ground, o *PoolOptions) *groups {
	out := &groups{ground: g, all: map[object.Key]*group{}}
	if o != nil {
		out.options = *o
	}
	return out
}

type group struct {
	id        string
	pool      object.Key
	class     string // that instances are made from
	target    int32
	instances []*instance // oldest first
	made      time.Time
	ready     bool
	failure   string // empty: it works
	going     bool
	planned   bool      // a look at it is scheduled
	resized   time.Time // when something other than the manager changed the target
	looked    time.Time // when a process last read its status
	backSince time.Time // when the status was last read again after a while without a read
}

type instance struct {
	machinepool.Instance
	name  string // of its node
	class string
	ill   time.Time // since when its node was seen not to be ready; zero: it is ready
	asked time.Time // since when the provider waits for its drain
}

// sorted returns all groups, in the order of their keys.
func (g *groups) sorted() []*group {
	return slices.SortedFunc(maps.Values(g.all), func(a, b *group) int { return compareKeys(a.pool, b.pool) })
}

// instance returns the instance of that ID and its group, or nil.
func (g *groups) instance(id string) (*group, *instance) {
	for _, group := range g.all {
		if i := group.find(id); i != nil {
			return group, i
		}
	}
	return nil, nil
}

func (g *group) find(id string) *instance {
	for _, i := range g.instances {
		if i.ProviderID == id {
			return i
		}
	}
	return nil
}

// staying returns the instances that are not being removed.
func (g *group) staying() (out []*instance) {
	for _, i := range g.instances {
		if !i.Going {
			out = append(out, i)
		}
	}
	return out
}

// members returns how many instances there are in all groups together.
func (g *groups) members() (n int) {
	for _, group := range g.all {
		n += len(group.instances)
	}
	return n
}

// mute is how long a group that drains may go without a status read before that counts as an outage
// of the group. The manager reads it every few seconds.
const mute = 5 * time.Minute

// told records that a process has read the status of a group.
func (g *group) told(now time.Time) {
	if !g.looked.IsZero() && now.Sub(g.looked) > mute {
		g.backSince = now
	}
	g.looked = now
}
