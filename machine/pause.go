package machine

import (
	"strconv"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// A machine that is paused is left as it is: no call is made for it, no phase
// and no stage moves, nothing is judged and nothing deleted, for any
// labels. Only its status says so. An effect that was under way when the pause was
// written still happens; what came of it is found out after the pause, as after
// a crash.

// Paused reports whether an annotation of the key asks for the object to be left
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

// asked reports whether the machine's annotation asks for a pause. A machine that is being deleted
// without our finalizer is not even written.
func (p pause) asked() bool {
	paused, _ := Paused(&p.m.Meta, p.p.Keys.Paused)
	return paused && !p.notOurs()
}

// begin leaves the machine alone, and records the condition once.
func (p pause) begin() Plan {
	why := decision.Why{Reason: reasonPaused, Name: p.p.Keys.Paused}
	want := object.Condition{
		Type: ConditionPaused, Status: object.True, Reason: reasonPaused.String(), Message: why.String(), Since: p.stamp(),
	}
	have := object.FindCondition(p.m.Status.Conditions, ConditionPaused)
	if have != nil && have.Status == want.Status && have.Message == want.Message {
		return Plan{Why: why}
	}
	return p.setStatus(why, func(s *Status) { s.Conditions = object.SetCondition(s.Conditions, want) })
}

// end ends a pause with the write that restarts the machine's clocks:
// nothing could be judged while they ran.
func (p pause) end() (Plan, bool) {
	if object.FindCondition(p.m.Status.Conditions, ConditionPaused) == nil || p.notOurs() {
		return Plan{}, false
	}
	return p.setStatus(decision.Why{Reason: reasonResumed}, func(s *Status) {
		s.Conditions = object.DropCondition(s.Conditions, ConditionPaused)
		s.ResumedAt = p.stamp()
	}), true
}

// notOurs reports whether the machine is being deleted without our finalizer.
func (p pause) notOurs() bool { return p.m.Deleted() && !p.m.HasFinalizer(Finalizer) }

// warnInvalid lets a plan warn of a pause that can't be read.
func (p pause) warnInvalid(plan *Plan) {
	if _, odd := Paused(&p.m.Meta, p.p.Keys.Paused); odd != "" && plan.Warn == (decision.Why{}) {
		plan.Warn = decision.Why{Reason: reasonOddPause, Name: p.p.Keys.Paused, Detail: odd}
	}
}
