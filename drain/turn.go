package drain

import (
	"slices"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Pods with volumes leave one at a time, so that an application that needs them is down for a short
// time in few places. A turn begins when the drain tells a pod to go. The record says which one,
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
	if plan, late := d.arrived(t); late {
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

// arrived records volumes that came after the pod had been told to go. A pod may be told to go before
// all of its volumes are attached. It may finish before the drain sees the last of them: its object
// then still says whose they are.
func (d *decider) arrived(t *machine.DrainTurn) (write Plan, late bool) {
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

// turn waits for the volumes of a turn to leave here, and to arrive elsewhere if another pod waits
// for its turn.
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
