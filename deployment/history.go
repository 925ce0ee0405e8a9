package deployment

import (
	"cmp"
	"slices"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
)

// history is the old sets that stay for rollbacks.
type history struct {
	*summary
	rollout *resizing
}

// prune deletes old sets above the limit, the lowest revision first, once the rollout is complete
// or while it is paused. Those of them that are still in use stay, and no younger set is deleted
// instead.
func (d history) prune() (Plan, bool) {
	spec := &d.deployment.Spec
	if d.held() || spec.RevisionHistoryLimit == nil || spec.RollbackTo != nil || !spec.Paused && !rollout.Done(d.rollout.fleet) {
		return Plan{}, false
	}
	limit := *spec.RevisionHistoryLimit
	old := d.old()
	var plan Plan
	for _, f := range old[:max(0, len(old)-int(limit))] {
		if !f.unused() || f.paused || d.awaited(f) {
			continue
		}
		why := decision.Why{Reason: ReasonPrune, Name: f.set.Name, Number: max(f.set.Revision, 0), All: int64(limit)}
		plan.Delete = append(plan.Delete, Order{f.set, why})
	}
	if len(plan.Delete) == 0 {
		return Plan{}, false
	}
	plan.Why = plan.Delete[0].Why
	return plan, true
}

// old returns the sets that are history and not being deleted, the lowest revision first, of equal
// ones the oldest. If there is no new set, because the template was changed while paused, the
// youngest does not count as history: scaling may need it.
func (d history) old() []*family {
	var out []*family
	for i := range d.sets {
		if f := &d.sets[i]; f != d.current && !f.set.Deleted() {
			out = append(out, f)
		}
	}
	if d.current == nil && len(out) > 0 {
		out = out[:len(out)-1]
	}
	slices.SortStableFunc(out, func(a, b *family) int { return cmp.Compare(max(a.set.Revision, 0), max(b.set.Revision, 0)) })
	return out
}

// awaited reports whether a machine is being updated in place to a set's template, and belongs to
// that set afterwards.
func (d history) awaited(f *family) bool {
	key := d.p.Keys.InPlaceTarget
	for i := range d.sets {
		for _, m := range d.sets[i].machines {
			if key != "" && d.sets[i].owns(m) && inUpdate(m) && m.Annotations[key] == f.set.Name {
				return true
			}
		}
	}
	return false
}
