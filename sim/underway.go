package sim

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
)

// unknown reports whether orders that were given before then may still be carried out. Each process
// goes on with the orders of the one before it, until one has worked for long enough to see what
// has become of the fleet since then.
func (w *World) unknown(then time.Time) bool {
	if w.worked.Sub(then) > inFlight {
		return false
	}
	return w.process.dead || w.clock.now.Sub(w.workingSince(then)) <= inFlight
}

// unforeseen reports whether a set may take machine m because of an order from before then, when a
// machine of the set became available. The order must not be newer, and it could not be
// taken back yet.
func (w *World) unforeseen(m *machine.Machine, then time.Time) bool {
	s := w.past.setRecords[ownerUID(m)]
	return w.unknown(then) && (s == nil || s.lowered.Sub(then) <= inFlight)
}

// workingSince is since when the present process has been able to work, then at the earliest: it
// lives, and both APIs answer.
func (w *World) workingSince(then time.Time) time.Time {
	return slices.MaxFunc([]time.Time{then, w.process.began, w.outages[control].ends, w.outages[target].ends}, time.Time.Compare)
}

// keptFromWork notes that the present process is about to be kept from its work. One that has worked for
// a while has seen what has become of the fleet.
func (w *World) keptFromWork() {
	if !w.process.dead && w.clock.now.Sub(w.workingSince(time.Time{})) > inFlight {
		w.worked = w.clock.now
	}
}

// podsStaying counts the pods that a drain may not leave on a node. Two kinds don't count: pods that
// have finished, and pods whose grace ended half a minute ago by the manager's clock.
func (w *World) podsStaying(node string) (n int) {
	now := w.latest()
	for _, p := range w.apps.on(node) {
		if !p.Finished && (p.GraceEnds.IsZero() || now.Before(p.GraceEnds.Add(overdue))) {
			n++
		}
	}
	return n
}

// overdue is how long a drain waits for a pod whose grace has ended.
const overdue = 30 * time.Second
