package deployment

import (
	"math"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// setWrite is a set that is about to be written. The write carries everything that would need one
// of its own otherwise.
type setWrite struct {
	*summary
	f *family
}

// deletionCandidates returns the names that a set of this size should know: the earlier ones, as
// long as it has more machines than that, and the new ones. A negative size is that of size().
func (f *family) deletionCandidates(size int32) []machineset.DeletionCandidate {
	var out []machineset.DeletionCandidate
	if size < 0 {
		size = f.size()
	}
	if f.actual > size {
		out = append(out, f.aliveDeletionCandidates()...)
	}
	return append(out, f.handing...)
}

// aliveDeletionCandidates returns those that the set has not deleted yet.
func (f *family) aliveDeletionCandidates() []machineset.DeletionCandidate {
	if len(f.set.Instructions.DeletionCandidates) == 0 {
		return nil
	}
	alive := make(map[string]bool, len(f.machines))
	for _, m := range f.machines {
		if m != nil && !m.Deleted() && m.OwnedBy(f.set.UID) {
			alive[m.Name] = true
		}
	}
	var out []machineset.DeletionCandidate
	for _, v := range f.set.Instructions.DeletionCandidates {
		if alive[v.Name] {
			out = append(out, v)
		}
	}
	return out
}

// outdatedDeletionCandidates reports whether a set still knows candidates that it has, although it
// has no surplus left to delete. They must not count for the next reduction.
func (f *family) outdatedDeletionCandidates() bool {
	return f.actual <= f.size() && len(f.aliveDeletionCandidates()) > 0
}

// marks returns the marks that the machines of a set should carry. If there is no new set, because
// the template was changed while paused, they stay as they are: it is not known which machines will
// go.
func (d setWrite) marks() machine.RolloutMarks {
	switch {
	case d.current == nil:
		return d.f.set.Instructions.Marks
	case !d.rolling():
		return machine.RolloutMarks{}
	}
	marks := d.p.RolloutMarks
	marks.Avoid = marks.Avoid && d.f != d.current
	return marks
}

// carry adds to a write of a set the changes that would need a write of their own.
func (d setWrite) carry(changed *machineset.Set) {
	if d.f == d.current {
		changed.Revision = d.revision
	}
	changed.Instructions.Marks = d.marks()
	if d.copiedPause(d.f.set) {
		changed.Annotations = withoutEntry(changed.Annotations, d.p.Keys.Paused)
	}
	changed.Instructions.DeletionCandidates = d.f.deletionCandidates(changed.Spec.Replicas)
	changed.Instructions.SurgeAllowance = d.surgeAllowance()
	changed.Spec.AutoPreserve = d.preserveShare()
}

// surgeAllowance returns how far a set may leave its size to replace machines on request or for
// their age: as far as a rollout may, if there is none. During a rollout, or while the deployment
// or the set is paused, requests wait. They also wait while a machine of the set is being updated
// in place and will move to another set. Otherwise the machine would wait for the set to reach its
// size, and the set for the machine to be available. While the set has been ordered fewer machines
// than the deployment wants, it may miss as many fewer.
func (d setWrite) surgeAllowance() machineset.SurgeAllowance {
	f := d.f
	if f.requested == 0 || f != d.current || f.paused || f.underWay > 0 || d.deployment.Spec.Paused || d.rolling() {
		return machineset.SurgeAllowance{}
	}
	missing := max(0, d.deployment.Spec.Replicas-f.size())
	return machineset.SurgeAllowance{Surge: d.bounds.Surge, Unavailable: max(0, d.bounds.Unavailable-missing)}
}

// handedOver returns a set with other notes, and a size that differs by this many.
func (d setWrite) handedOver(h machineset.Handover, by int, names []string, reason decision.Reason) Order {
	size := max(0, d.f.size()+int32(by))
	changed := d.resized(size)
	changed.Instructions.Handover = h
	return Order{changed, decision.Why{
		Reason: reason, Name: d.f.set.Name, Have: int64(d.f.set.Spec.Replicas), Want: int64(size), Detail: are(names),
	}}
}

// are returns the beginning of a sentence about machines.
func are(names []string) string {
	if len(names) == 1 {
		return "machine " + names[0] + " is"
	}
	return strconv.Itoa(len(names)) + " machines are"
}

// preserveShare returns how many failed machines a set may keep by itself. Old sets keep those that
// they have, as far as the limit allows, the newest first. The new set gets the rest. Its share
// grows only by what the others have given up. So all sets together never keep more than the limit,
// except for what a set was about to write when its share was reduced.
func (d setWrite) preserveShare() int32 {
	left, taken := max(d.deployment.Spec.AutoPreserve, 0), int64(0)
	for i := len(d.sets) - 1; i >= 0; i-- {
		f := &d.sets[i]
		if f == d.current {
			continue
		}
		share := max(0, min(f.preserving, f.set.Spec.AutoPreserve, left))
		if f == d.f {
			return share
		}
		left -= share
		taken += int64(max(f.preserving, f.set.Spec.AutoPreserve, 0))
	}
	return int32(max(0, int64(max(d.deployment.Spec.AutoPreserve, 0))-taken))
}

// resized returns a set with another size. It also settles the names that became machines.
func (d setWrite) resized(size int32) *machineset.Set {
	f := d.f
	changed := f.set.Clone()
	changed.Spec.Replicas = size
	if f.namesDone() {
		changed.Instructions.Reservation = changed.Instructions.Reservation.Next(0, time.Time{})
	}
	d.carry(changed)
	d.annotate(changed)
	f.noteRaise(changed, d.p.Keys.RaisedFrom)
	return changed
}

// annotate notes R and R + S on a set that is being written anyway, unless another program has
// written them.
func (d *summary) annotate(s *machineset.Set) {
	replicas := int64(d.deployment.Spec.Replicas)
	for _, note := range [...]struct {
		key string
		n   int64
	}{
		{d.p.Keys.DesiredReplicas, replicas},
		{d.p.Keys.MaxReplicas, min(replicas+int64(d.bounds.Surge), math.MaxInt32)},
	} {
		if note.key == "" {
			continue
		}
		if s.Annotations == nil {
			s.Annotations = make(map[string]string, 2)
		}
		s.Annotations[note.key] = strconv.FormatInt(note.n, 10)
	}
}
