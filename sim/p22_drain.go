package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

// p22 is about drains, with P21: pods leave before the VM does, by eviction, each at its turn, and
// volumes are taken off by their users (p22_volumes.go).
type p22 struct {
	*World
	turns map[string]*turn // by node: the pod with volumes that was told to go last
}

func newP22(w *World) *p22 { return &p22{w, map[string]*turn{}} }

func (w *p22) see(e event) {
	switch e := e.(type) {
	case evictionTried:
		if !e.pod.Finished {
			w.checkAttempt(e.pod)
		}
	case podDeleted:
		if !e.pod.Finished {
			w.checkPodDeleted(e.pod.Name, e.pod.node)
		}
	case vmGone:
		w.checkLeft(e.node)
		w.checkDrained(e.node, e.running)
	case updateAwaited:
		if running := w.podsStaying(e.node); running > 0 {
			w.violate("P22", "node %s is ready for its update with %d pods on it", e.node, running)
		}
	default:
		w.seeVolumes(e)
	}
}

// checkDrained: no VM is deleted while pods run on its node, unless by force.
func (w *p22) checkDrained(name string, running int) {
	if running == 0 || !w.past.acting {
		return
	}
	for _, m := range w.machines.all() {
		known := w.past.lives[m.UID]
		if m.Name == name && !w.forceDue(m) && (known == nil || !known.forced) {
			w.violate("P22", "the VM of machine %s went with %d pods running on it", name, running)
		}
	}
}

// checkPodDeleted: as long as a drain may not use force and has time left, pods are only evicted
// (P22).
func (w *p22) checkPodDeleted(name, node string) {
	if w.past.belated || w.faults[ClockJump] > 0 {
		return
	}
	for _, m := range w.machines.all() {
		if m.Name != node {
			continue
		}
		since, limit := w.drainTime(m)
		known := w.past.lives[m.UID]
		forced := w.forceDue(m) || known != nil && known.forced // also if no record can be written
		if took := w.clock.now.Sub(since); !forced && took < limit-inFlight {
			w.violate("P22", "pod %s was deleted %s after the drain of node %s had begun, and not evicted", name, took, node)
		}
	}
}

// checkAttempt: a pod that was refused is not tried again before its slot, also not by another
// process (P22). Orders take their time to arrive.
func (w *p22) checkAttempt(p *pod) {
	if w.past.belated {
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
func (w *p22) drainsSince(node string, then time.Time) bool {
	n, err := w.nodes.Get(context.Background(), object.Key{Name: node})
	return err == nil && n.Drain != nil && n.Drain.Since.Before(then)
}

// waitsForTurn reports whether a pod with volumes has had to wait for others of its node, which
// leave one at a time.
func (w *p22) waitsForTurn(p *pod, since time.Time) bool {
	t := w.turns[p.node]
	return t != nil && t.pod != p && t.at.After(since) && len(p.Claims) > 0
}
