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

// Pods with volumes leave one at a time, so that an application that needs them is down for a short
// time in few places. A turn begins when the drain tells a pod to terminate. The record says which one,
// because the pod will be gone before its volumes are.

// surveyVolumes finds the pods whose volumes are followed.
func (d *decider) surveyVolumes() {
	for v, i := range d.volumeUsers() {
		s := &d.standings[i]
		if s.followed || s.state != staying && s.state != leaving || !d.follows(v) {
			continue
		}
		s.followed = true
		if s.state == staying {
			d.serial++
		}
	}
}

// volumeUsers counts for each volume how many pods here use it, and returns the place of one of
// those.
func (d *decider) volumeUsers() (one []int32) {
	for i, p := range d.o.Pods {
		if p == nil || len(p.Claims) == 0 || d.standings[i].state == over || p.Finished {
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

// follows reports whether the drain waits for a volume: a driver has attached it here, and only one
// pod of this node uses it.
func (d *decider) follows(i int) bool {
	v := d.o.Volumes[i]
	return d.usersOf(i) == 1 && d.detachable(v)
}

// leftBehind reports whether the drain waits for a volume of a pod that has finished: a driver has
// attached it here, and no pod of this node still uses it.
func (d *decider) leftBehind(i int) bool {
	return d.usersOf(i) == 0 && d.detachable(d.o.Volumes[i])
}

func (d *decider) detachable(v *Volume) bool {
	return !v.Local && d.attachedHere(d.volumeID(v)) && d.known(v)
}

// takes reports whether the turn of a pod waits for a volume.
func (d *decider) takes(p *Pod, i int) bool {
	switch v := d.o.Volumes[i]; {
	case v == nil || !claims(p, v):
		return false
	case p.Finished:
		return d.leftBehind(i)
	}
	return d.follows(i)
}

// usersOf returns how many pods here use a volume. Pods that have finished use none.
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

// volumeID returns the name by which the drain follows a volume: the one in attachments or, without
// attachments, its handle, which the node knows.
func (d *decider) volumeID(v *Volume) string {
	if d.o.Attachments != nil {
		return v.Name
	}
	return v.Handle
}

// attachedHere reports whether a volume is attached to this node, or about to be, or not yet quite
// detached. If neither attachments nor the node say so, a volume counts as attached as long as its
// pod is there.
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

// followTurn handles the pod with volumes that went last. write: the record must be changed first.
// free: the next pod may go. stuck: the volumes that the drain waits for, or has given up on.
func (d *decider) followTurn() (write Plan, free bool, stuck decision.Why) {
	if d.past {
		return Plan{}, true, decision.Why{}
	}
	t := &d.rec.Turn
	if plan, found := d.arrived(t); found {
		return plan, false, decision.Why{}
	}
	free = true
	if t.UID != "" && !d.ahead(t.Since) && !d.returned(t) {
		write, free, stuck = d.turn(t)
		if write.busy() || !free && stuck.Reason == reasonDetaching {
			return write, free, stuck
		}
	}
	if lost := d.unrecorded(t); lost != nil {
		d.taken = true
		return d.begins(*lost), false, stuck
	}
	p, others := d.goingNow(t)
	if p != nil {
		return d.begins(d.newTurn(p, d.toldAt(p))), false, stuck
	}
	return Plan{}, free && !others, stuck
}

// arrived records volumes that came after the pod had been told to terminate. A pod may be told to terminate
// before all of its volumes are attached. It may finish before the drain sees the last of them: its object then
// still says whose they are.
func (d *decider) arrived(t *machine.DrainTurn) (write Plan, found bool) {
	if t.UID == "" || d.ahead(t.Since) || !t.Detached.IsZero() {
		return Plan{}, false
	}
	volumes := t.Volumes
	for _, p := range d.o.Pods {
		if !turnOf(t, p) {
			continue
		}
		for i, v := range d.o.Volumes {
			if d.takes(p, i) && !slices.Contains(volumes, d.volumeID(v)) {
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

// returned reports whether the pod of a turn is again in the state of a pod that was never told to
// go.
func (d *decider) returned(t *machine.DrainTurn) bool {
	for i, p := range d.o.Pods {
		if turnOf(t, p) {
			return d.standings[i].state == staying
		}
	}
	return false
}

// turn waits until the volumes of the evicted pod are detached here and, if more pods with volumes are
// queued, attached elsewhere.
func (d *decider) turn(t *machine.DrainTurn) (write Plan, free bool, stuck decision.Why) {
	why := decision.Why{Object: t.Pod, Have: int64(len(t.Volumes))}
	if t.Detached.IsZero() {
		limit := t.Since.Add(max(t.Grace, 0)).Add(d.p.DetachTimeout)
		volume, some := d.firstHere(t)
		late := !d.now.Before(limit) // and over, even if it goes later
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
	if d.o.Attachments == nil || !some || d.serial == 0 {
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

// firstHere returns a volume of the turn that is still attached here, and can go.
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

// noteStuck adds what is known of volumes to a plan that waits.
func (d *decider) noteStuck(plan *Plan, why decision.Why) {
	if plan.Done && why.Reason != reasonDetachLate {
		return
	}
	if !plan.Done && d.live <= 1 {
		plan.Why = why
	}
	entry := Blocked{Pod: why.Object, UID: d.rec.Turn.UID, Why: why}
	at, _ := slices.BinarySearchFunc(plan.Blocked, entry.Pod, func(b Blocked, k object.Key) int {
		return compareKeys(b.Pod.Namespace, b.Pod.Name, k.Namespace, k.Name)
	})
	plan.Blocked = slices.Insert(plan.Blocked, at, entry)
}

// needsRecord reports whether a plan made from a cached node depends on there being no recorded
// turn. The last turn's pod may be gone from the node, and its volumes not, before the cache knows
// whose they are.
func (d *decider) needsRecord(plan *Plan) bool {
	if !d.o.Cached || d.past {
		return false
	}
	return d.taken || plan.Done && d.holdsVolumes()
}

// unrecorded returns the turn of the pod that this process told to terminate last, if the record has no
// later turn, the pod is no longer waited for, and its volumes are. That happens if the write of
// the record met a conflict, or the answer to the eviction was lost. Nil: there is none.
func (d *decider) unrecorded(t *machine.DrainTurn) *machine.DrainTurn {
	if d.o.Memory == nil || d.o.Memory.Turn.UID == "" {
		return nil
	}
	last := &d.o.Memory.Turn
	switch recorded := t.UID != "" && !d.ahead(t.Since); {
	case t.UID == last.UID || recorded && last.Since.Before(t.Since): // what follows a recorded turn is later
		return nil
	case d.ahead(last.Since) || last.Since.Before(d.rec.Since): // of an earlier drain
		return nil
	}
	_, here := d.firstHere(last)
	if d.awaits(last.UID) || !here && (d.o.Attachments == nil || d.serial == 0) {
		return nil // the drain waits for none of its volumes, or waits for the pod itself
	}
	return last
}

// awaits reports whether a pod is here and not done with.
func (d *decider) awaits(uid string) bool {
	for i, p := range d.o.Pods {
		if s := &d.standings[i]; p != nil && p.UID == uid && s.state != over && s.state != overdue {
			return true
		}
	}
	return false
}

// goingNow returns a pod with volumes that is going, or should be gone, and whose turn is not
// recorded. The drain or another program has just told it to go. Turns are recorded in the order in
// which pods were told to terminate, so that no two of them replace each other endlessly. The pod that this
// process gave its turn comes first: others begin to be followed while they go, when they are the last
// here to use a volume. others is true if any pod is going, whether its turn is to be recorded or not.
func (d *decider) goingNow(t *machine.DrainTurn) (first *Pod, others bool) {
	for i, p := range d.o.Pods {
		if p == nil || turnOf(t, p) {
			continue
		}
		s := &d.standings[i]
		begins := s.ended && d.leaves(p)
		if s.state == leaving && s.followed {
			others = true
			since := d.toldAt(p)
			begins = !since.IsZero() && (t.UID == "" || d.ahead(t.Since) || !since.Before(t.Since))
		}
		if begins && (first == nil || d.recordedBefore(p, first)) {
			first = p
		}
	}
	return first, others
}

// recordedBefore compares pods whose turns are to be recorded.
func (d *decider) recordedBefore(a, b *Pod) bool {
	if m := d.o.Memory; m != nil && turnOf(&m.Turn, a) != turnOf(&m.Turn, b) {
		return turnOf(&m.Turn, a)
	}
	return goesBefore(a, b)
}

// leaves reports whether a pod that the drain no longer waits for has volumes that still have time
// to be detached. Its turn has the same limit, so that it is recorded once.
func (d *decider) leaves(p *Pod) bool {
	if !d.now.Before(d.ended(p).Add(d.p.DetachTimeout)) {
		return false
	}
	for i := range d.o.Volumes {
		if d.takes(p, i) {
			return true
		}
	}
	return false
}

// ended returns when the grace of a pod that the drain no longer waits for ends, in whole seconds,
// by the clock of this process. A pod that had finished before it was told to terminate gets no grace.
func (d *decider) ended(p *Pod) time.Time {
	told := d.o.Memory.told(p.UID)
	switch {
	case p.GraceEnds.IsZero():
		return told.Truncate(time.Second)
	case told.IsZero():
		return p.GraceEnds
	}
	return told.Add(p.grace()).Truncate(time.Second)
}

// toldAt returns when a pod was told to terminate, in whole seconds, by the clock of this process. Zero: not
// known.
func (d *decider) toldAt(p *Pod) time.Time {
	since := d.o.Memory.told(p.UID)
	if since.IsZero() {
		since = p.GraceEnds.Add(-p.grace())
	}
	if since.After(d.now) {
		return time.Time{}
	}
	return since.Truncate(time.Second)
}

// newTurn returns the turn of a pod that was told to terminate at a time. Zero: the time is not known. A
// turn is later than the one before it.
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
		if d.takes(p, i) {
			turn.Volumes = append(turn.Volumes, d.volumeID(v))
		}
	}
	slices.Sort(turn.Volumes)
	return turn
}

// begins records a turn.
func (d *decider) begins(turn machine.DrainTurn) Plan {
	rec := d.rec.Clone()
	turn.Volumes = slices.Clone(turn.Volumes)
	rec.Turn = turn
	return d.writeRecord(rec, decision.Why{Reason: reasonTurn, Object: turn.Pod, Have: int64(len(turn.Volumes))})
}

// When a VM goes with a volume attached, the cluster attaches that volume nowhere else for minutes.
// So a drain does not end while anything is attached to the node that may still come off, regardless of
// its user: pods that went before the drain began, pods that shared it, or a pod that an earlier
// process told to terminate and did not record. All of them together have the time for one detachment, from
// when nothing else was left to wait for. The volumes of a recorded turn have had theirs.

// lastVolumes returns why a drain that has nothing else to wait for is not over, or what is to be
// recorded before it waits. Both zero: nothing may still come off, or its time is over.
func (d *decider) lastVolumes() (write Plan, wait decision.Why) {
	if d.past || d.o.Stays {
		return Plan{}, decision.Why{}
	}
	emptied := d.rec.Emptied
	if d.live > 0 {
		if !emptied.IsZero() {
			write = d.writeEmptied(time.Time{}, reasonNotEmpty)
		}
		return write, decision.Why{}
	}
	volume, some := d.unfollowed()
	if !some {
		return Plan{}, decision.Why{}
	}
	d.taken = true
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

// unfollowed returns the first volume, by name, that is attached here, is of no turn that is
// recorded, and may still come off.
func (d *decider) unfollowed() (first string, some bool) {
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

// attached returns what is attached to this node, or about to be, or not yet quite detached, by the
// names of attachments or, without attachments, by those of the node.
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

// sameVolume reports whether what is attached is a volume that the drain follows by that name.
func (d *decider) sameVolume(id, followed string) bool {
	if d.o.Attachments != nil {
		return id == followed
	}
	return sameHandle(id, tailOf(followed))
}

// heldBy reports whether a pod other than that one holds a volume here, and was not told to terminate. As
// long as it does, the volume does not come off.
func (d *decider) heldBy(id, uid string) bool {
	return d.holder(id, uid) != nil
}

// holder returns the pod that holds a volume here, as heldBy says. Nil: there is none.
func (d *decider) holder(id, uid string) *Pod {
	same := slices.IndexFunc(d.o.Volumes, func(v *Volume) bool { return v != nil && d.sameVolume(id, d.volumeID(v)) })
	if same < 0 {
		return nil
	}
	for i, p := range d.o.Pods {
		s := &d.standings[i]
		if p == nil || len(p.Claims) == 0 || p.UID == uid || p.Finished || s.state != alone && s.state != staying && s.state != holding {
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

// warnOfHeld warns of the first volume, by name, that is attached here when the drain ends, because
// a pod that is left alone holds it.
func (d *decider) warnOfHeld() {
	for _, id := range d.attached() {
		p := d.holder(id, "")
		if p != nil && (d.warned.Reason != reasonAttachedHeld || id < d.warned.Name) {
			d.warned = decision.Why{Reason: reasonAttachedHeld, Name: id, Object: p.Key}
		}
	}
}

// holdsVolumes reports whether any volume may be attached to the node, for any user.
func (d *decider) holdsVolumes() bool {
	return d.o.Attachments == nil && d.o.Attached == nil || len(d.attached()) > 0
}

// Detach decides what to do next about the volumes that are still attached to a node whose pods
// were removed by force. It orders the deletion of each attachment that is not being deleted. It
// ends when no attachment is left, when the node is gone or has none attached, or when
// Policy.DetachTimeout has passed since Observation.Asked. The memory keeps each answer under the
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
		end = o.Asked.Add(p.DetachTimeout)
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

// detach decides about a node that is known, and what is attached to it.
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

// detachments returns the attachments to delete now, and the number of all that are left.
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
