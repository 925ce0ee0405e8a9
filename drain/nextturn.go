package drain

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// unrecorded returns the turn of the pod that this process told to go last, if the record has no
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
// which pods were told to go, so that no two of them replace each other endlessly. The pod that this
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
// by the clock of this process. A pod that had finished before it was told to go gets no grace.
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

// toldAt returns when a pod was told to go, in whole seconds, by the clock of this process. Zero: not
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

// newTurn returns the turn of a pod that was told to go at a time. Zero: the time is not known. A
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
