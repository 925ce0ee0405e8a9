package sim

import (
	"context"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/cluster"
)

// p22 is about drains, with P21 and P53: pods leave before the VM does, by eviction, each at its turn.
// The turns of pods with volumes are those of p22Volumes.
type p22 struct {
	*p22Volumes
	attempts map[string]attempt   // to evict pods, by their UID: the last of each
	deleting map[string]time.Time // when the last DeleteMachine was begun, by the machine's name
	drained  map[string]time.Time // when the drain of a deletion ended, by the machine's UID
	before   map[string]time.Time // when the drain for an update or a preservation is over that a deletion ends, by the machine's UID
	by       *process             // that made the last attempt of all
	number   int                  // of that process
}

// attempt is one to evict a pod, by the process of that number.
type attempt struct {
	at time.Time
	by int
}

func newP22(turns *p22Volumes) *p22 {
	return &p22{p22Volumes: turns, attempts: map[string]attempt{}, deleting: map[string]time.Time{}, drained: map[string]time.Time{}, before: map[string]time.Time{}}
}

func (w *p22) see(e event) {
	switch e := e.(type) {
	case cluster.EvictionTried:
		if !e.Pod.Finished {
			w.checkAttempt(e.Pod)
		}
	case cluster.PodDeleted:
		if !e.Pod.Finished {
			w.checkPodDeleted(e.Pod.Name, e.Pod.Node)
		}
	case calling:
		if e.call.Method == codes.DeleteMachine {
			w.deleting[e.call.Object.Name] = w.Now()
		}
	case stored[*machine.Machine]:
		if e.now != nil {
			w.sawDrained(e.now)
		}
	case vmGone:
		if !w.second(e) {
			w.checkDrained(e.node)
		}
	case updateAwaited:
		if running := w.podsStaying(e.node); running > 0 {
			w.violate("P22", "node %s is ready for its update with %d pods on it", e.node, running)
		}
	}
}

// checkDrained: no VM is deleted while pods run on its node, or have some of their grace left, unless
// by force. A call of a dead process was given when its node was not known, or was drained.
func (w *p22) checkDrained(name string) {
	if !w.acting || w.belated {
		return
	}
	running := w.podsRunning(name)
	for _, m := range w.machines.all() {
		known := w.lives[m.UID]
		if m.Name != name || w.forceDue(m) || known != nil && known.forced || m.Spec.NodeName == "" && w.misled[name] || w.unseenBy(m) {
			continue
		}
		if running > 0 {
			w.violate(w.drainRule(m), "the VM of machine %s went with %d pods running on it", name, running)
		}
		if going := w.podsInGrace(name, w.drained[m.UID]); going > 0 {
			w.violate("P50", "the VM of machine %s went with %d pods on it in their grace", name, going)
		}
	}
}

// drainRule is the rule that has pods leave a machine's node before its VM goes: P53 if the node
// registered after the machine's deletion had begun.
func (w *p22) drainRule(m *machine.Machine) string {
	if w.joinedAt(m).After(m.DeletedAt) {
		return "P53"
	}
	return "P22"
}

// unseenBy reports whether a machine's node registered after its deletion had begun, and when the call
// that deletes its VM was about to be made, or later, so that it could not be seen before the call.
func (w *p22) unseenBy(m *machine.Machine) bool {
	joined := w.joinedAt(m)
	return joined.After(m.DeletedAt) && joined.Add(inFlight).After(w.deleting[m.Name])
}

// joinedAt is when a machine's node registered. It is zero if it has no node.
func (w *p22) joinedAt(m *machine.Machine) time.Time {
	n, err := w.nodes.Get(context.Background(), object.Key{Name: m.Name})
	if err != nil || !m.Deleted() {
		return time.Time{}
	}
	return n.CreatedAt
}

// sawDrained notes when the drain of a deletion has ended, or that it has begun again.
func (w *p22) sawDrained(m *machine.Machine) {
	if !m.Deleted() {
		delete(w.before, m.UID)
		if m.Status.Phase == machine.PhaseInPlaceUpdating || !m.Status.Preservation.Since.IsZero() {
			since, limit := w.drainTime(m)
			w.before[m.UID] = since.Add(limit)
		}
	}
	stage, ended := m.Status.DeletionStage(), w.drained[m.UID]
	trackSince(&ended, w.Now(), stage == machine.StageDeleteVolumeAttachments || stage == machine.StageInitiateVMDeletion)
	if t := w.turns[m.Name]; t != nil && w.drained[m.UID].IsZero() && !ended.IsZero() {
		t.held = w.usedAgain(t)
	}
	w.drained[m.UID] = ended
}

// podsInGrace counts the pods of a node that were told to terminate and whose grace has not ended, by
// the cluster's clock. Pods that were told before the manager's clock jumped don't count, nor do those
// that came in spite of the cordon and were told after the drain had ended, by anybody: nothing waits for
// them then, told or not.
func (w *p22) podsInGrace(name string, drained time.Time) (n int) {
	for _, p := range w.apps.On(name) {
		told := p.GraceEnds.Add(-p.Grace)
		tooLate := !drained.IsZero() && told.After(drained) && w.cameDespiteCordon(p, name)
		if !p.Finished && w.Now().Before(p.GraceEnds) && w.jumped.Before(told) && !tooLate {
			n++
		}
	}
	return n
}

// checkPodDeleted: as long as a drain may not use force and has time left, pods are only evicted
// (P22).
func (w *p22) checkPodDeleted(name, node string) {
	if w.belated || w.faults[ClockJump] > 0 {
		return
	}
	for _, m := range w.machines.all() {
		if m.Name != node {
			continue
		}
		since, limit := w.drainTime(m)
		known := w.lives[m.UID]
		forced := w.forceDue(m) || known != nil && known.forced // also if no record can be written
		due := w.before[m.UID]
		if m.Deleted() && w.underWay(m.DeletedAt) && !due.IsZero() && !w.managerNow().Before(due.Add(-inFlight)) {
			continue // by a pass of the drain before
		}
		if took := w.managerNow().Sub(since); !forced && took < limit-inFlight {
			w.violate("P22", "pod %s was deleted %s after the drain of node %s had begun, and not evicted", name, took, node)
		}
	}
}

// checkAttempt: a pod that was refused is not tried again before its slot, also not by another
// process (P22). Orders take their time to arrive, those of one pass one after another. A node that was deleted and has registered again is
// drained from the beginning.
func (w *p22) checkAttempt(p cluster.Pod) {
	if w.belated {
		return
	}
	if w.process != w.by {
		w.by, w.number = w.process, w.number+1
	}
	last := w.attempts[p.UID]
	w.attempts[p.UID] = attempt{w.Now(), w.number}
	if apart := w.Now().Sub(last.at); w.faults[ClockJump] == 0 && w.o.Faults.Skew == 0 && apart < drain.Slot-4*w.o.Faults.Latency && w.drainsSince(p.Node, last.at) {
		w.violate("P22", "eviction of pod %s was retried after only %s", p.Name, apart)
	} else if last.by == w.number && apart > forgottenAfter+w.hung() && !w.waitsForTurn(p, last.at) && w.faults[ClockJump] == 0 && w.drainsSince(p.Node, last.at) && !w.heldUpSince(p.Node, last.at) {
		w.violate("P21", "eviction of pod %s was refused, and not retried for %s", p.Name, apart)
	}
}

// forgottenAfter is the longest time in which a waiting pod may not be looked at again, also if the
// cluster refuses writes and retries have become rare.
const forgottenAfter = 20 * time.Minute

// hung is for how long a call that hangs may keep an object from its next pass: it is looked at again
// when the caller has left the call, and when the call has returned.
func (w *World) hung() time.Duration {
	if w.faults[CallHung] == 0 {
		return 0
	}
	return 2 * (w.o.Manager.Tuning.CallTimeout + w.o.Faults.HangFor)
}

// drainsSince reports whether the drain of a node that is under way was under way at that time.
func (w *p22) drainsSince(node string, then time.Time) bool {
	n, err := w.nodes.Get(context.Background(), object.Key{Name: node})
	return err == nil && n.Drain != nil && n.Drain.Since.Before(w.managerTime(then))
}

// waitsForTurn reports whether a pod with volumes has had to wait for others of its node, which
// leave one at a time. A recorded turn may be older than the wait: a pod with the same volumes that had
// come back held it up, and has left.
func (w *p22) waitsForTurn(p cluster.Pod, since time.Time) bool {
	if len(p.Claims) == 0 {
		return false
	}
	if t := w.turns[p.Node]; t != nil && t.pod.UID != p.UID && t.at.After(since) {
		return true
	}
	n, err := w.nodes.Get(context.Background(), object.Key{Name: p.Node})
	if err != nil || n.Drain == nil || n.Drain.Turn.UID == p.UID {
		return false
	}
	t := &n.Drain.Turn
	ends := t.Detached
	if ends.IsZero() {
		ends = t.Since.Add(max(t.Grace, 0)).Add(w.drainPolicy().DetachTimeout)
	}
	return ends.After(w.managerTime(since))
}

// heldUpSince reports whether something since then has held up a drain: an outage or a pause, or, of a
// pool's node, a provider that does not answer about its group. A drain before an update in place that
// failed has ended; the deletion that follows has one of its own.
func (w *p22) heldUpSince(node string, then time.Time) bool {
	deleted := slices.ContainsFunc(w.machines.all(), func(m *machine.Machine) bool {
		return m.Name == node && m.DeletedAt.After(then)
	})
	return deleted || w.outSince(then) || w.pausedSince(node, then) || w.machine(node) == nil && w.poolCalls.silent.After(then)
}

// volumeTurn is a pod with volumes that a drain has told to terminate, and the progress of its
// volumes.
type volumeTurn struct {
	pod      cluster.Pod
	node     string
	at       time.Time
	volumes  []cluster.Volume // where they were last seen
	detached time.Time        // when the last of them had left the node, or zero
	moved    bool             // all are attached elsewhere, or were at some time
	noted    bool             // the drain has recorded that they have left
	recorded bool             // the drain has recorded the turn
	late     time.Time        // when a call of a dead process recorded it, or zero
	held     bool             // another pod of the node used them when the drain ended
}

// follow notes where a volume is now, if it is one of the turn.
func (t *volumeTurn) follow(moved cluster.Volume, now time.Time) {
	i := slices.IndexFunc(t.volumes, func(v cluster.Volume) bool { return v.Name == moved.Name })
	if i < 0 {
		return
	}
	t.volumes[i] = moved
	here, elsewhere := false, true
	for _, v := range t.volumes {
		here = here || v.On(t.node)
		elsewhere = elsewhere && v.At != nil && v.At.Node != t.node && v.At.Attached
	}
	if !here && t.detached.IsZero() {
		t.detached = now
	}
	t.moved = t.moved || elsewhere
}

// p22Volumes: pods with volumes leave a node one at a time, and volumes are taken off by their
// users (P22).
type p22Volumes struct {
	*World
	turns map[string]*volumeTurn // by node: the pod with volumes that was told to go last
}

func newP22Volumes(w *World) *p22Volumes { return &p22Volumes{w, map[string]*volumeTurn{}} }

func (w *p22Volumes) see(e event) {
	switch e := e.(type) {
	case stored[*machine.Node]:
		if e.now != nil {
			w.sawTurn(e.now)
		}
	case cluster.PodEvicted:
		w.checkTurn(e.Pod, e.Volumes)
		w.take(e.Pod, e.Volumes)
	case cluster.VolumeMoved:
		for _, t := range w.turns {
			t.follow(e.Volume, w.Now())
		}
	case cluster.DetachOrdered:
		w.checkDetached(e.Volume)
	case vmGone:
		if !w.second(e) {
			w.checkLeft(e.node)
		}
	}
}

// second reports whether a VM was another one than that of the machine of its name, though it had
// registered the node. It goes as an orphan, and those are not drained.
func (w *p22Volumes) second(e vmGone) bool {
	return slices.ContainsFunc(w.machines.all(), func(m *machine.Machine) bool {
		return m.Name == e.node && m.Spec.ProviderID != "" && m.Spec.ProviderID != e.id
	})
}

// take records that a pod was told to terminate, if it has volumes that are followed.
func (w *p22Volumes) take(p cluster.Pod, volumes []cluster.Volume) {
	var here []cluster.Volume
	for _, v := range volumes {
		if v.On(p.Node) {
			here = append(here, v)
		}
	}
	if len(here) > 0 {
		w.turns[p.Node] = &volumeTurn{pod: p, node: p.Node, at: w.Now(), volumes: here}
	}
}

// sawTurn notes that a node's record has the turn.
func (w *p22Volumes) sawTurn(n *machine.Node) {
	t := w.turns[n.Name]
	if t == nil || t.recorded || n.Drain == nil || n.Drain.Turn.UID != t.pod.UID {
		return
	}
	t.recorded = true
	if w.belated {
		t.late = w.Now()
	}
}

// binding returns the turn that the drain of a node has recorded, if only the turn decides when the
// next pod with volumes is evicted: neither force nor the drain's end is due. A drain may have read
// the node before a call of a dead process recorded the turn.
func (w *p22Volumes) binding(node string) *volumeTurn {
	t := w.turns[node]
	n, err := w.nodes.Get(context.Background(), object.Key{Name: node})
	if t == nil || err != nil || w.belated || w.faults[ClockJump] > 0 || n.Drain == nil || n.Drain.Turn.UID != t.pod.UID {
		return nil
	}
	if _, i := w.groups.Instance(n.ProviderID); i != nil && w.poolDrainEnds(n) {
		return nil
	}
	if !t.late.IsZero() && w.unknown(t.late) {
		return nil
	}
	for _, m := range w.machines.all() {
		if m.Name == node && w.drainEnds(m) {
			return nil
		}
	}
	t.noted = !n.Drain.Turn.Detached.IsZero()
	return t
}

// drainEnds reports whether the drain of a machine's node may have used up its time now, by the clock
// of the manager, or may use force.
func (w *p22Volumes) drainEnds(m *machine.Machine) bool {
	since, limit := w.drainTime(m)
	known := w.lives[m.UID]
	return w.forceDue(m) || known != nil && known.forced || w.managerNow().Sub(since) >= limit-inFlight
}

// drainTime returns since when the node of a machine may have been drained, and for how long before
// pods are deleted.
func (w *p22Volumes) drainTime(m *machine.Machine) (since time.Time, limit time.Duration) {
	p, kept := w.machinePolicy(), &m.Status.Preservation
	switch {
	case m.Deleted():
		return stageBegan(m), p.DrainTimeout
	case !kept.Since.IsZero():
		return kept.Since, kept.Until.Sub(kept.Since)
	}
	return m.Status.Since, p.InPlaceTimeout
}

// checkTurn: pods with volumes leave a node one at a time. The next one is evicted when the volumes
// of the last one have left, and are attached elsewhere or have had their time for it (P22).
func (w *p22Volumes) checkTurn(p cluster.Pod, volumes []cluster.Volume) {
	t := w.binding(p.Node)
	if t == nil || t.pod.UID == p.UID || w.usedAgain(t) || w.shares(p) || !slices.ContainsFunc(volumes, func(v cluster.Volume) bool { return w.knownOn(v, p.Node) }) {
		return
	}
	policy, now := w.drainPolicy(), w.Now()
	limit := t.at.Add(t.pod.Grace + policy.DetachTimeout - turnSlack - w.looksLate(p.Node))
	switch {
	case t.detached.IsZero() && now.Before(limit):
		w.violate("P22", "pod %s was told to terminate while the volumes of %s were still attached to node %s", p.Name, t.pod.Name, p.Node)
	case w.leftInTime(t, limit) && !t.moved && now.Before(t.detached.Add(policy.ReattachTimeout-turnSlack)):
		w.violate("P22", "pod %s was told to terminate %s after the volumes of %s were detached from node %s, and they are attached nowhere", p.Name, now.Sub(t.detached), t.pod.Name, p.Node)
	}
}

// shares reports whether another pod of its node uses volumes of p, such as the one before it that
// still has its grace, or had it when an order that arrives now was given: no turn waits for these.
func (w *p22Volumes) shares(p cluster.Pod) bool {
	lately := w.Now().Add(-w.o.Faults.CacheLag - inFlight)
	return slices.ContainsFunc(w.apps.On(p.Node), func(other *drain.Pod) bool {
		uses := !other.Finished || lately.Before(other.GraceEnds)
		return other.UID != p.UID && uses && slices.ContainsFunc(other.Claims, func(c string) bool { return slices.Contains(p.Claims, c) })
	})
}

// usedAgain reports whether another pod of a turn's node uses the volumes of the turn: it has come
// back. It may also have finished since, on a node that was found drained.
func (w *p22Volumes) usedAgain(t *volumeTurn) bool {
	return slices.ContainsFunc(w.apps.On(t.node), func(p *drain.Pod) bool {
		back := !p.Finished || p.CreatedAt.After(t.at)
		return p.UID != t.pod.UID && back && p.GraceEnds.IsZero() && slices.Equal(p.Claims, t.pod.Claims)
	})
}

// leftInTime reports whether a drain has to know that the volumes of a turn had left before the
// limit: it has looked since, and before the limit.
func (w *p22Volumes) leftInTime(t *volumeTurn, limit time.Time) bool {
	seen := t.noted || w.Now().Before(limit) || limit.Sub(t.detached) >= w.blind()
	return !t.detached.IsZero() && t.detached.Before(limit) && seen
}

// blind is how long a drain may not be looked at: caches lag, a manager has to start again, a fleet
// is frozen for a while.
func (w *p22Volumes) blind() time.Duration {
	return w.o.Faults.CacheLag + w.o.Faults.Restart + w.o.Faults.ControlOutages.For + w.o.Faults.TargetOutages.For + 4*inFlight
}

// knownOn reports whether a volume has been on a node for so long that no order given now can come
// from before.
func (w *p22Volumes) knownOn(v cluster.Volume, node string) bool {
	return v.On(node) && w.Now().Sub(v.Since) > w.o.Faults.CacheLag+inFlight
}

// turnSlack is what times of a turn may differ by: they are stored in whole
// seconds, and from when an order was answered.
const turnSlack = 15 * time.Second

// checkLeft: no VM is deleted while the volumes of the last pod are attached to it, unless by force
// or when they had their time (P22), or if a pod used them at the drain's end that is left alone.
func (w *p22Volumes) checkLeft(node string) {
	t := w.binding(node)
	if t == nil || !w.acting || !t.detached.IsZero() || w.usedAgain(t) || t.held {
		return
	}
	if limit := t.at.Add(t.pod.Grace + w.drainPolicy().DetachTimeout - turnSlack); w.Now().Before(limit) {
		w.violate("P22", "the VM of machine %s went with the volumes of pod %s attached to it", node, t.pod.Name)
	}
}

// checkDetached: a volume is only taken off a node by force. Nothing else knows that nothing writes
// to it any more (P22).
func (w *p22Volumes) checkDetached(v cluster.Volume) {
	if w.belated {
		return
	}
	for _, m := range w.machines.all() {
		if known := w.lives[m.UID]; m.Name == v.At.Node && !w.forceDue(m) && (known == nil || !known.forced) {
			w.violate("P22", "volume %s was detached from node %s before a forced detach was due", v.Name, v.At.Node)
		}
	}
}

// looksLate is how much later than by a change a pass over a node's drain may come. A pool is
// looked at by the clock, and its group before its nodes.
func (w *p22Volumes) looksLate(node string) time.Duration {
	if n, err := w.nodes.Get(context.Background(), object.Key{Name: node}); err == nil {
		if _, i := w.groups.Instance(n.ProviderID); i != nil {
			return w.poolPolicy().Poll + 2*w.o.Faults.CallTime + inFlight
		}
	}
	return 0
}
