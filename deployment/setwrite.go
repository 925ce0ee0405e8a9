package deployment

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// deletionCandidates returns the names that a set of this size should know: the earlier ones, as
// long as it has more machines than that, and those added. A negative size is that of size().
func (f *setState) deletionCandidates(size int32, added []machineset.DeletionCandidate) []machineset.DeletionCandidate {
	var out []machineset.DeletionCandidate
	if size < 0 {
		size = f.size()
	}
	if f.actual > size {
		out = append(out, f.aliveDeletionCandidates()...)
	}
	return append(out, added...)
}

// aliveDeletionCandidates returns those that the set has not deleted yet.
func (f *setState) aliveDeletionCandidates() []machineset.DeletionCandidate {
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
func (f *setState) outdatedDeletionCandidates() bool {
	return f.actual <= f.size() && len(f.aliveDeletionCandidates()) > 0
}

// marks returns the marks that the machines of a set should carry. If there is no new set, because
// the template was changed while paused, they stay as they are: it is not known which machines will
// go.
func (d *state) marks(f *setState) machine.RolloutMarks {
	switch {
	case d.current == nil:
		return f.set.Instructions.Marks
	case !d.rolling():
		return machine.RolloutMarks{}
	}
	marks := d.p.RolloutMarks
	marks.Avoid = marks.Avoid && f != d.current
	return marks
}

// carry adds to a write of a set the changes that would need a write of their own, and the names of
// machines that a scaler has chosen to go with the new size.
func (d *state) carry(f *setState, changed *machineset.Set, choices []machineset.DeletionCandidate) {
	if f == d.current {
		changed.Revision = d.revision
	}
	changed.Instructions.Marks = d.marks(f)
	if d.copiedPause(f.set) {
		changed.Annotations = withoutEntry(changed.Annotations, d.p.Keys.Paused)
	}
	changed.Instructions.DeletionCandidates = f.deletionCandidates(changed.Spec.Replicas, choices)
	changed.Instructions.SurgeAllowance = d.surgeAllowance(f)
	changed.Spec.AutoPreserve = d.preserveShare(f)
}

// surgeAllowance returns the surge and unavailable bounds that a set may use to replace machines on
// request or for their age: those of a rollout, while no rollout runs. During a rollout, or while the deployment
// or the set is paused, requests wait. They also wait while a machine of the set is being updated
// in place and will move to another set. Otherwise the machine would wait for the set to reach its
// size, and the set for the machine to be available. While the set has been ordered fewer machines
// than the deployment wants, it may miss as many fewer.
func (d *state) surgeAllowance(f *setState) machineset.SurgeAllowance {
	if f.requested == 0 || f != d.current || f.paused || f.underWay > 0 || d.deployment.Spec.Paused || d.rolling() {
		return machineset.SurgeAllowance{}
	}
	missing := max(0, d.deployment.Spec.Replicas-f.size())
	return machineset.SurgeAllowance{Surge: d.bounds.Surge, Unavailable: max(0, d.bounds.Unavailable-missing)}
}

// withHandover returns a set with other notes, and a size that differs by this many.
func (d *state) withHandover(f *setState, h machineset.Handover, by int, names []string, reason decision.Reason) Order {
	size := max(0, f.size()+int32(by))
	changed := d.resized(f, size, nil)
	changed.Instructions.Handover = h
	return Order{changed, decision.Why{
		Reason: reason, Name: f.set.Name, Have: int64(f.set.Spec.Replicas), Want: int64(size), Detail: machinesAre(names),
	}}
}

// machinesAre returns the beginning of a sentence about machines.
func machinesAre(names []string) string {
	if len(names) == 1 {
		return "machine " + names[0] + " is"
	}
	return strconv.Itoa(len(names)) + " machines are"
}

// preserveShare returns how many failed machines a set may keep by itself. Old sets keep those that
// they have, as far as the limit allows, the newest first. The new set gets the rest. Its share
// grows only by what the others have given up. So all sets together never keep more than the limit,
// except for what a set was about to write when its share was reduced.
func (d *state) preserveShare(f *setState) int32 {
	left, taken := max(d.deployment.Spec.AutoPreserve, 0), int64(0)
	for i := len(d.sets) - 1; i >= 0; i-- {
		g := &d.sets[i]
		if g == d.current {
			continue
		}
		share := max(0, min(g.preserving, g.set.Spec.AutoPreserve, left))
		if g == f {
			return share
		}
		left -= share
		taken += int64(max(g.preserving, g.set.Spec.AutoPreserve, 0))
	}
	return int32(max(0, int64(max(d.deployment.Spec.AutoPreserve, 0))-taken))
}

// resized returns a set with another size, and the machines that a scaler has chosen to go with it.
// It also settles the names that became machines.
func (d *state) resized(f *setState, size int32, choices []machineset.DeletionCandidate) *machineset.Set {
	changed := f.set.Clone()
	changed.Spec.Replicas = size
	if f.namesDone() {
		changed.Instructions.Reservation = changed.Instructions.Reservation.Next(0, time.Time{})
	}
	d.carry(f, changed, choices)
	d.annotateReplicas(changed)
	f.recordRaise(changed, d.p.Keys.RaisedFrom)
	return changed
}

// annotateReplicas notes R and R + S on a set that is being written anyway, unless another program has
// written them.
func (d *state) annotateReplicas(s *machineset.Set) {
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

// A set that has to delete machines reads its size, chooses, and then deletes one after the other.
// If its size is raised meanwhile, it still acts on the smaller one. So a raise of a set that has
// more machines than ordered, or may get more, is noted on the set: the size until then, and the
// generation that the raise makes. Until the set has observed that generation, its machines count
// as if it still had the smaller size.
//
// An old set that gets machines back may have deleted some of them since they were counted. It must
// not create others of the old template. So the raise closes the set. The gate opens it at what it
// has, once it has observed the raise.

// recordRaise notes on a set that is about to get another size the smaller one that it may still act
// on.
func (f *setState) recordRaise(changed *machineset.Set, key string) {
	if key == "" {
		return
	}
	actsOn := f.actingSize(key)
	switch {
	case changed.Spec.Replicas > f.size() && (f.mostMachines() > int64(f.size()) || actsOn < f.size()):
		changed.Annotations = withEntry(changed.Annotations, key, fmt.Sprintf("%d %d", actsOn, f.set.Generation+1))
	case actsOn >= f.size():
		delete(changed.Annotations, key)
	}
}

// actingSize returns the smallest size by which a set may still delete machines. A note that can't be
// read may mean 0.
func (f *setState) actingSize(key string) int32 {
	note := f.set.Annotations[key]
	if note == "" || key == "" {
		return f.size()
	}
	var size int32
	var generation int64
	if _, err := fmt.Sscanf(note, "%d %d", &size, &generation); err != nil {
		size, generation = 0, math.MaxInt64
	}
	if f.set.Status.ObservedGeneration >= min(generation, f.set.Generation) {
		return f.size()
	}
	return max(0, min(size, f.size()))
}

// closeRestored closes a set that a step raises to keep machines: it creates none.
func closeRestored(changed *machineset.Set, step *rollout.Scale) {
	if step.Why.Reason == rollout.ReasonGivenBack {
		changed.Instructions.Handover.Closed = true
	}
}

// Rollout marks go from the deployment to its sets, from a set to its machines and from a machine
// to its node, each step one write. They are removed in the same way. The only record of a mark is
// the object that carries it.

// describeMarks returns the purpose of marks.
func describeMarks(m machine.RolloutMarks) string {
	switch m {
	case machine.RolloutMarks{Avoid: true}:
		return "should be avoided: their machines are about to be replaced"
	case machine.RolloutMarks{Keep: true}:
		return "are protected from autoscalers during the rollout"
	case machine.RolloutMarks{Avoid: true, Keep: true}:
		return "should be avoided, and are protected from autoscalers during the rollout"
	}
	return "no longer need rollout marks"
}

// whyMarked returns why a set is written. changed is what it becomes.
func (d *state) whyMarked(f *setState, changed *machineset.Set) decision.Why {
	s, allowance := f.set, changed.Instructions.SurgeAllowance
	marked := s.Instructions.Marks == changed.Instructions.Marks
	switch {
	case d.copiedPause(s):
		return decision.Why{Reason: reasonPauseCopied, Name: s.Name}
	case s.Instructions.SurgeAllowance != allowance && allowance != (machineset.SurgeAllowance{}):
		return decision.Why{Reason: reasonSurgeAllowed, Name: s.Name, Count: int64(f.requested), Want: int64(allowance.Surge), All: int64(allowance.Unavailable)}
	case s.Instructions.SurgeAllowance != allowance:
		return decision.Why{Reason: reasonSurgeRevoked, Name: s.Name}
	case !f.inUse(), marked && !f.outdatedDeletionCandidates():
		limit := d.deployment.Spec.AutoPreserve
		return decision.Why{Reason: reasonPreserveShare, Name: s.Name, Have: int64(s.Spec.AutoPreserve), Want: int64(changed.Spec.AutoPreserve), All: int64(limit)}
	case marked:
		return decision.Why{Reason: reasonCandidatesDropped, Name: s.Name, Count: int64(len(f.aliveDeletionCandidates()))}
	}
	return decision.Why{Reason: reasonMark, Name: s.Name, Detail: describeMarks(changed.Instructions.Marks)}
}

// markSets writes the marks of sets that no order has carried, and removes names of machines that a
// set no longer has to delete. Sets without machines are left as they are, because the resizing of
// one that comes back carries the marks. The exceptions are a share that others could use, and
// bounds that count as used.
func (d *state) markSets() (Plan, bool) {
	if d.held() {
		return Plan{}, false
	}
	var plan Plan
	for i := range d.sets {
		f := &d.sets[i]
		s := f.set
		marked, forgets, allowance := s.Instructions.Marks == d.marks(f), f.outdatedDeletionCandidates(), d.surgeAllowance(f)
		share := d.preserveShare(f)
		shared, used := s.Spec.AutoPreserve == share, f.inUse()
		if s.Deleted() || !d.copiedPause(s) && shared && s.Instructions.SurgeAllowance == allowance && (!used || marked && !forgets) {
			continue
		}
		changed := s.Clone()
		d.carry(f, changed, nil)
		plan.Push = append(plan.Push, Order{changed, d.whyMarked(f, changed)})
	}
	if len(plan.Push) == 0 {
		return Plan{}, false
	}
	plan.Why = plan.Push[0].Why
	return plan, true
}

// Machines that are kept for inspection count towards a fleet's size and are not available. Sets
// delete them last, while a rollout's arithmetic assumes that a set first deletes what is not
// available. So they are set aside: the arithmetic sees a fleet without them, smaller by as many,
// and each set that has them is ordered to have as many more. No more are set aside than are
// wanted. If a fleet shrinks further, they go too.
//
// A rollout therefore leaves them where they are, is complete without them, and replaces them when
// they are not kept any more. Recreate sets aside only those of the new set, because no machine of
// an old template may exist beside it. While paused, Recreate counts those too, because no old set
// may grow beside them.

// hide computes how many machines of each set the arithmetic must not see: those of the new set
// first, then of the newest.
func (d *state) hide() {
	left := max(d.deployment.Spec.Replicas, 0)
	take := func(f *setState) {
		f.hidden = max(0, min(f.preserved, f.size(), left))
		left -= f.hidden
	}
	recreate := d.deployment.Spec.Strategy.Kind == Recreate
	if d.current != nil && !(recreate && d.deployment.Spec.Paused) {
		take(d.current)
	}
	if recreate {
		return
	}
	for i := len(d.sets) - 1; i >= 0; i-- {
		if f := &d.sets[i]; f != d.current {
			take(f)
		}
	}
}

// hiddenMachines returns how many machines are set aside.
func (d *state) hiddenMachines() (n int32) {
	for i := range d.sets {
		n += d.sets[i].hidden
	}
	return n
}

// addHidden adds the machines set aside to orders.
func (d *state) addHidden(steps []rollout.Scale) {
	for i := range steps {
		if f := d.resizable(steps[i].Name); f != nil {
			steps[i].From += f.hidden
			steps[i].To += f.hidden
		}
	}
}

// hiddenOld returns how many of them are in old sets.
func (d *state) hiddenOld() int32 {
	n := d.hiddenMachines()
	if d.current != nil {
		n -= d.current.hidden
	}
	return n
}
