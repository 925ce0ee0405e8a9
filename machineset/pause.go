package machineset

import (
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// A set that is paused gives no orders: it makes, deletes, claims, releases and
// changes no machine, also while it is being deleted. Its status is still written. Its
// machines are not paused by it: they are reconciled as usual, and one that
// fails is replaced when the pause is over.

// pause leaves a set as it is while its annotation asks for that.
type pause struct{ *counted }

// keepStatus decides about a paused set: it keeps the status up to date and does nothing else.
func (d pause) keepStatus() Plan {
	d.summary.count(&d.situation)
	if at := d.summary.nextAvailable; !at.IsZero() {
		d.lookAgain(at)
	}
	if plan, busy := report(d).status(); busy {
		return plan
	}
	why := d.tally(reasonPaused)
	why.Name = d.p.Keys.Paused
	return Plan{At: d.at, Why: why}
}

// resume takes the condition off a set that is not paused any more.
func (d pause) resume() (Plan, bool) {
	next := d.s.Status
	next.Conditions = withoutCondition(next.Conditions, ConditionPaused)
	if len(next.Conditions) == len(d.s.Status.Conditions) {
		return Plan{}, false
	}
	return Plan{Write: &UpdateStatus{next.Clone()}, Why: d.tally(reasonStatus)}, true
}

// warnInvalid lets a plan warn of a pause that can't be read.
func (d pause) warnInvalid(plan Plan) Plan {
	if _, odd := machine.Paused(&d.s.Meta, d.p.Keys.Paused); odd != "" && plan.Warn == (decision.Why{}) {
		plan.Warn = decision.Why{Reason: reasonOddPause, Name: d.p.Keys.Paused, Detail: odd}
	}
	return plan
}
