package deployment

import (
	"math"

	"github.com/millwright-go/millwright/decision"
)

// revisionOf returns the revision of a set when it is the new one: its own if that is above all
// others, else the next. For nil it is that of a set not created yet. After the last number there
// is no next, and two sets share it.
func (d *decider) revisionOf(f *family) int64 {
	own, others := int64(0), int64(0)
	for i := range d.sets {
		if g := &d.sets[i]; g == f {
			own = g.set.Revision
		} else {
			others = max(others, g.set.Revision)
		}
	}
	switch {
	case own > others:
		return own
	case others == math.MaxInt64:
		return others
	}
	return others + 1
}

// number gives a set that has become the new one its revision, unless that
// went with another order.
func (d *decider) number() (Plan, bool) {
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
func (d *decider) recordRevision() (Plan, bool) {
	if d.held() || d.throttled > 0 || d.current == nil || d.deployment.Revision == d.revision {
		return Plan{}, false
	}
	changed := d.deployment.Clone()
	changed.Revision = d.revision
	why := decision.Why{Reason: reasonRecord, Name: d.current.set.Name, Number: d.revision}
	return Plan{Write: &Update{Deployment: changed}, Why: why}, true
}
