package sim

import (
	"slices"
	"time"
)

// orders says which orders of the processes so far may still be carried out.
type orders struct {
	*apis
	process *process  // the one that lives, or lived last
	worked  time.Time // when a process was disturbed last that had worked for a while
}

func (s *orders) see(e event) {
	switch e := e.(type) {
	case processStarted:
		s.process = e.process
	case interrupted:
		s.keptFromWork()
	}
}

// unknown reports whether orders that were given before then may still be carried out. Each process
// goes on with the orders of the one before it, until one has worked for long enough to see what
// has become of the fleet since then.
func (s *orders) unknown(then time.Time) bool {
	if s.worked.Sub(then) > inFlight {
		return false
	}
	return s.process.dead || s.Now().Sub(s.workingSince(then)) <= inFlight
}

// workingSince is since when the present process has been able to work, then at the earliest: it
// lives, and both APIs answer.
func (s *orders) workingSince(then time.Time) time.Time {
	return slices.MaxFunc([]time.Time{then, s.process.began, s.outages[controlAPI].ends, s.outages[targetAPI].ends}, time.Time.Compare)
}

// keptFromWork notes that the present process is about to be kept from its work. One that has worked for
// a while has seen what has become of the fleet.
func (s *orders) keptFromWork() {
	if !s.process.dead && s.Now().Sub(s.workingSince(time.Time{})) > inFlight {
		s.worked = s.Now()
	}
}
