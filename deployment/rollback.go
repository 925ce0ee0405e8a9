package deployment

import (
	"fmt"
	"maps"

	"github.com/millwright-go/millwright/decision"
)

// rollback answers a request for an earlier template.
type rollback struct{ *summary }

// rollBack answers a request for an earlier template. The write that answers it removes the
// request, so it is answered once. While paused it waits.
func (d rollback) rollBack() (Plan, bool) {
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
		return Plan{Write: &Update{changed, NewsWarning}, Why: why}, true
	}
	why := decision.Why{Name: target.set.Name, Number: target.set.Revision}
	if d.wanted(target.set) {
		why.Reason = ReasonRollbackTemplateUnchanged
		return Plan{Write: &Update{changed, NewsWarning}, Why: why}, true
	}
	restored := changed.Clone()
	d.restore(restored, target)
	if bad := restored.invalidField(d.p.Keys); bad != nil {
		why.Reason, why.Detail = ReasonRollbackInvalid, bad.Error()
		return Plan{Write: &Update{changed, NewsWarning}, Why: why}, true
	}
	why.Reason = ReasonRollbackDone
	return Plan{Write: &Update{restored, NewsNormal}, Why: why}, true
}

// rollbackTarget returns the youngest set of a revision. For 0 it is that of the highest revision
// with another template than the present one. Nil: there is none. A set that is being deleted is no
// longer history.
func (d rollback) rollbackTarget(revision int64) *family {
	var found *family
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

// restore copies a set's template and annotations, without those that deployments put on sets.
func (d rollback) restore(changed *Deployment, from *family) {
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
