package deployment

import (
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// removal deletes the sets of a deployment that is being deleted, and releases its record last.
type removal struct {
	*summary
	report *report
}

// pausedSets names the oldest set that is paused, and so is not deleted.
func (d removal) pausedSets() string {
	for i := range d.sets {
		if f := &d.sets[i]; f.paused {
			return "; set " + f.set.Name + " is paused"
		}
	}
	return ""
}

// remove deletes the sets of a deployment that is being deleted. It releases its record when a live
// read finds none left. It creates and claims nothing. Sets that are to stay behind are left alone
// until they have no owner.
func (d removal) remove() Plan {
	if !d.deployment.HasFinalizer(Finalizer) {
		return Plan{Why: decision.Why{Reason: reasonNotOurs}}
	}
	if d.deployment.HasFinalizer(object.OrphanDependents) {
		return d.rest(decision.Why{Reason: reasonLeaving}, decision.Why{})
	}
	if len(d.sets) == 0 {
		changed := d.deployment.Clone()
		changed.RemoveFinalizer(Finalizer)
		return d.live(Plan{Write: &Update{Deployment: changed}, Why: decision.Why{Reason: reasonReleased}})
	}
	d.holdIfRefused()
	if plan, found := d.deleteSets(); found {
		return d.live(plan)
	}
	if plan, found := d.report.report(d.report.counted()); found {
		return plan
	}
	if d.held() {
		return d.rest(d.hold, d.hold)
	}
	return d.rest(decision.Why{Reason: reasonGoing, Count: int64(len(d.sets)), Detail: d.pausedSets()}, decision.Why{})
}

func (d removal) deleteSets() (Plan, bool) {
	if d.held() {
		return Plan{}, false
	}
	var plan Plan
	for i := range d.sets {
		if s := d.sets[i].set; !s.Deleted() && !d.sets[i].paused {
			plan.Delete = append(plan.Delete, Order{s, decision.Why{Reason: ReasonDelete, Name: s.Name}})
		}
	}
	if len(plan.Delete) == 0 {
		return Plan{}, false
	}
	plan.Why = plan.Delete[0].Why
	return plan, true
}
