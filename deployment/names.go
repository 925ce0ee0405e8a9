package deployment

import (
	"slices"

	"github.com/millwright-go/millwright/machineset"
)

// A set gives out the names of its machines before it creates them. In a rolling update a set needs
// names wave by wave. There the names come with its new size: the write compares and swaps like the
// set's own, everything was read live before, and the set reads its machines again before it
// creates. So surplus names stay unused, like those of a process that died. As with those, it takes
// a while until it is certain that they lead to no machine. If a size may be taken back at once, or
// the set may have to wait, the set gives out the names itself.

// waiting are the conditions under which a set delays the creation of its machines.
var waiting = [...]string{ConditionCreationSlowed, ConditionReplacementSlowed, machineset.ConditionFrozen}

// nameNew gives names to the machines that a set is going to create for its new size in a rolling
// update.
func (d setWrite) nameNew(changed *machineset.Set) {
	f := d.f
	waits := slices.ContainsFunc(waiting[:], func(typ string) bool { return f.condition(typ) != nil })
	n := min(d.p.Names, changed.Spec.Replicas-f.actual)
	if n <= 0 || waits || !f.namesDone() || f.actual < f.size() || d.p.StrictQuota || !d.rolling() ||
		d.deployment.Spec.Paused || d.deployment.Spec.Strategy.Kind == InPlaceUpdate {
		return
	}
	changed.Instructions.Reservation = changed.Instructions.Reservation.Next(int64(n), d.stamp())
}
