package sim

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/sim/internal/cluster"
)

// p25: while an API does not answer, no machine is created or marked failed. For paused machines and
// sets, see p25Paused.
type p25 struct{ *World }

func (w p25) see(e event) {
	switch e := e.(type) {
	case machineCreated:
		w.checkCreation(e.machine)
	case machineFailed:
		w.checkFailed(e.machine)
	}
}

// freezeWithin is the longest time until a manager notices that an API does not answer, and earlier
// orders have arrived.
const freezeWithin = 3 * time.Minute

// mustBeFrozen reports whether the manager must have noticed an outage. It is false if the manager's
// clock jumps, because that disturbs its timers.
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

// checkCreation checks that no machine is created while an API is out, or for a paused set.
func (w p25) checkCreation(m *machine.Machine) {
	if w.mustBeFrozen() {
		w.violate("P25", "machine %s was created while an API does not answer", m.Name)
	}
	if w.setPaused(m) && !w.belated {
		w.violate("P25", "machine %s was created, but its set is paused", m.Name)
	}
}

// checkFailed checks that no machine is marked failed for its health while an API is out. Health timeouts
// start again when it answers.
func (w p25) checkFailed(m *machine.Machine) {
	if w.mustBeFrozen() {
		w.violate("P25", "machine %s was marked failed while an API does not answer", m.Name)
	}
	if since := w.Now().Sub(w.backSince()); since < w.machinePolicy().HealthTimeout {
		w.violate("P25", "machine %s was marked failed %s after an outage: its health timeout should have started again", m.Name, since)
	}
	w.checkGrace(m)
}

// checkGrace checks that a process that starts while a machine is unhealthy does not mark it failed
// before the policy's Grace has passed.
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
		w.violate("P25", "machine %s was marked failed %s after the manager had started, which did not see it become unhealthy", m.Name, watched)
	}
}

// backSince returns the end of the last outage that the process must have noticed, or zero. All health
// timeouts start again then.
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

// p25Paused: a paused machine does not change, and neither do the size and the machines of a paused set
// (P25). Orders that were under way before the pause are excused.
type p25Paused struct{ *World }

func (w p25Paused) see(e event) {
	switch e := e.(type) {
	case machineChanged:
		w.checkPausedMachine(e.seen, e.now)
	case machineDeleted:
		if w.setPaused(e.now) {
			w.violate("P25", "machine %s was deleted, and its set is paused", e.now.Name)
		}
	case setChanged:
		w.checkPausedSet(e.seen, e.now)
	case callArrived:
		w.checkPausedCall(e.call)
	case cluster.EvictionTried:
		w.checkPausedPod(e.Pod)
	case cluster.PodDeleted:
		w.checkPausedPod(e.Pod)
	}
}

// checkPausedCall checks that no call to the provider is made about a paused machine.
func (w p25Paused) checkPausedCall(s driver.CallInfo) {
	if _, ofMachines := s.Method.(codes.Call); ofMachines && s.Object.Name != "" && w.pausedLong(s.Object.Name) {
		w.violate("P25", "%s was called for machine %s, which is paused", s.Method, s.Object.Name)
	}
}

// checkPausedPod checks that the node of a paused machine is not drained.
func (w p25Paused) checkPausedPod(p cluster.Pod) {
	if !w.belated && w.pausedLong(p.Node) {
		w.violate("P25", "pod %s was told to terminate on node %s, whose machine is paused", p.Name, p.Node)
	}
}

// checkPausedMachine checks that a paused machine does not change, and that the manager does not delete
// it.
func (w p25Paused) checkPausedMachine(r *record[*machine.Machine], now *machine.Machine) {
	if !w.longAgo(r.paused) {
		return
	}
	before, a, b := r.last, &r.last.Status, &now.Status
	moved := a.Phase != b.Phase || a.LastOperation.Kind != b.LastOperation.Kind || a.LastOperation.Stage != b.LastOperation.Stage ||
		a.LastOperation.State != b.LastOperation.State || before.Spec.ProviderID != now.Spec.ProviderID
	switch {
	case now.Deleted() && !before.Deleted():
		w.violate("P25", "machine %s was deleted, and is paused", now.Name)
	case moved:
		w.violate("P25", "machine %s went from %s, %s to %s, %s, and is paused", now.Name,
			a.Phase, a.LastOperation.Stage, b.Phase, b.LastOperation.Stage)
	}
}

// checkPausedSet checks that a paused set keeps its size and is not deleted. Moves of machines that had
// begun before the pause continue.
func (w p25Paused) checkPausedSet(r *record[*machineset.Set], now *machineset.Set) {
	if !w.acting || w.belated || !w.longAgo(r.paused) {
		return
	}
	handsOver := len(r.last.Instructions.Handover.Arriving)+len(r.last.Instructions.Handover.Leaving)+len(now.Instructions.Handover.Arriving)+len(now.Instructions.Handover.Leaving) > 0
	switch {
	case now.Deleted() && !r.last.Deleted():
		w.violate("P25", "set %s was deleted, and is paused", now.Name)
	case now.Spec.Replicas != r.last.Spec.Replicas && !handsOver:
		w.violate("P25", "set %s went from %d to %d replicas, and is paused", now.Name, r.last.Spec.Replicas, now.Spec.Replicas)
	}
}
