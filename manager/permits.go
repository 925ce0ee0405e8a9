package manager

import (
	"sync"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/replacement"
)

// permits is what hooks were told of the permits for replacement that are in use.
type permits struct {
	options *Options
	mu      sync.Mutex
	told    map[visited][2]int
}

type visited struct {
	kind Kind
	key  object.Key
}

func newPermits(o *Options) *permits { return &permits{options: o, told: make(map[visited][2]int)} }

// wanted reports whether anybody is told.
func (r *permits) wanted() bool {
	return r.options.Policies.Safety != nil && r.options.Hooks.Permits != nil
}

// tell tells how many are in use, unless that was told last.
func (r *permits) tell(kind Kind, holder *object.Meta, replicas int32, fleet []*machine.Machine) {
	used, limit := replacement.SlotsInUse(
		holder, replicas, fleet, r.options.Policies.Safety, r.options.Runtime.Now())
	r.mu.Lock()
	defer r.mu.Unlock()
	at, now := visited{kind, holder.Key}, [2]int{used, limit}
	if last, known := r.told[at]; !known || last != now {
		r.told[at] = now
		r.options.Hooks.Permits(kind, holder.Key, used, limit)
	}
}

// forget tells that an object is gone that something was told of.
func (r *permits) forget(kind Kind, key object.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.told[visited{kind, key}]; known {
		delete(r.told, visited{kind, key})
		r.options.Hooks.Permits(kind, key, 0, 0)
	}
}
