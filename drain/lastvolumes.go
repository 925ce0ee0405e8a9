package drain

import (
	"cmp"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
)

// When a VM goes with a volume attached, the cluster attaches that volume nowhere else for minutes.
// So a drain does not end while anything is attached to the node that may still come off, regardless of
// its user: pods that went before the drain began, pods that shared it, or a pod that an earlier
// process told to go and did not record. All of them together have the time for one detachment, from
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

// heldBy reports whether a pod other than that one holds a volume here, and was not told to go. As
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
