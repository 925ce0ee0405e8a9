package machineset

import (
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// A set that is paused gives no orders: it makes, deletes, claims, releases and
// changes no machine, also while it is being deleted. Its status is still written. Its
// machines are not paused by it: they are reconciled as usual, and one that
// fails is replaced when the pause is over.
//
// A machine that is paused is deleted by no set, for any reason: the set
// is too large, is being deleted, or the machine failed or is to be replaced.
// It counts as one of the set's, so none is made in its place. If it is not
// available, it takes the place of one that would be deleted: a rollout assumes
// that a set which shrinks first deletes what is not available, so no other
// machine may be deleted instead.

// ConditionPaused is True while a set is left as it is. A set that is resumed takes it off before it gives
// any order. So while it is True, the set is deleting no machine, even if it was resumed and paused again.
const ConditionPaused = machine.ConditionPaused

// paused reports whether the set is to be left as it is. One that is being
// deleted without our finalizer is not even written.
func (d *decider) paused() bool {
	paused, _ := machine.Paused(&d.s.Meta, d.p.Keys.Paused)
	return paused && !(d.s.Deleted() && !d.s.HasFinalizer(Finalizer))
}

// pause decides about a paused set: it keeps the status up to date and does nothing else.
func (d *decider) pause() Plan {
	d.summarize()
	if at := d.summary.nextAvailable; !at.IsZero() {
		d.lookAgain(at)
	}
	if plan, busy := d.status(); busy {
		return plan
	}
	why := d.tally(reasonPaused)
	why.Name = d.p.Keys.Paused
	return Plan{At: d.at, Why: why}
}

// resume takes the condition off a set that is not paused any more.
func (d *decider) resume() (Plan, bool) {
	next := d.s.Status
	next.Conditions = withoutCondition(next.Conditions, ConditionPaused)
	if len(next.Conditions) == len(d.s.Status.Conditions) {
		return Plan{}, false
	}
	return Plan{Write: &UpdateStatus{next.Clone()}, Why: d.tally(reasonStatus)}, true
}

func (d *decider) pausedCondition(conditions []object.Condition) []object.Condition {
	if !d.paused() {
		return withoutCondition(conditions, ConditionPaused)
	}
	return withCondition(conditions, object.Condition{
		Type: ConditionPaused, Status: object.True, Reason: reasonPaused.String(),
		Message: "paused by annotation " + d.p.Keys.Paused + ": no machine is made or deleted", Since: d.stamp(),
	})
}

// oddPause lets a plan warn of a pause that can't be read.
func (d *decider) oddPause(plan Plan) Plan {
	if _, odd := machine.Paused(&d.s.Meta, d.p.Keys.Paused); odd != "" && plan.Warn == (decision.Why{}) {
		plan.Warn = decision.Why{Reason: reasonOddPause, Name: d.p.Keys.Paused, Detail: odd}
	}
	return plan
}

// spared are the machines that are paused and not being deleted.
type spared struct {
	count int
	idle  int    // of these, not available, or about to stop
	first string // of their names, in order
}

func (s *spared) add(m *machine.Machine, available bool) {
	if s.count++; s.count == 1 || m.Name < s.first {
		s.first = m.Name
	}
	if !available {
		s.idle++
	}
}

// spares reports whether a machine is paused.
func (d *decider) spares(m *machine.Machine) bool {
	paused, _ := machine.Paused(&m.Meta, d.p.Keys.Paused)
	return paused
}

// removable is how many machines of a surplus may be deleted now.
func (d *decider) removable(surplus int) int {
	c := &d.summary
	n := min(surplus-c.spared.idle, c.active-c.spared.count)
	if n < surplus {
		d.waiting = d.kept(surplus - max(n, 0))
	}
	return max(n, 0)
}

// kept is the reason why n machines stay that would go.
func (d *decider) kept(n int) decision.Why {
	why := d.tally(reasonSpared)
	why.Name, why.Count = d.summary.spared.first, int64(n)
	return why
}
