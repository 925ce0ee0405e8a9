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

// deletionCandidates returns the candidates that a set with this size should have: the present ones, as long as
// it has more machines than its size, and those added. A negative size stands for f.size().
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

// aliveDeletionCandidates returns the candidates that the set has not deleted yet.
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

// outdatedDeletionCandidates reports whether a set still has candidates among its machines although it has no
// surplus left to delete. They must not be used for the next reduction.
func (f *setState) outdatedDeletionCandidates() bool {
	return f.actual <= f.size() && len(f.aliveDeletionCandidates()) > 0
}

// marks returns the rollout marks for the machines of a set. If there is no new set, because the template was
// changed while paused, the marks stay as they are.
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

// addPending adds to a write of a set the changes that would otherwise need a write of their own, and the
// deletion candidates that the set gets with its new size.
func (d *state) addPending(f *setState, changed *machineset.Set, choices []machineset.DeletionCandidate) {
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

// surgeAllowance returns how far the number of a set's machines may differ from its size, to replace machines
// on request or for their age. It is the strategy's bounds, but zero
//
//   - for old sets, and if no machine is to be replaced;
//   - during a rollout, and while the deployment or the set is paused;
//   - while a machine of the set is being updated in place and will move to another set: the move would
//     wait until the set has its size, and the set would wait until the machine is available.
//
// If the set's size is below the deployment's, fewer machines may be unavailable.
func (d *state) surgeAllowance(f *setState) machineset.SurgeAllowance {
	if f.requested == 0 || f != d.current || f.paused || f.underWay > 0 || d.deployment.Spec.Paused || d.rolling() {
		return machineset.SurgeAllowance{}
	}
	missing := max(0, d.deployment.Spec.Replicas-f.size())
	return machineset.SurgeAllowance{Surge: d.bounds.Surge, Unavailable: max(0, d.bounds.Unavailable-missing)}
}

// withHandover returns an order that gives a set another handover, and changes its size by delta.
func (d *state) withHandover(f *setState, h machineset.Handover, delta int, names []string, reason decision.Reason) Order {
	size := max(0, f.size()+int32(delta))
	changed := d.resized(f, size, nil)
	changed.Instructions.Handover = h
	return Order{changed, decision.Why{
		Reason: reason, Name: f.set.Name, Have: int64(f.set.Spec.Replicas), Want: int64(size), Detail: machinesAre(names),
	}}
}

// machinesAre returns the beginning of a sentence: "machine web-1 is" or "3 machines are".
func machinesAre(names []string) string {
	if len(names) == 1 {
		return "machine " + names[0] + " is"
	}
	return strconv.Itoa(len(names)) + " machines are"
}

// preserveShare returns how many failed machines a set may preserve by itself, as its part of the deployment's
// limit. Old sets keep the shares that they use, as far as the limit allows, the newest set first. The new set
// gets the rest: its share grows only after another set has given up a part of its own. So all sets together
// never preserve more than the limit, except for what a set was about to write when its share was reduced.
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

// resized returns a copy of a set with another size, and with the deletion candidates for it. If all names of
// the set's reservation became machines, it settles the reservation.
func (d *state) resized(f *setState, size int32, choices []machineset.DeletionCandidate) *machineset.Set {
	changed := f.set.Clone()
	changed.Spec.Replicas = size
	if f.namesDone() {
		changed.Instructions.Reservation = changed.Instructions.Reservation.Next(0, time.Time{})
	}
	d.addPending(f, changed, choices)
	d.annotateReplicas(changed)
	f.recordRaise(changed, d.p.Keys.RaisedFrom)
	return changed
}

// annotateReplicas writes R and R + S into the annotations of a set that is being written anyway.
func (d *state) annotateReplicas(s *machineset.Set) {
	replicas := int64(d.deployment.Spec.Replicas)
	for _, a := range [...]struct {
		key string
		n   int64
	}{
		{d.p.Keys.DesiredReplicas, replicas},
		{d.p.Keys.MaxReplicas, min(replicas+int64(d.bounds.Surge), math.MaxInt32)},
	} {
		if a.key == "" {
			continue
		}
		if s.Annotations == nil {
			s.Annotations = make(map[string]string, 2)
		}
		s.Annotations[a.key] = strconv.FormatInt(a.n, 10)
	}
}

// A set that has to delete machines reads its size, chooses machines, and then deletes one after the other. If
// its size is raised meanwhile, it may still delete down to the smaller size. So if the size is raised of a set
// that may have more machines than that, the set records the smaller size, and the generation that the raise
// will have. Until the set has observed that generation, its machines count as if it still had the smaller size.
//
// An old set that is raised to keep machines may have deleted some of them since they were counted. It must not
// create others of the old template. So the raise closes the set. Once the set has observed the raise,
// openOrClose opens it, with the number of its machines as its size.

// recordRaise records on a resized set the smaller size to which it may still delete machines.
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

// actingSize returns the smallest size to which a set may still delete machines. A record that can't be read
// counts as 0.
func (f *setState) actingSize(key string) int32 {
	record := f.set.Annotations[key]
	if record == "" || key == "" {
		return f.size()
	}
	var size int32
	var generation int64
	if _, err := fmt.Sscanf(record, "%d %d", &size, &generation); err != nil {
		size, generation = 0, math.MaxInt64
	}
	if f.set.Status.ObservedGeneration >= min(generation, f.set.Generation) {
		return f.size()
	}
	return max(0, min(size, f.size()))
}

// closeRestored closes a set if a step raises it to keep machines, so that it creates none.
func closeRestored(changed *machineset.Set, step *rollout.Scale) {
	if step.Why.Reason == rollout.ReasonRestored {
		changed.Instructions.Handover.Closed = true
	}
}

// Rollout marks are copied from the deployment to its sets by one write each, and from a set to the nodes of its
// machines. They are removed in the same way.

// describeMarks returns the part of a reason that says what marks mean for nodes.
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

// whyMarked returns why markSets writes a set. changed is the set that it writes.
func (d *state) whyMarked(f *setState, changed *machineset.Set) decision.Why {
	s, allowance := f.set, changed.Instructions.SurgeAllowance
	marked := s.Instructions.Marks == changed.Instructions.Marks
	switch {
	case d.copiedPause(s):
		return decision.Why{Reason: reasonPauseCopied, Name: s.Name}
	case s.Instructions.SurgeAllowance != allowance && allowance != (machineset.SurgeAllowance{}):
		return decision.Why{
			Reason: reasonSurgeAllowed, Name: s.Name,
			Count: int64(f.requested), Want: int64(allowance.Surge), All: int64(allowance.Unavailable),
		}
	case s.Instructions.SurgeAllowance != allowance:
		return decision.Why{Reason: reasonSurgeRevoked, Name: s.Name}
	case !f.inUse(), marked && !f.outdatedDeletionCandidates():
		return decision.Why{
			Reason: reasonPreserveShare, Name: s.Name, Have: int64(s.Spec.AutoPreserve),
			Want: int64(changed.Spec.AutoPreserve), All: int64(d.deployment.Spec.AutoPreserve),
		}
	case marked:
		return decision.Why{Reason: reasonCandidatesDropped, Name: s.Name, Count: int64(len(f.aliveDeletionCandidates()))}
	}
	return decision.Why{Reason: reasonMark, Name: s.Name, Detail: describeMarks(changed.Instructions.Marks)}
}

// markSets writes the changes of addPending that no other order has written: marks, the surge allowance, the
// share of preserved machines, and that a set no longer has deletion candidates. A set without machines needs
// no marks: if it gets machines again, the order that resizes it writes them. Its share and its surge allowance
// are written anyway, because the shares of other sets depend on them.
func (d *state) markSets() (Plan, bool) {
	if d.held() {
		return Plan{}, false
	}
	var plan Plan
	for i := range d.sets {
		f := &d.sets[i]
		s := f.set
		marked, outdated, allowance := s.Instructions.Marks == d.marks(f), f.outdatedDeletionCandidates(), d.surgeAllowance(f)
		share := d.preserveShare(f)
		shared, used := s.Spec.AutoPreserve == share, f.inUse()
		if s.Deleted() || !d.copiedPause(s) && shared && s.Instructions.SurgeAllowance == allowance && (!used || marked && !outdated) {
			continue
		}
		changed := s.Clone()
		d.addPending(f, changed, nil)
		plan.Push = append(plan.Push, Order{changed, d.whyMarked(f, changed)})
	}
	if len(plan.Push) == 0 {
		return Plan{}, false
	}
	plan.Why = plan.Push[0].Why
	return plan, true
}

// Machines that are preserved count towards a deployment's size and are not available. Sets delete them last,
// but package rollout assumes that a set deletes unavailable machines first. So these machines are hidden from
// package rollout: it computes sizes for a fleet without them, smaller by their number, and the size of each
// set is then increased by the number of its hidden machines. No more are hidden than Replicas: if the
// deployment shrinks below their number, some are deleted, too.
//
// So a rollout leaves preserved machines where they are, is complete without them, and replaces them when they
// are no longer preserved. Recreate hides only those of the new set, because no machine of an old template may
// exist beside the new ones. While paused, Recreate hides none, because no old set may grow.

// hide computes how many machines of each set are hidden: of the new set first, then of the other sets, the
// youngest first.
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

// hiddenMachines returns how many machines are hidden.
func (d *state) hiddenMachines() (n int32) {
	for i := range d.sets {
		n += d.sets[i].hidden
	}
	return n
}

// addHidden adds the hidden machines to the sizes in orders.
func (d *state) addHidden(steps []rollout.Scale) {
	for i := range steps {
		if f := d.resizable(steps[i].Name); f != nil {
			steps[i].From += f.hidden
			steps[i].To += f.hidden
		}
	}
}

// hiddenOld returns how many machines of old sets are hidden.
func (d *state) hiddenOld() int32 {
	n := d.hiddenMachines()
	if d.current != nil {
		n -= d.current.hidden
	}
	return n
}
