package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// freezeWithin is the longest that a manager takes to notice that an API does not answer, plus the
// longest that earlier orders take to arrive.
const freezeWithin = 3 * time.Minute

// mustBeFrozen reports whether the manager has to have noticed an outage. Its timers follow its
// clock, so nothing is known if that clock jumps.
func (w *World) mustBeFrozen() bool {
	if w.o.Manager.SafetyPolicy == nil || w.ledger.belated || w.faults[ClockJump] > 0 {
		return false
	}
	for a := range apiCount {
		if w.down(a) && w.clock.now.Sub(w.outages[a].began) > freezeWithin {
			return true
		}
	}
	return false
}

// checkBirth checks a new machine: none is made while an API is out (P25), and none under the name
// of a machine that is long gone (P17).
func (w *World) checkBirth(m *machine.Machine) {
	if w.mustBeFrozen() {
		w.violate("P25", "machine %s was made though an API does not answer", m.Name)
	}
	if w.setPaused(m) && !w.ledger.belated {
		w.violate("P25", "machine %s was made, and its set is paused", m.Name)
	}
	gone, was := w.ledger.goneAt[m.Name]
	if limit := w.setPolicy().RequestTimeout + inFlight; was && !w.ledger.belated && w.faults[ClockJump] == 0 && w.clock.now.Sub(gone) > limit {
		w.violate("P17", "the name of machine %s comes back after %s", m.Name, w.clock.now.Sub(gone))
	}
}

// checkVerdict: while an API is out, no machine is marked failed for its health (P25). Otherwise,
// no more machines are failed at a time than the budget allows (P24).
func (w *World) checkVerdict(m *machine.Machine, fleet []*machine.Machine) {
	if w.mustBeFrozen() {
		w.violate("P25", "machine %s was given up though an API does not answer", m.Name)
	}
	if since := w.clock.now.Sub(w.backSince()); since < w.machinePolicy().HealthTimeout {
		w.violate("P25", "machine %s was given up %s after an outage: its clock has not begun anew", m.Name, since)
	}
	w.checkGrace(m)
	p := w.o.Manager.SafetyPolicy
	if p == nil || p.Replacements.Percent {
		return
	}
	given := 0
	for _, other := range fleet {
		if known := w.ledger.lives[other.UID]; known != nil && known.givenUp && !other.Deleted() && w.ledger.records[other.UID].kept.IsZero() && !w.isPaused(other) {
			given++
		}
	}
	if given > int(max(p.Replacements.Value, 1)) {
		w.violate("P24", "machine %s was given up, which makes %d at a time", m.Name, given)
	}
}

// checkGrace: a process that begins while a machine is unhealthy marks it failed no earlier than
// its policy's grace after the process began.
func (w *World) checkGrace(m *machine.Machine) {
	known := w.ledger.lives[m.UID]
	if known.phase != machine.PhaseUnknown && known.phase != machine.PhaseInPlaceUpdateFailed {
		return
	}
	began := w.process.began
	watched := w.clock.now.Sub(began)
	if w.ledger.belated || w.faults[ClockJump] > 0 || !known.since.Before(began.Truncate(time.Second)) {
		return
	}
	if watched < w.machinePolicy().Grace {
		w.violate("P25", "machine %s was given up %s after a process had begun, which has not seen it become ill", m.Name, watched)
	}
}

// backSince returns when the last outage ended that the process has to have noticed, from which all
// clocks count. It returns zero if there was none.
func (w *World) backSince() (last time.Time) {
	if w.o.Manager.SafetyPolicy == nil || w.ledger.belated || w.faults[ClockJump] > 0 {
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

// checkPodDeleted: as long as a drain may not use force and has time left, pods are only evicted
// (P22).
func (w *World) checkPodDeleted(name, node string) {
	if w.ledger.belated || w.faults[ClockJump] > 0 {
		return
	}
	for _, m := range w.machines.all() {
		if m.Name != node {
			continue
		}
		since, limit := w.drainTime(m)
		known := w.ledger.lives[m.UID]
		forced := w.forceDue(m) || known != nil && known.forced // also if no record can be written
		if took := w.clock.now.Sub(since); !forced && took < limit-inFlight {
			w.violate("P22", "pod %s was deleted %s after the drain of node %s had begun, and not evicted", name, took, node)
		}
	}
}

// checkAttempt: a pod that was refused is not tried again before its slot, also not by another
// process (P22). Orders take their time to arrive.
func (w *World) checkAttempt(p *pod) {
	if w.ledger.belated {
		return
	}
	last, by := p.tried, p.triedBy
	p.tried, p.triedBy = w.clock.now, w.process
	if apart := w.clock.now.Sub(last); w.faults[ClockJump] == 0 && apart < drain.Slot-2*w.o.Faults.Latency {
		w.violate("P22", "it was tried to evict pod %s again after %s", p.Name, apart)
	} else if by == w.process && apart > forgotten && !w.waitsForTurn(p, last) && w.faults[ClockJump] == 0 && w.drainsSince(p.node, last) && !w.heldUpSince(p.node, last) {
		w.violate("P21", "it was not tried to evict pod %s for %s, though it had been refused", p.Name, apart)
	}
}

// forgotten is the longest time in which a waiting pod may not be looked at again, also if the
// cluster refuses writes and retries have become rare.
const forgotten = 20 * time.Minute

// drainsSince reports whether the drain of a node that is under way was under way at that time.
func (w *World) drainsSince(node string, then time.Time) bool {
	n, err := w.nodes.Get(context.Background(), object.Key{Name: node})
	return err == nil && n.Drain != nil && n.Drain.Since.Before(then)
}

// outSince reports whether an API was out since then.
func (w *World) outSince(then time.Time) bool {
	return w.outages[control].ends.After(then) || w.outages[target].ends.After(then)
}

// machinePolicy returns how machines are treated.
func (w *World) machinePolicy() *machine.Policy {
	if p := w.o.Manager.MachinePolicy; p != nil {
		return p
	}
	return machine.DefaultPolicy()
}

// setPolicy returns how sets are treated.
func (w *World) setPolicy() *machineset.Policy {
	if p := w.o.Manager.SetPolicy; p != nil {
		return p
	}
	return machineset.DefaultPolicy()
}
