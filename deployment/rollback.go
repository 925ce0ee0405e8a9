package deployment

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
)

// rollBack restores an earlier template on request. The same write removes the request. While the deployment is
// paused, the request waits.
func (d *state) rollBack() (Plan, bool) {
	request := d.deployment.Spec.RollbackTo
	if request == nil || d.held() || d.deployment.Spec.Paused {
		return Plan{}, false
	}
	changed := d.deployment.Clone()
	changed.Spec.RollbackTo = nil
	target := d.rollbackTarget(request.Revision)
	if target == nil {
		why := decision.Why{Reason: ReasonRollbackRevisionNotFound, Detail: "an earlier template", Number: request.Revision}
		if request.Revision != 0 {
			why.Detail = fmt.Sprintf("revision %d", request.Revision)
		}
		return Plan{Write: &Update{changed, EventWarning}, Why: why}, true
	}
	why := decision.Why{Name: target.set.Name, Number: target.set.Revision}
	if d.wanted(target.set) {
		why.Reason = ReasonRollbackTemplateUnchanged
		return Plan{Write: &Update{changed, EventWarning}, Why: why}, true
	}
	restored := changed.Clone()
	d.restore(restored, target)
	if bad := restored.invalidField(d.p.Keys); bad != nil {
		why.Reason, why.Detail = ReasonRollbackInvalid, bad.Error()
		return Plan{Write: &Update{changed, EventWarning}, Why: why}, true
	}
	why.Reason = ReasonRollbackDone
	return Plan{Write: &Update{restored, EventNormal}, Why: why}, true
}

// rollbackTarget returns the youngest set of a revision. For revision 0 it returns the set with the highest
// revision among those with another template than the present one. Nil: there is none. Sets that are being
// deleted do not count.
func (d *state) rollbackTarget(revision int64) *setState {
	var found *setState
	for i := range d.sets {
		f := &d.sets[i]
		switch {
		case f.set.Deleted() || f.set.Revision <= 0:
		case revision != 0:
			if f.set.Revision == revision {
				found = f
			}
		case d.wanted(f.set):
		case found == nil || f.set.Revision >= found.set.Revision:
			found = f
		}
	}
	return found
}

// restore copies a set's template and annotations to a deployment, except for labels and annotations that
// deployments put on sets.
func (d *state) restore(changed *Deployment, from *setState) {
	keys := &d.p.Keys
	changed.Spec.Template = from.set.Spec.Template.Clone()
	delete(changed.Spec.Template.Labels, keys.TemplateHash)
	annotations := maps.Clone(from.set.Annotations)
	delete(annotations, keys.DesiredReplicas)
	delete(annotations, keys.MaxReplicas)
	delete(annotations, keys.RaisedFrom)
	if len(annotations) == 0 {
		return
	}
	if changed.Annotations == nil {
		changed.Annotations = make(map[string]string, len(annotations))
	}
	maps.Copy(changed.Annotations, annotations)
}

// numberNewSet gives the new set its revision, unless another order has already written it.
func (d *state) numberNewSet() (Plan, bool) {
	if d.held() || d.current == nil || d.current.set.Revision == d.revision {
		return Plan{}, false
	}
	changed := d.current.set.Clone()
	changed.Revision = d.revision
	why := decision.Why{Reason: reasonRevision, Name: changed.Name, Number: d.revision}
	return Plan{Push: []Order{{changed, why}}, Why: why}, true
}

// recordRevision copies the new set's revision to the deployment, after the status has reported the
// rollout.
func (d *state) recordRevision() (Plan, bool) {
	if d.held() || d.current == nil || d.deployment.Revision == d.revision {
		return Plan{}, false
	}
	changed := d.deployment.Clone()
	changed.Revision = d.revision
	why := decision.Why{Reason: reasonRecord, Name: d.current.set.Name, Number: d.revision}
	return Plan{Write: &Update{Deployment: changed}, Why: why}, true
}

// prune deletes the old sets beyond the history limit, the lowest revisions first, once the rollout is
// complete or while it is paused. Sets that are still in use stay, and no younger set is deleted
// instead.
func (d *state) prune() (Plan, bool) {
	spec := &d.deployment.Spec
	if d.held() || spec.RevisionHistoryLimit == nil || spec.RollbackTo != nil || !spec.Paused && !rollout.Done(d.next.fleet) {
		return Plan{}, false
	}
	limit := *spec.RevisionHistoryLimit
	old := d.oldSets()
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

// oldSets returns the old sets that are not being deleted, the lowest revision first; of equal revisions the
// oldest set. If there is no new set, because the template was changed while paused, the youngest set is left
// out: scaling may need it.
func (d *state) oldSets() []*setState {
	var out []*setState
	for i := range d.sets {
		if f := &d.sets[i]; f != d.current && !f.set.Deleted() {
			out = append(out, f)
		}
	}
	if d.current == nil && len(out) > 0 {
		out = out[:len(out)-1]
	}
	slices.SortStableFunc(out, func(a, b *setState) int { return cmp.Compare(max(a.set.Revision, 0), max(b.set.Revision, 0)) })
	return out
}

// awaited reports whether some machine is being updated in place to a set's template, and will move to the set.
func (d *state) awaited(f *setState) bool {
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
