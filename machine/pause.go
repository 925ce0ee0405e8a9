package machine

import (
	"strconv"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// A machine that is paused is left as it is: no call is made for it, no phase
// and no stage moves, nothing is judged and nothing deleted, whatever labels
// say. Only its status says so. An effect that was under way when the pause was
// written still happens; what came of it is found out after the pause, as after
// a crash.

// Paused tells whether an annotation of the key asks for the object to be left
// as it is. odd is what it says if that can't be read: then it is not paused.
func Paused(m *object.Meta, key string) (paused bool, odd string) {
	text, ok := m.Annotations[key]
	if !ok || key == "" {
		return false, ""
	}
	paused, err := strconv.ParseBool(text)
	if err != nil {
		return false, strconv.Quote(text)
	}
	return paused, ""
}

// pause leaves a machine alone that is to be. A machine that is being deleted
// without our finalizer is not even written.
func (d *decider) pause() (Plan, bool) {
	if paused, _ := Paused(&d.m.Meta, d.p.Keys.Paused); !paused || d.notOurs() {
		return Plan{}, false
	}
	why := decision.Why{Reason: reasonPaused, Name: d.p.Keys.Paused}
	want := object.Condition{
		Type: ConditionPaused, Status: object.True, Reason: reasonPaused.String(), Message: why.String(), Since: d.stamp(),
	}
	have := object.FindCondition(d.m.Status.Conditions, ConditionPaused)
	if have != nil && have.Status == want.Status && have.Message == want.Message {
		return Plan{Why: why}, true
	}
	return d.setStatus(why, func(s *Status) { s.Conditions = object.SetCondition(s.Conditions, want) }), true
}

// resume ends a pause with the write that restarts the machine's clocks:
// nothing could be judged while they ran.
func (d *decider) resume() (Plan, bool) {
	if object.FindCondition(d.m.Status.Conditions, ConditionPaused) == nil || d.notOurs() {
		return Plan{}, false
	}
	return d.setStatus(decision.Why{Reason: reasonResumed}, func(s *Status) {
		s.Conditions = object.DropCondition(s.Conditions, ConditionPaused)
		s.ResumedAt = d.stamp()
	}), true
}

// notOurs tells whether the machine is being deleted without our finalizer.
func (d *decider) notOurs() bool { return d.m.Deleted() && !d.m.HasFinalizer(Finalizer) }

// oddPause lets a plan warn of a pause that can't be read.
func (d *decider) oddPause(plan Plan) Plan {
	if _, odd := Paused(&d.m.Meta, d.p.Keys.Paused); odd != "" && plan.Warn == (decision.Why{}) {
		plan.Warn = decision.Why{Reason: reasonOddPause, Name: d.p.Keys.Paused, Detail: odd}
	}
	return plan
}
