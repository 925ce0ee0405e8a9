package drain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Pods with volumes are evicted one at a time, so that few pods of an application are down at the same time,
// and each for a short time. A turn begins when the drain tells a pod to terminate. The record names the pod and
// its volumes, because the pod will be gone before its volumes are detached.

// surveyVolumes marks the pods that have volumes which the drain waits for.
func (d *decider) surveyVolumes() {
	for v, i := range d.volumeUsers() {
		s := &d.statuses[i]
		if s.followed || s.state != evictable && s.state != terminating || !d.follows(v) {
			continue
		}
		s.followed = true
		if s.state == evictable {
			d.queued++
		}
	}
}

// volumeUsers counts for each volume how many pods of the node use it, and returns the place of one such pod.
func (d *decider) volumeUsers() (one []int32) {
	for i, p := range d.o.Pods {
		if p == nil || len(p.Claims) == 0 || d.statuses[i].state == notAwaited || p.Finished {
			continue
		}
		if one == nil {
			both := make([]int32, 2*len(d.o.Volumes))
			d.users, one = both[:len(d.o.Volumes)], both[len(d.o.Volumes):]
		}
		for v, volume := range d.o.Volumes {
			if volume != nil && claims(p, volume) {
				d.users[v]++
				one[v] = int32(i)
			}
		}
	}
	return one
}

func claims(p *Pod, v *Volume) bool {
	if v.Claim.Namespace != p.Namespace || v.Claim.Name == "" {
		return false
	}
	for _, claim := range p.Claims {
		if claim == v.Claim.Name {
			return true
		}
	}
	return false
}

// follows reports whether the drain waits for a volume after its pod is gone: a driver has attached it to this
// node, and only one pod of the node uses it.
func (d *decider) follows(i int) bool {
	v := d.o.Volumes[i]
	return d.usersOf(i) == 1 && d.detachable(v)
}

// leftBehind reports whether the drain waits for a volume of a pod that has finished: a driver has attached it to
// this node, and no pod of the node still uses it.
func (d *decider) leftBehind(i int) bool {
	return d.usersOf(i) == 0 && d.detachable(d.o.Volumes[i])
}

func (d *decider) detachable(v *Volume) bool {
	return !v.Local && d.attachedHere(d.volumeID(v)) && d.known(v)
}

// turnWaitsFor reports whether the turn of a pod includes a volume.
func (d *decider) turnWaitsFor(p *Pod, i int) bool {
	switch v := d.o.Volumes[i]; {
	case v == nil || !claims(p, v):
		return false
	case p.Finished:
		return d.leftBehind(i)
	}
	return d.follows(i)
}

// usersOf returns how many pods of the node use a volume. Pods that have finished do not count.
func (d *decider) usersOf(i int) int32 {
	if d.users == nil { // no pod here uses any
		return 0
	}
	return d.users[i]
}

func (d *decider) known(v *Volume) bool {
	if d.o.Known == nil {
		return true
	}
	tail := tailOf(v.Handle)
	for _, id := range d.o.Known {
		if sameHandle(id, tail) {
			return true
		}
	}
	return false
}

// volumeID returns the ID of a volume in a turn: its name, as attachments have it, or, if the cluster has no
// attachments, its handle, as the node's status has it.
func (d *decider) volumeID(v *Volume) string {
	if d.o.Attachments != nil {
		return v.Name
	}
	return v.Handle
}

// attachedHere reports whether a volume is attached to this node, is being attached, or is being detached. If
// neither attachments nor the node's status are known, a volume counts as attached while a pod of the node uses
// it.
func (d *decider) attachedHere(id string) bool {
	switch {
	case d.o.Attachments != nil:
		for _, a := range d.o.Attachments {
			if a != nil && a.Volume == id && a.Node == d.o.Node.Name {
				return true
			}
		}
		return false
	case d.o.Attached != nil:
		tail := tailOf(id)
		for _, have := range d.o.Attached {
			if sameHandle(have, tail) {
				return true
			}
		}
		return false
	}
	for i, v := range d.o.Volumes {
		if v != nil && d.usersOf(i) > 0 && v.Handle == id {
			return true
		}
	}
	return false
}

func (d *decider) attachedElsewhere(id string) bool {
	for _, a := range d.o.Attachments {
		if a != nil && a.Volume == id && a.Node != d.o.Node.Name && a.Attached {
			return true
		}
	}
	return false
}

// followTurn decides about the last pod with volumes that was told to terminate. write: the record must be
// changed first. free: the next pod may be evicted. volumeWait: the volume that the drain waits for, or no longer
// waits for.
func (d *decider) followTurn() (write Plan, free bool, volumeWait decision.Why) {
	if d.pastDeadline {
		return Plan{}, true, decision.Why{}
	}
	t := &d.rec.Turn
	if plan, found := d.addLateVolumes(t); found {
		return plan, false, decision.Why{}
	}
	free = true
	if t.UID != "" && !d.ahead(t.Since) && !d.returned(t) {
		write, free, volumeWait = d.turn(t)
		if write.busy() || !free && volumeWait.Reason == reasonDetaching {
			return write, free, volumeWait
		}
	}
	if lost := d.unrecordedTurn(t); lost != nil {
		d.assumesNoTurn = true
		return d.recordTurn(*lost), false, volumeWait
	}
	p, others := d.unrecordedTerminating(t)
	if p != nil {
		return d.recordTurn(d.newTurn(p, d.terminationTime(p))), false, volumeWait
	}
	return Plan{}, free && !others, volumeWait
}

// addLateVolumes adds volumes to the record that were attached after their pod was told to terminate. The pod may
// finish before the drain sees the last of them; its object still names their claims.
func (d *decider) addLateVolumes(t *machine.DrainTurn) (write Plan, found bool) {
	if t.UID == "" || d.ahead(t.Since) || !t.Detached.IsZero() {
		return Plan{}, false
	}
	volumes := t.Volumes
	for _, p := range d.o.Pods {
		if !turnOf(t, p) {
			continue
		}
		for i, v := range d.o.Volumes {
			if d.turnWaitsFor(p, i) && !slices.Contains(volumes, d.volumeID(v)) {
				volumes = append(slices.Clip(volumes), d.volumeID(v))
			}
		}
	}
	if len(volumes) == len(t.Volumes) {
		return Plan{}, false
	}
	rec := d.rec.Clone()
	rec.Turn.Volumes = slices.Sorted(slices.Values(volumes))
	return d.writeRecord(rec, decision.Why{Reason: reasonTurn, Object: t.Pod, Have: int64(len(volumes))}), true
}

// returned reports whether the pod of a turn is evictable again, so that its eviction had no effect.
func (d *decider) returned(t *machine.DrainTurn) bool {
	for i, p := range d.o.Pods {
		if turnOf(t, p) {
			return d.statuses[i].state == evictable
		}
	}
	return false
}

// turn waits until the volumes of the evicted pod are detached here and, if more pods with volumes are
// queued, attached elsewhere.
func (d *decider) turn(t *machine.DrainTurn) (write Plan, free bool, volumeWait decision.Why) {
	why := decision.Why{Object: t.Pod, Have: int64(len(t.Volumes))}
	if t.Detached.IsZero() {
		limit := t.Since.Add(max(t.Grace, 0)).Add(d.p.DetachTimeout)
		volume, some := d.firstHere(t)
		late := !d.now.Before(limit) // then the turn is over, even if the volume is detached later
		switch why.Name = volume; {
		case some && late:
			why.Reason, why.For = reasonDetachLate, d.now.Sub(limit)
			return Plan{}, true, why
		case late:
			return Plan{}, true, decision.Why{}
		case some:
			d.lookAgain(limit)
			why.Reason, why.For = reasonDetaching, limit.Sub(d.now)
			return Plan{}, false, why
		}
	}
	volume, some := d.firstNotElsewhere(t)
	if d.o.Attachments == nil || !some || d.queued == 0 {
		return Plan{}, true, decision.Why{}
	}
	if t.Detached.IsZero() {
		rec := d.rec.Clone()
		rec.Turn.Detached = d.stamp()
		why.Reason = reasonDetached
		return d.writeRecord(rec, why), false, decision.Why{}
	}
	limit := t.Detached.Add(d.p.ReattachTimeout)
	if !d.now.Before(limit) || d.ahead(t.Detached) {
		return Plan{}, true, decision.Why{}
	}
	d.lookAgain(limit)
	why.Reason, why.Name, why.For = reasonReattaching, volume, limit.Sub(d.now)
	return Plan{}, false, why
}

// firstHere returns a volume of the turn that is still attached to this node, and that no other pod keeps there.
func (d *decider) firstHere(t *machine.DrainTurn) (string, bool) {
	for _, id := range t.Volumes {
		if d.attachedHere(id) && !d.heldBy(id, t.UID) {
			return id, true
		}
	}
	return "", false
}

func (d *decider) firstNotElsewhere(t *machine.DrainTurn) (string, bool) {
	for _, id := range t.Volumes {
		if !d.attachedElsewhere(id) && !d.heldBy(id, t.UID) {
			return id, true
		}
	}
	return "", false
}

func (d *decider) writeRecord(rec *machine.DrainRecord, why decision.Why) Plan {
	changed := d.o.Node.Clone()
	changed.Drain = rec
	return Plan{Write: changed, Why: why}
}

// reportVolumeWait adds to a plan which volume the drain waits for.
func (d *decider) reportVolumeWait(plan *Plan, why decision.Why) {
	if plan.Done && why.Reason != reasonDetachLate {
		return
	}
	if !plan.Done && d.awaited <= 1 {
		plan.Why = why
	}
	entry := Blocked{Pod: why.Object, UID: d.rec.Turn.UID, Why: why}
	at, _ := slices.BinarySearchFunc(plan.Blocked, entry.Pod, func(b Blocked, k object.Key) int {
		return compareKeys(b.Pod.Namespace, b.Pod.Name, k.Namespace, k.Name)
	})
	plan.Blocked = slices.Insert(plan.Blocked, at, entry)
}

// needsRecord reports whether a plan made from a cached node may be wrong because the cache lacks the latest
// turn: that turn's pod may be gone already while its volumes are still attached.
func (d *decider) needsRecord(plan *Plan) bool {
	if !d.o.Cached || d.pastDeadline {
		return false
	}
	return d.assumesNoTurn || plan.Done && d.holdsVolumes()
}

// unrecordedTurn returns the last turn that this process began, if it is not recorded, the record has no later
// turn, and the drain waits for the pod's volumes but no longer for the pod. That happens if the write of the
// record met a conflict, or the answer to the eviction was lost. Nil: there is no such turn.
func (d *decider) unrecordedTurn(t *machine.DrainTurn) *machine.DrainTurn {
	if d.o.Memory == nil || d.o.Memory.Turn.UID == "" {
		return nil
	}
	last := &d.o.Memory.Turn
	switch recorded := t.UID != "" && !d.ahead(t.Since); {
	case t.UID == last.UID || recorded && last.Since.Before(t.Since): // it is recorded, or a later one is
		return nil
	case d.ahead(last.Since) || last.Since.Before(d.rec.Since): // of an earlier drain
		return nil
	}
	_, here := d.firstHere(last)
	if d.awaits(last.UID) || !here && (d.o.Attachments == nil || d.queued == 0) {
		return nil // the drain waits for the pod itself, or for none of its volumes
	}
	return last
}

// awaits reports whether the drain waits for the pod with this UID.
func (d *decider) awaits(uid string) bool {
	for i, p := range d.o.Pods {
		if s := &d.statuses[i]; p != nil && p.UID == uid && s.state != notAwaited && s.state != overdue {
			return true
		}
	}
	return false
}

// unrecordedTerminating returns a pod with volumes that is terminating, or has ended, and whose turn is to be
// recorded. Nil: there is none. The drain or another program has just told it to terminate. Turns are recorded in
// the order in which pods were told to terminate, so that no two turns replace each other endlessly. The pod of
// this process's last turn comes first: for others the drain begins to wait while they terminate, once they are
// the last pods of the node to use a volume. others: some pod with followed volumes is terminating, whether its
// turn is to be recorded or not.
func (d *decider) unrecordedTerminating(t *machine.DrainTurn) (first *Pod, others bool) {
	for i, p := range d.o.Pods {
		if p == nil || turnOf(t, p) {
			continue
		}
		s := &d.statuses[i]
		toRecord := s.ended && d.leavesVolumes(p)
		if s.state == terminating && s.followed {
			others = true
			since := d.terminationTime(p)
			toRecord = !since.IsZero() && (t.UID == "" || d.ahead(t.Since) || !since.Before(t.Since))
		}
		if toRecord && (first == nil || d.recordedBefore(p, first)) {
			first = p
		}
	}
	return first, others
}

// recordedBefore reports whether a's turn is recorded before b's.
func (d *decider) recordedBefore(a, b *Pod) bool {
	if m := d.o.Memory; m != nil && turnOf(&m.Turn, a) != turnOf(&m.Turn, b) {
		return turnOf(&m.Turn, a)
	}
	return goesBefore(a, b)
}

// leavesVolumes reports whether a pod that the drain no longer waits for has volumes that still have time to be
// detached. The turn ends after the same time, so it is not recorded again.
func (d *decider) leavesVolumes(p *Pod) bool {
	if !d.now.Before(d.ended(p).Add(d.p.DetachTimeout)) {
		return false
	}
	for i := range d.o.Volumes {
		if d.turnWaitsFor(p, i) {
			return true
		}
	}
	return false
}

// ended returns when the grace of a pod ends that the drain no longer waits for, in whole seconds, by the clock
// of this process. A pod that had finished before it was told to terminate gets no grace.
func (d *decider) ended(p *Pod) time.Time {
	since := d.o.Memory.terminatingSince(p.UID)
	switch {
	case p.GraceEnds.IsZero():
		return since.Truncate(time.Second)
	case since.IsZero():
		return p.GraceEnds
	}
	return since.Add(p.grace()).Truncate(time.Second)
}

// terminationTime returns when a pod was told to terminate, in whole seconds, by the clock of this process. Zero:
// not known.
func (d *decider) terminationTime(p *Pod) time.Time {
	since := d.o.Memory.terminatingSince(p.UID)
	if since.IsZero() {
		since = p.GraceEnds.Add(-p.grace())
	}
	if since.After(d.now) {
		return time.Time{}
	}
	return since.Truncate(time.Second)
}

// newTurn returns the turn of a pod that was told to terminate at since. Zero: the time is not known. A turn is
// always later than the recorded one.
func (d *decider) newTurn(p *Pod, since time.Time) machine.DrainTurn {
	if since.IsZero() {
		since = d.now
	}
	since = since.Truncate(time.Second)
	grace := p.grace()
	if p.Finished {
		grace = max(d.ended(p).Sub(since), 0)
	}
	last := &d.rec.Turn
	if last.UID != "" && !d.ahead(last.Since) && !since.After(last.Since) {
		since = last.Since.Add(time.Second)
	}
	turn := machine.DrainTurn{Pod: p.Key, UID: p.UID, Since: since, Grace: grace}
	for i, v := range d.o.Volumes {
		if d.turnWaitsFor(p, i) {
			turn.Volumes = append(turn.Volumes, d.volumeID(v))
		}
	}
	slices.Sort(turn.Volumes)
	return turn
}

// recordTurn plans the write that records a turn.
func (d *decider) recordTurn(turn machine.DrainTurn) Plan {
	rec := d.rec.Clone()
	turn.Volumes = slices.Clone(turn.Volumes)
	rec.Turn = turn
	return d.writeRecord(rec, decision.Why{Reason: reasonTurn, Object: turn.Pod, Have: int64(len(turn.Volumes))})
}

// If a VM is deleted while a volume is attached, the cluster can't attach the volume elsewhere for minutes. So a
// drain does not end while any volume is attached to the node that may still be detached, whoever used it: pods
// that were gone before the drain began, pods that shared it, or a pod that an earlier process told to terminate
// and did not record. All these volumes together have Policy.DetachTimeout, from when nothing else was left to
// wait for. Volumes of a recorded turn are left out, because they have had their time.

// lastVolumes returns the wait for such volumes, if the drain has nothing else to wait for, or the write of the
// record before it waits. Both zero: there are none, or their time is over.
func (d *decider) lastVolumes() (write Plan, wait decision.Why) {
	if d.pastDeadline || d.o.Stays {
		return Plan{}, decision.Why{}
	}
	emptied := d.rec.Emptied
	if d.awaited > 0 {
		if !emptied.IsZero() {
			write = d.writeEmptied(time.Time{}, reasonNotEmpty)
		}
		return write, decision.Why{}
	}
	volume, some := d.firstUnfollowed()
	if !some {
		return Plan{}, decision.Why{}
	}
	d.assumesNoTurn = true
	if emptied.IsZero() || d.ahead(emptied) {
		return d.writeEmptied(d.stamp(), reasonEmptied), decision.Why{}
	}
	limit := emptied.Add(d.p.DetachTimeout)
	if !d.now.Before(limit) {
		d.warned = decision.Why{Reason: reasonAttachedLate, Name: volume, For: d.now.Sub(limit)}
		return Plan{}, decision.Why{}
	}
	d.lookAgain(limit)
	return Plan{}, decision.Why{Reason: reasonAttached, Name: volume, For: limit.Sub(d.now)}
}

func (d *decider) writeEmptied(emptied time.Time, reason decision.Reason) Plan {
	rec := d.rec.Clone()
	rec.Emptied = emptied
	return d.writeRecord(rec, decision.Why{Reason: reason, Name: d.o.Node.Name})
}

// firstUnfollowed returns the first volume, by name, that is attached to this node, is not in the recorded turn,
// and may still be detached.
func (d *decider) firstUnfollowed() (first string, some bool) {
	t := &d.rec.Turn
	turn := t.UID != "" && !d.ahead(t.Since)
	for _, id := range d.attached() {
		same := func(followed string) bool { return d.sameVolume(id, followed) }
		if turn && slices.ContainsFunc(t.Volumes, same) || d.heldBy(id, "") || some && first <= id {
			continue
		}
		first, some = id, true
	}
	return first, some
}

// attached returns the volumes that are attached to this node, are being attached, or are being detached: by
// name, as attachments have them, or, if the cluster has no attachments, by the IDs in the node's status.
func (d *decider) attached() []string {
	if d.o.Attachments == nil {
		return d.o.Attached
	}
	var ids []string
	for _, a := range d.o.Attachments {
		if a != nil && a.Node == d.o.Node.Name {
			ids = append(ids, cmp.Or(a.Volume, a.Name))
		}
	}
	return ids
}

// sameVolume reports whether id, from attached, and followed, from volumeID, mean the same volume.
func (d *decider) sameVolume(id, followed string) bool {
	if d.o.Attachments != nil {
		return id == followed
	}
	return sameHandle(id, tailOf(followed))
}

// heldBy reports whether a pod of the node, other than the one with this UID, uses a volume and was not told to
// terminate. While it does, the volume is not detached.
func (d *decider) heldBy(id, uid string) bool {
	return d.holder(id, uid) != nil
}

// holder returns the pod that heldBy looks for. Nil: there is none.
func (d *decider) holder(id, uid string) *Pod {
	same := slices.IndexFunc(d.o.Volumes, func(v *Volume) bool { return v != nil && d.sameVolume(id, d.volumeID(v)) })
	if same < 0 {
		return nil
	}
	for i, p := range d.o.Pods {
		s := &d.statuses[i]
		if p == nil || len(p.Claims) == 0 || p.UID == uid || p.Finished || s.state != ignored && s.state != evictable && s.state != postponed {
			continue
		}
		for _, v := range d.o.Volumes[same:] {
			if v != nil && claims(p, v) && d.sameVolume(id, d.volumeID(v)) {
				return p
			}
		}
	}
	return nil
}

// warnOfHeld warns of the first volume, by name, that is still attached when the drain ends because a pod that
// is left alone uses it.
func (d *decider) warnOfHeld() {
	for _, id := range d.attached() {
		p := d.holder(id, "")
		if p != nil && (d.warned.Reason != reasonAttachedHeld || id < d.warned.Name) {
			d.warned = decision.Why{Reason: reasonAttachedHeld, Name: id, Object: p.Key}
		}
	}
}

// holdsVolumes reports whether any volume may be attached to the node, whoever uses it.
func (d *decider) holdsVolumes() bool {
	return d.o.Attachments == nil && d.o.Attached == nil || len(d.attached()) > 0
}

// Detach decides what to do next about the volumes that are still attached to a node whose pods
// were removed by force. It orders the deletion of each attachment that is not being deleted. It
// ends when no attachment is left, when the node is gone or has none attached, or when
// Policy.DetachTimeout has passed since Observation.Asked. Record each answer in the memory under the
// name of the attachment. If force is no longer due, Detach deletes nothing, and removes the taint
// that would make the cluster delete the attachments.
//
// Only a caller's mistake is an error, as for Decide.
func Detach(o *Observation, p *Policy, now time.Time) (Plan, error) {
	d, err := newDecision(o, p, now)
	if err != nil {
		return Plan{}, err
	}
	end := time.Time{}
	if !o.Asked.IsZero() {
		end = o.Asked.Add(d.p.DetachTimeout)
	}
	late := !end.IsZero() && !now.Before(end)
	d.lookAgain(end)
	switch {
	case !o.Complete && late:
		return Plan{Done: true, Why: decision.Why{Reason: reasonIncomplete}}, nil
	case !o.Complete:
		return Plan{At: d.at, Why: decision.Why{Reason: reasonIncomplete}}, nil
	case o.Node == nil:
		return Plan{Done: true, Why: decision.Why{Reason: reasonNodeGone}}, nil
	case d.unfences() && !o.WriteFailed:
		return d.unfence(), nil
	case o.Attached != nil && len(o.Attached) == 0:
		return Plan{Done: true, Why: decision.Why{Reason: reasonNoneAttached}}, nil
	}
	return d.detach(end, late), nil
}

// detach decides about the attachments of a node. late: the time is over.
func (d *decider) detach(end time.Time, late bool) Plan {
	due, left := d.detachments()
	switch {
	case left == 0:
		return Plan{Done: true, Why: decision.Why{Reason: reasonNoneAttached}}
	case late:
		return Plan{Done: true, Why: decision.Why{Reason: reasonDetachEnded, Have: left, For: d.p.DetachTimeout}}
	case len(due) > 0 && d.o.Forced:
		slices.SortFunc(due, func(a, b DetachOrder) int { return strings.Compare(a.Name, b.Name) })
		return Plan{Detach: due, Why: due[0].Why}
	}
	if name, failed := d.undetached(); failed {
		return Plan{At: d.at, Why: decision.Why{Reason: ReasonDetachFailed, Name: name, Detail: d.o.Memory.answer(name).Message}}
	}
	why := decision.Why{Reason: reasonDetachWait, Have: left}
	if !end.IsZero() {
		why.For = end.Sub(d.now)
	}
	return Plan{At: d.at, Why: why}
}

// undetached returns the first attachment whose deletion was not accepted.
func (d *decider) undetached() (name string, found bool) {
	for _, a := range d.o.Attachments {
		if a == nil || a.Node != d.o.Node.Name || !a.DeletedAt.IsZero() {
			continue
		}
		result := d.o.Memory.answer(a.Name).Result
		if (result == Failed || result == Refused) && (!found || a.Name < name) {
			name, found = a.Name, true
		}
	}
	return name, found
}

// detachments returns the attachments to delete now, and how many are left in total.
func (d *decider) detachments() (due []DetachOrder, left int64) {
	for _, a := range d.o.Attachments {
		if a == nil || a.Node != d.o.Node.Name || a.Name == "" {
			continue
		}
		answer := d.o.Memory.answer(a.Name)
		if answer.Result == NotFound {
			continue
		}
		left++
		if !a.DeletedAt.IsZero() || answer.Result == Accepted {
			continue
		}
		if again := answer.At.Add(d.p.RetryDelete); answer.Result != "" && d.now.Before(again) {
			d.lookAgain(again)
			continue
		}
		due = append(due, DetachOrder{Name: a.Name, Why: decision.Why{Reason: reasonDetach, Name: a.Volume}})
	}
	return due, left
}
