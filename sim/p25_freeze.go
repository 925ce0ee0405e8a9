package sim

import (
	"time"

	"github.com/millwright-go/millwright/machine"
)

// p25: while an API does not answer, no machine is made or marked failed. What is paused stays as
// it is: see p25Paused.
type p25 struct{ *World }

func (w p25) see(e event) {
	switch e := e.(type) {
	case machineBorn:
		w.checkBirth(e.machine)
	case machineFailed:
		w.checkFailed(e.machine)
	}
}

// freezeWithin is the longest that a manager takes to notice that an API does not answer, plus the
// longest that earlier orders take to arrive.
const freezeWithin = 3 * time.Minute

// mustBeFrozen reports whether the manager has to have noticed an outage. Its timers follow its
// clock, so nothing is known if that clock jumps.
func (w p25) mustBeFrozen() bool {
	if w.o.Manager.Policies.Safety == nil || w.belated || w.faults[ClockJump] > 0 {
		return false
	}
	for a := range apiCount {
		if w.down(a) && w.Now().Sub(w.outages[a].began) > freezeWithin {
			return true
		}
	}
	return false
}

// checkBirth: no machine is made while an API is out, or for a set that is paused.
func (w p25) checkBirth(m *machine.Machine) {
	if w.mustBeFrozen() {
		w.violate("P25", "machine %s was made though an API does not answer", m.Name)
	}
	if w.setPaused(m) && !w.belated {
		w.violate("P25", "machine %s was made, and its set is paused", m.Name)
	}
}

// checkFailed: while an API is out, no machine is marked failed for its health. Clocks start
// again when it answers.
func (w p25) checkFailed(m *machine.Machine) {
	if w.mustBeFrozen() {
		w.violate("P25", "machine %s was given up though an API does not answer", m.Name)
	}
	if since := w.Now().Sub(w.backSince()); since < w.machinePolicy().HealthTimeout {
		w.violate("P25", "machine %s was given up %s after an outage: its clock has not started again", m.Name, since)
	}
	w.checkGrace(m)
}

// checkGrace: a process that begins while a machine is unhealthy marks it failed no earlier than
// its policy's grace after the process began.
func (w p25) checkGrace(m *machine.Machine) {
	known := w.lives[m.UID]
	if known.phase != machine.PhaseUnknown && known.phase != machine.PhaseInPlaceUpdateFailed {
		return
	}
	began := w.process.began
	watched := w.Now().Sub(began)
	if w.belated || w.faults[ClockJump] > 0 || !known.since.Before(w.managerTime(began).Truncate(time.Second)) {
		return
	}
	if watched < w.machinePolicy().Grace {
		w.violate("P25", "machine %s was given up %s after a process had begun, which has not seen it become ill", m.Name, watched)
	}
}

// backSince returns when the last outage ended that the process has to have noticed, from which all
// clocks count. It returns zero if there was none.
func (w p25) backSince() (last time.Time) {
	if w.o.Manager.Policies.Safety == nil || w.belated || w.faults[ClockJump] > 0 {
		return last
	}
	for a := range apiCount {
		o := &w.outages[a]
		noticed := o.ends.Sub(o.began) > freezeWithin && w.process.began.Before(o.began)
		if noticed && !w.down(a) && o.ends.After(last) {
			last = o.ends
		}
	}
	return last
}
