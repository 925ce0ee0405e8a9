package deployment

import (
	"github.com/millwright-go/millwright/decision"
)

// revision numbers the new set, and records its number on the deployment.
type revision struct{ *summary }

// number gives a set that has become the new one its revision, unless that
// went with another order.
func (d revision) number() (Plan, bool) {
	if d.held() || d.current == nil || d.current.set.Revision == d.revision {
		return Plan{}, false
	}
	changed := d.current.set.Clone()
	changed.Revision = d.revision
	why := decision.Why{Reason: reasonRevision, Name: changed.Name, Number: d.revision}
	return Plan{Push: []Order{{changed, why}}, Why: why}, true
}

// recordRevision copies the new set's revision to the deployment, after the
// status has told of the rollout.
func (d revision) recordRevision() (Plan, bool) {
	if d.held() || d.current == nil || d.deployment.Revision == d.revision {
		return Plan{}, false
	}
	changed := d.deployment.Clone()
	changed.Revision = d.revision
	why := decision.Why{Reason: reasonRecord, Name: d.current.set.Name, Number: d.revision}
	return Plan{Write: &Update{Deployment: changed}, Why: why}, true
}
