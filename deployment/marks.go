package deployment

import (
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// Rollout marks go from the deployment to its sets, from a set to its machines and from a machine
// to its node, each step one write. They are removed in the same way. The only record of a mark is
// the object that carries it.

// rolling reports whether a rollout is under way: there is a new set, and another one has machines,
// or should have some.
func (d *decider) rolling() bool {
	if d.current == nil {
		return false
	}
	for i := range d.sets {
		if f := &d.sets[i]; f != d.current && f.inUse() && max(f.size(), f.actual) > f.aside {
			return true
		}
	}
	return false
}

// inUse reports whether a set has machines, or should have some.
func (f *family) inUse() bool { return f.size() > 0 || f.actual > 0 }

// marks returns the marks that the machines of a set should carry. If there is no new set, because
// the template was changed while paused, they stay as they are: it is not known which machines will
// go.
func (d *decider) marks(s *machineset.Set) machine.RolloutMarks {
	switch {
	case d.current == nil:
		return s.Instructions.Marks
	case !d.rolling():
		return machine.RolloutMarks{}
	}
	marks := d.p.RolloutMarks
	marks.Avoid = marks.Avoid && s != d.current.set
	return marks
}

// carry adds to a write of a set the changes that would need a write of their own. before is the
// set as observed.
func (d *decider) carry(changed, before *machineset.Set) {
	if d.current != nil && before == d.current.set {
		changed.Revision = d.revision
	}
	changed.Instructions.Marks = d.marks(before)
	if d.copiedPause(before) {
		changed.Annotations = withoutEntry(changed.Annotations, d.p.Keys.Paused)
	}
	if f := d.resizable(before.UID); f != nil {
		changed.Instructions.DeletionCandidates = f.deletionCandidates(changed.Spec.Replicas)
		changed.Instructions.SurgeAllowance = d.surgeAllowance(f)
		changed.Spec.AutoPreserve = d.preserveShare(before)
	}
}

// words returns the purpose of marks.
func words(m machine.RolloutMarks) string {
	switch m {
	case machine.RolloutMarks{Avoid: true}:
		return "should be avoided: they are about to go"
	case machine.RolloutMarks{Keep: true}:
		return "should be kept from autoscalers while the rollout lasts"
	case machine.RolloutMarks{Avoid: true, Keep: true}:
		return "should be avoided, and kept from autoscalers while the rollout lasts"
	}
	return "need no rollout marks any more"
}

// surgeAllowance returns how far a set may leave its size to replace machines on request or for
// their age: as far as a rollout may, if there is none. During a rollout, or while the deployment
// or the set is paused, requests wait. They also wait while a machine of the set is being updated
// in place and will move to another set. Otherwise the machine would wait for the set to reach its
// size, and the set for the machine to be available.
func (d *decider) surgeAllowance(f *family) machineset.SurgeAllowance {
	if f.requested == 0 || f != d.current || f.paused || f.underWay > 0 || d.deployment.Spec.Paused || d.rolling() {
		return machineset.SurgeAllowance{}
	}
	return machineset.SurgeAllowance{Surge: d.bounds.Surge, Unavailable: d.bounds.Unavailable}
}

// whyMarked returns why a set is written. changed is what it becomes.
func (d *decider) whyMarked(f *family, changed *machineset.Set) decision.Why {
	s, allowance := f.set, changed.Instructions.SurgeAllowance
	marked := s.Instructions.Marks == changed.Instructions.Marks
	switch {
	case d.copiedPause(s):
		return decision.Why{Reason: reasonPauseCopied, Name: s.Name}
	case s.Instructions.SurgeAllowance != allowance && allowance != (machineset.SurgeAllowance{}):
		return decision.Why{Reason: reasonSurgeAllowance, Name: s.Name, Count: int64(f.requested), Want: int64(allowance.Surge), All: int64(allowance.Unavailable)}
	case s.Instructions.SurgeAllowance != allowance:
		return decision.Why{Reason: reasonNoSurgeAllowance, Name: s.Name}
	case !f.inUse(), marked && !f.outdatedDeletionCandidates():
		limit := d.deployment.Spec.AutoPreserve
		return decision.Why{Reason: reasonPreserveShare, Name: s.Name, Have: int64(s.Spec.AutoPreserve), Want: int64(changed.Spec.AutoPreserve), All: int64(limit)}
	case marked:
		return decision.Why{Reason: reasonForget, Name: s.Name, Count: int64(len(f.aliveDeletionCandidates()))}
	}
	return decision.Why{Reason: reasonMark, Name: s.Name, Detail: words(changed.Instructions.Marks)}
}

// markSets writes the marks of sets that no order has carried, and removes names of machines that a
// set no longer has to delete. Sets without machines are left as they are, because the resizing of
// one that comes back carries the marks. The exceptions are a share that others could use, and
// bounds that count as used.
func (d *decider) markSets() (Plan, bool) {
	if d.held() {
		return Plan{}, false
	}
	var plan Plan
	for i := range d.sets {
		f := &d.sets[i]
		s := f.set
		marked, forgets, allowance := s.Instructions.Marks == d.marks(s), f.outdatedDeletionCandidates(), d.surgeAllowance(f)
		share := d.preserveShare(s)
		shared, used := s.Spec.AutoPreserve == share, f.inUse()
		if s.Deleted() || !d.copiedPause(s) && shared && s.Instructions.SurgeAllowance == allowance && (!used || marked && !forgets) {
			continue
		}
		changed := s.Clone()
		d.carry(changed, s)
		plan.Push = append(plan.Push, Order{changed, d.whyMarked(f, changed)})
	}
	if len(plan.Push) == 0 {
		return Plan{}, false
	}
	plan.Why = plan.Push[0].Why
	return plan, true
}
