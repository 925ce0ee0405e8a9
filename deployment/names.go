package deployment

import (
	"slices"

	"github.com/millwright-go/millwright/machineset"
)

// manyNames is how many open names of a set are looked for among its machines.
const manyNames = 1000

// A set gives out the names of its machines before it creates them. In a rolling
// update, where it needs them wave by wave, they come with its new size: the write
// compares and swaps like its own, all was read live before, and the set reads its
// machines again before it creates. So names that turn out to be too many stay
// unused, as those of a process that died. As with those, it takes a while until it
// is certain that nothing comes of them: where a size may be taken back as soon as
// it was given, or the set may have to wait, it gives them out itself.

// waiting are the conditions by which a set waits with the machines it should make.
var waiting = [...]string{ConditionCreationSlowed, ConditionReplacementSlowed, machineset.ConditionFrozen}

// namesDone tells whether all names that the set has given out came to be
// machines, or can't any more.
func (f *family) namesDone() bool {
	r := &f.set.Instructions.Reservation
	return f.announced == 0 && r.Settled >= 0 && r.Reserved >= r.Settled
}

// nameNew gives names to the machines that a set is going to make for its new size
// in a rolling update.
func (d *decider) nameNew(changed *machineset.Set, f *family) {
	waits := slices.ContainsFunc(waiting[:], func(typ string) bool { return f.condition(typ) != nil })
	n := min(d.p.Names, changed.Spec.Replicas-f.actual)
	if n <= 0 || waits || !f.namesDone() || f.actual < f.size() || d.p.StrictQuota || !d.rolling() ||
		d.deployment.Spec.Paused || d.deployment.Spec.Strategy.Kind == InPlaceUpdate {
		return
	}
	changed.Instructions.Reservation = changed.Instructions.Reservation.Next(int64(n), d.stamp())
}
