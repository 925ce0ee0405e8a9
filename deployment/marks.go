package deployment

import (
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// notes are what the deployment notes on its sets, if no order has carried it.
type notes struct{ *summary }

// Rollout marks go from the deployment to its sets, from a set to its machines and from a machine
// to its node, each step one write. They are removed in the same way. The only record of a mark is
// the object that carries it.

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

// whyMarked returns why a set is written. changed is what it becomes.
func (d setWrite) whyMarked(changed *machineset.Set) decision.Why {
	f, s, allowance := d.f, d.f.set, changed.Instructions.SurgeAllowance
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
func (d notes) markSets() (Plan, bool) {
	if d.held() {
		return Plan{}, false
	}
	var plan Plan
	for i := range d.sets {
		f := &d.sets[i]
		s, write := f.set, setWrite{d.summary, f}
		marked, forgets, allowance := s.Instructions.Marks == write.marks(), f.outdatedDeletionCandidates(), write.surgeAllowance()
		share := write.preserveShare()
		shared, used := s.Spec.AutoPreserve == share, f.inUse()
		if s.Deleted() || !d.copiedPause(s) && shared && s.Instructions.SurgeAllowance == allowance && (!used || marked && !forgets) {
			continue
		}
		changed := s.Clone()
		write.carry(changed)
		plan.Push = append(plan.Push, Order{changed, write.whyMarked(changed)})
	}
	if len(plan.Push) == 0 {
		return Plan{}, false
	}
	plan.Why = plan.Push[0].Why
	return plan, true
}
