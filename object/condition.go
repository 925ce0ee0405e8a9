package object

import (
	"slices"
	"time"
)

// ConditionStatus is the status of a Condition. The empty value counts as Unknown.
type ConditionStatus string

// These are the three answers that a condition can give.
const (
	True    ConditionStatus = "True"
	False   ConditionStatus = "False"
	Unknown ConditionStatus = "Unknown"
)

// Condition is one observation about an object.
type Condition struct {
	Type    string
	Status  ConditionStatus
	Reason  string    // one word, for programs
	Message string    // a sentence, for people
	Since   time.Time // when Status last changed, whole seconds
}

// FindCondition returns the condition of that type, or nil. The pointer leads into the slice.
func FindCondition(conditions []Condition, typ string) *Condition {
	for i := range conditions {
		if conditions[i].Type == typ {
			return &conditions[i]
		}
	}
	return nil
}

// SameVerdicts reports whether two lists have conditions of the same types in the same order, each
// with the same status and reason. Messages may differ.
func SameVerdicts(a, b []Condition) bool {
	return slices.EqualFunc(a, b, func(a, b Condition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
	})
}

// SetCondition returns conditions with c in place of the one of its type, or appended. Since keeps
// its value while Status does not change, and is c.Since otherwise. The slice passed in is not
// changed.
func SetCondition(conditions []Condition, c Condition) []Condition {
	out := make([]Condition, 0, len(conditions)+1)
	found := false
	for _, old := range conditions {
		if old.Type != c.Type {
			out = append(out, old)
			continue
		}
		if found {
			continue // a type occurs once
		}
		if old.Status == c.Status {
			c.Since = old.Since
		}
		out = append(out, c)
		found = true
	}
	if !found {
		out = append(out, c)
	}
	return out
}

// DropCondition returns conditions without the one of that type.
func DropCondition(conditions []Condition, typ string) []Condition {
	out := make([]Condition, 0, len(conditions))
	for _, c := range conditions {
		if c.Type != typ {
			out = append(out, c)
		}
	}
	return out
}

// TaintEffect says what a taint does to pods that do not tolerate it.
type TaintEffect string

// These are the effects that a scheduler knows.
const (
	NoSchedule       TaintEffect = "NoSchedule"
	PreferNoSchedule TaintEffect = "PreferNoSchedule"
	NoExecute        TaintEffect = "NoExecute"
)

// Taint is a taint on a node. Key and Effect identify it; Value is its content.
type Taint struct {
	Key    string
	Value  string
	Effect TaintEffect
}

// Same reports whether both are the same taint, with any values.
func (t Taint) Same(u Taint) bool { return t.Key == u.Key && t.Effect == u.Effect }
