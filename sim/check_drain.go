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

// p22 checks drains (P21, P22, P50, P53): pods leave a node before its VM is deleted, by eviction, each at
// its turn. The turns of pods with volumes are checked by p22Volumes.
type p22 struct {
	*p22Volumes
	attempts      map[string]attempt   // the last attempt to evict each pod, by UID of the pod
	deleting      map[string]time.Time // when the last DeleteMachine was begun, by name of the machine
	drained       map[string]time.Time // when the drain of a deletion ended, by UID of the machine
	earlierDrains map[string]time.Time // when the drain for an update or a preservation times out, by UID of the machine
	by            *process             // the process that made the last attempt
	number        int                  // the number of that process
}

// attempt is an attempt to evict a pod, by the process with that number.
type attempt struct {
	at time.Time
	by int
}

func newP22(turns *p22Volumes) *p22 {
	return &p22{p22Volumes: turns, attempts: map[string]attempt{}, deleting: map[string]time.Time{}, drained: map[string]time.Time{}, earlierDrains: map[string]time.Time{}}
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
	case callBegun:
		if e.call.Method == codes.DeleteMachine {
			w.deleting[e.call.Object.Name] = w.Now()
		}
	case stored[*machine.Machine]:
		if e.now != nil {
			w.noteDrainEnd(e.now)
		}
	case vmGone:
		if !w.isSecondVM(e) {
			w.checkDrained(e.node)
		}
	case updateAwaited:
		if running := w.podsStaying(e.node); running > 0 {
			w.violate("P22", "node %s is ready for its update with %d pods on it", e.node, running)
		}
	}
}

// checkDrained checks that no VM is deleted while pods run on its node, or are in their grace period,
// unless by force. It ignores late calls of dead processes: these may not have known the node.
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
		if terminating := w.podsInGrace(name, w.drained[m.UID]); terminating > 0 {
			w.violate("P50", "the VM of machine %s went with %d pods on it in their grace", name, terminating)
		}
	}
}

// drainRule returns the rule that is broken if a machine's VM is deleted with pods on its node: P53 if
// the node registered after the machine's deletion had begun, else P22.
func (w *p22) drainRule(m *machine.Machine) string {
	if w.joinedAt(m).After(m.DeletedAt) {
		return "P53"
	}
	return "P22"
}

// unseenBy reports whether a machine's node registered during its deletion, and so late that the manager
// could not see the node before it called DeleteMachine.
func (w *p22) unseenBy(m *machine.Machine) bool {
	joined := w.joinedAt(m)
	return joined.After(m.DeletedAt) && joined.Add(inFlight).After(w.deleting[m.Name])
}

// joinedAt returns when the node of a machine that is being deleted registered, or zero if there is none.
func (w *p22) joinedAt(m *machine.Machine) time.Time {
	n, err := w.nodes.Get(context.Background(), object.Key{Name: m.Name})
	if err != nil || !m.Deleted() {
		return time.Time{}
	}
	return n.CreatedAt
}

// noteDrainEnd notes when the drain of a deletion has ended, or that it has begun again. Before the
// deletion, it notes the timeout of another drain.
func (w *p22) noteDrainEnd(m *machine.Machine) {
	if !m.Deleted() {
		delete(w.earlierDrains, m.UID)
		if m.Status.Phase == machine.PhaseInPlaceUpdating || !m.Status.Preservation.Since.IsZero() {
			since, limit := w.drainTime(m)
			w.earlierDrains[m.UID] = since.Add(limit)
		}
	}
	stage, ended := m.Status.DeletionStage(), w.drained[m.UID]
	trackSince(&ended, w.Now(), stage == machine.StageDeleteVolumeAttachments || stage == machine.StageInitiateVMDeletion)
	if t := w.turns[m.Name]; t != nil && w.drained[m.UID].IsZero() && !ended.IsZero() {
		t.held = w.usedAgain(t)
	}
	w.drained[m.UID] = ended
}

// podsInGrace counts the pods of a node that are in their grace period, by the cluster's clock. It leaves
// out pods that were told to terminate before the manager's clock jumped, and pods that were bound in
// spite of the cordon and told to terminate after the drain had ended: nothing waits for these.
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

// checkPodDeleted checks that pods are only evicted, and not deleted, until a drain may use force or
// reaches its timeout (P22).
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
		forced := w.forceDue(m) || known != nil && known.forced // even if the manager could not record it
		due := w.earlierDrains[m.UID]
		if m.Deleted() && w.underWay(m.DeletedAt) && !due.IsZero() && !w.managerNow().Before(due.Add(-inFlight)) {
			continue // an order of the drain before the deletion
		}
		if took := w.managerNow().Sub(since); !forced && took < limit-inFlight {
			w.violate("P22", "pod %s was deleted %s after the drain of node %s had begun, and not evicted", name, took, node)
		}
	}
}

// checkAttempt checks that after a refused eviction, a pod is not tried again too soon, also not by
// another process (P22), nor too late (P21). The latency of the orders is allowed for. If the node was
// deleted and has registered again, its drain begins anew.
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
	} else if last.by == w.number && apart > forgottenAfter+w.hangTime() && !w.waitsForTurn(p, last.at) && w.faults[ClockJump] == 0 && w.drainsSince(p.Node, last.at) && !w.heldUpSince(p.Node, last.at) {
		w.violate("P21", "eviction of pod %s was refused, and not retried for %s", p.Name, apart)
	}
}

// forgottenAfter is the longest time between two attempts to evict a waiting pod, even if the cluster
// refuses writes and retries have become rare.
const forgottenAfter = 20 * time.Minute

// hangTime returns for how long a call that hangs may delay the next pass over an object, which comes after
// the caller has stopped waiting and again after the call has returned.
func (w *World) hangTime() time.Duration {
	if w.faults[CallHung] == 0 {
		return 0
	}
	return 2 * (w.o.Manager.Tuning.CallTimeout + w.o.Faults.HangFor)
}

// drainsSince reports whether the present drain of a node began before the time then.
func (w *p22) drainsSince(node string, then time.Time) bool {
	n, err := w.nodes.Get(context.Background(), object.Key{Name: node})
	return err == nil && n.Drain != nil && n.Drain.Since.Before(w.managerTime(then))
}

// waitsForTurn reports whether a pod with volumes has had to wait for another pod of its node since then,
// because pods with volumes leave a node one at a time. The recorded turn may have begun earlier: a pod
// with the same volumes may have come back, and may have left since.
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

// heldUpSince reports whether something has delayed the drain of a node since the time then: an outage, a
// pause, or for a pool's node a provider that does not answer about its group. It is also true if the
// machine's deletion has begun since, because that has a drain of its own.
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
	volumes  []cluster.Volume // its volumes, as they were last seen
	detached time.Time        // when the last volume was detached from the node, or zero
	moved    bool             // at some time all volumes were attached to other nodes
	noted    bool             // the drain has recorded that the volumes are detached
	recorded bool             // the drain has recorded the turn
	late     time.Time        // when a late call of a dead process recorded it, or zero
	held     bool             // another pod of the node used the volumes when the drain ended
}

// volumeMoved notes where a volume is now, if it belongs to the turn.
func (t *volumeTurn) volumeMoved(moved cluster.Volume, now time.Time) {
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

// p22Volumes: pods with volumes leave a node one at a time, and volumes are not detached by force before
// that is due (P22).
type p22Volumes struct {
	*World
	turns map[string]*volumeTurn // the last pod with volumes that was told to terminate, by node
}

func newP22Volumes(w *World) *p22Volumes { return &p22Volumes{w, map[string]*volumeTurn{}} }

func (w *p22Volumes) see(e event) {
	switch e := e.(type) {
	case stored[*machine.Node]:
		if e.now != nil {
			w.noteTurn(e.now)
		}
	case cluster.PodEvicted:
		w.checkTurn(e.Pod, e.Volumes)
		w.beginTurn(e.Pod, e.Volumes)
	case cluster.VolumeMoved:
		for _, t := range w.turns {
			t.volumeMoved(e.Volume, w.Now())
		}
	case cluster.DetachOrdered:
		w.checkDetached(e.Volume)
	case vmGone:
		if !w.isSecondVM(e) {
			w.checkLeft(e.node)
		}
	}
}

// isSecondVM reports whether a VM was not that of the machine with its name, although it had registered
// the node. Such a VM is deleted as an orphan, and orphans are not drained.
func (w *p22Volumes) isSecondVM(e vmGone) bool {
	return slices.ContainsFunc(w.machines.all(), func(m *machine.Machine) bool {
		return m.Name == e.node && m.Spec.ProviderID != "" && m.Spec.ProviderID != e.id
	})
}

// beginTurn records that a pod was told to terminate, if volumes of it are on its node.
func (w *p22Volumes) beginTurn(p cluster.Pod, volumes []cluster.Volume) {
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

// noteTurn notes that the drain has recorded the turn on the node.
func (w *p22Volumes) noteTurn(n *machine.Node) {
	t := w.turns[n.Name]
	if t == nil || t.recorded || n.Drain == nil || n.Drain.Turn.UID != t.pod.UID {
		return
	}
	t.recorded = true
	if w.belated {
		t.late = w.Now()
	}
}

// bindingTurn returns the turn that the drain of a node has recorded. It returns nil if the next pod with
// volumes need not wait for it: force or the end of the drain is due, or the manager may not know the
// turn, because a late call of a dead process has recorded it just now.
func (w *p22Volumes) bindingTurn(node string) *volumeTurn {
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

// drainEnds reports whether the drain of a machine's node may use force, or may have reached its timeout
// by the manager's clock.
func (w *p22Volumes) drainEnds(m *machine.Machine) bool {
	since, limit := w.drainTime(m)
	known := w.lives[m.UID]
	return w.forceDue(m) || known != nil && known.forced || w.managerNow().Sub(since) >= limit-inFlight
}

// drainTime returns when the drain of a machine's node may have begun, and after what time it may delete
// pods.
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

// checkTurn checks that pods with volumes leave a node one at a time: the next one is evicted when the
// volumes of the last one are detached, and attached elsewhere, or when the timeouts for that are over
// (P22).
func (w *p22Volumes) checkTurn(p cluster.Pod, volumes []cluster.Volume) {
	t := w.bindingTurn(p.Node)
	if t == nil || t.pod.UID == p.UID || w.usedAgain(t) || w.sharesVolumes(p) || !slices.ContainsFunc(volumes, func(v cluster.Volume) bool { return w.longOn(v, p.Node) }) {
		return
	}
	policy, now := w.drainPolicy(), w.Now()
	limit := t.at.Add(t.pod.Grace + policy.DetachTimeout - turnSlack - w.pollDelay(p.Node))
	switch {
	case t.detached.IsZero() && now.Before(limit):
		w.violate("P22", "pod %s was told to terminate while the volumes of %s were still attached to node %s", p.Name, t.pod.Name, p.Node)
	case w.leftInTime(t, limit) && !t.moved && now.Before(t.detached.Add(policy.ReattachTimeout-turnSlack)):
		w.violate("P22", "pod %s was told to terminate %s after the volumes of %s were detached from node %s, and they are attached nowhere", p.Name, now.Sub(t.detached), t.pod.Name, p.Node)
	}
}

// sharesVolumes reports whether another pod of the node uses volumes of p: for example its predecessor,
// if that is in its grace period, or was when an order that arrives now was given. No turn waits for
// such volumes.
func (w *p22Volumes) sharesVolumes(p cluster.Pod) bool {
	lately := w.Now().Add(-w.o.Faults.CacheLag - inFlight)
	return slices.ContainsFunc(w.apps.On(p.Node), func(other *drain.Pod) bool {
		uses := !other.Finished || lately.Before(other.GraceEnds)
		return other.UID != p.UID && uses && slices.ContainsFunc(other.Claims, func(c string) bool { return slices.Contains(p.Claims, c) })
	})
}

// usedAgain reports whether another pod of a turn's node uses the volumes of the turn, because it was
// bound to the same node. It may have finished already.
func (w *p22Volumes) usedAgain(t *volumeTurn) bool {
	return slices.ContainsFunc(w.apps.On(t.node), func(p *drain.Pod) bool {
		back := !p.Finished || p.CreatedAt.After(t.at)
		return p.UID != t.pod.UID && back && p.GraceEnds.IsZero() && slices.Equal(p.Claims, t.pod.Claims)
	})
}

// leftInTime reports whether the volumes of a turn were detached before the limit, and the manager must
// know that.
func (w *p22Volumes) leftInTime(t *volumeTurn, limit time.Time) bool {
	seen := t.noted || w.Now().Before(limit) || limit.Sub(t.detached) >= w.blindTime()
	return !t.detached.IsZero() && t.detached.Before(limit) && seen
}

// blindTime returns for how long the manager may not notice a change during a drain: caches lag, it has
// to start again, or the fleet is frozen for a while.
func (w *p22Volumes) blindTime() time.Duration {
	return w.o.Faults.CacheLag + w.o.Faults.Restart + w.o.Faults.ControlOutages.For + w.o.Faults.TargetOutages.For + 4*inFlight
}

// longOn reports whether a volume has been on a node for so long that every order that arrives now was
// given after that.
func (w *p22Volumes) longOn(v cluster.Volume, node string) bool {
	return v.On(node) && w.Now().Sub(v.Since) > w.o.Faults.CacheLag+inFlight
}

// turnSlack is the tolerance for the times of a turn: they are stored in whole seconds, and count from
// the answer to an order.
const turnSlack = 15 * time.Second

// checkLeft checks that no VM is deleted while the volumes of the last pod are attached to it (P22).
// Exceptions are force, the timeout, and volumes that another pod used when the drain ended.
func (w *p22Volumes) checkLeft(node string) {
	t := w.bindingTurn(node)
	if t == nil || !w.acting || !t.detached.IsZero() || w.usedAgain(t) || t.held {
		return
	}
	if limit := t.at.Add(t.pod.Grace + w.drainPolicy().DetachTimeout - turnSlack); w.Now().Before(limit) {
		w.violate("P22", "the VM of machine %s went with the volumes of pod %s attached to it", node, t.pod.Name)
	}
}

// checkDetached checks that the manager detaches a volume only when force is due: before that, a process
// on the node may still write to it (P22).
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

// pollDelay returns how much later the pass over a node's drain may come if the node belongs to a pool:
// pools are polled, and their group is read before their nodes.
func (w *p22Volumes) pollDelay(node string) time.Duration {
	if n, err := w.nodes.Get(context.Background(), object.Key{Name: node}); err == nil {
		if _, i := w.groups.Instance(n.ProviderID); i != nil {
			return w.poolPolicy().Poll + 2*w.o.Faults.CallTime + inFlight
		}
	}
	return 0
}
