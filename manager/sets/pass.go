package sets

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/overshoot"
)

// Config is what sets need of the rest of a fleet.
type Config struct {
	Sets     *engine.Objects[*machineset.Set]
	Machines *engine.Objects[*machine.Machine]
	Policy   *machineset.Policy
	// Safety freezes sets that have too many machines; nil: nothing does.
	Safety *safety.Policy

	// Hold reports whether no pass may be made yet. Nil: any time.
	Hold func() (engine.Result, bool)
	// Frozen reports whether an API server does not answer, so that nothing is created.
	Frozen func() bool
	// Thaw returns when to look again at what is frozen and would be looked at again at at.
	Thaw func(at time.Time) time.Time
	// Creations returns what holds the creations of a class back (nil: nothing), and the versions that
	// they are made from. Those are needed only if the set's machines fail.
	Creations func(ctx context.Context, class object.Key, failing bool) (*machine.Hold, machine.Inputs, error)
	// Settled is told of a set and its machines at the end of a pass; may be nil.
	Settled func(*machineset.Set, []*machine.Machine)
	// Forget is told of a set that is gone; may be nil.
	Forget func(object.Key)
}

type reconciler struct {
	Config
	notes engine.Notes[notes]
}

// notes are what a process remembers of a set. If they are lost, names that became machines are
// settled at once, or used again for as long as creates may be under way.
type notes struct {
	statusWritten time.Time
	created       created
}

// created is up to which ordinal the names of one reservation of one set are known to have become
// machines. Of any other reservation, also one that was put back, it says nothing.
type created struct {
	uid     string
	of      machineset.Reservation
	ordinal int64
}

// pass is one pass over one set.
type pass struct {
	*engine.Pass
	*reconciler
	o     machineset.Observation
	plan  machineset.Plan
	bound overshoot.Plan // comes before plan
}

// orders are those of the plan.
func (p *pass) orders() []machineset.Order {
	for _, orders := range [...][]machineset.Order{p.plan.Create, p.plan.Delete, p.plan.Adopt, p.plan.Release, p.plan.Push} {
		if len(orders) > 0 {
			return orders
		}
	}
	return nil
}
