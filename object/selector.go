package object

import (
	"fmt"
	"maps"
	"slices"
)

// Operator is the operator of a Requirement.
type Operator string

// These are the operators of label selectors, as in Kubernetes.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
)

// Requirement is one condition on a label.
type Requirement struct {
	Key      string
	Operator Operator
	Values   []string // at least one for In and NotIn; none for the others
}

// Selector picks objects by their labels: all of Labels and all of Requirements must hold. The zero
// Selector matches nothing, so that a forgotten selector never claims a fleet.
type Selector struct {
	Labels       map[string]string
	Requirements []Requirement
}

// Empty reports whether the selector states no condition.
func (s *Selector) Empty() bool {
	return len(s.Labels) == 0 && len(s.Requirements) == 0
}

// Matches reports whether labels fulfil every condition. An empty or invalid selector matches
// nothing.
func (s *Selector) Matches(labels map[string]string) bool {
	if s.Empty() {
		return false
	}
	for k, v := range s.Labels {
		if got, ok := labels[k]; !ok || got != v || k == "" {
			return false
		}
	}
	for i := range s.Requirements {
		if !s.Requirements[i].matches(labels) {
			return false
		}
	}
	return true
}

func (r *Requirement) matches(labels map[string]string) bool {
	got, ok := labels[r.Key]
	listed, stated := slices.Contains(r.Values, got), len(r.Values) > 0
	switch {
	case r.Key == "":
		return false
	case r.Operator == In:
		return stated && ok && listed
	case r.Operator == NotIn:
		return stated && !(ok && listed)
	case r.Operator == Exists:
		return !stated && ok
	case r.Operator == DoesNotExist:
		return !stated && !ok
	}
	return false
}

// Validate returns a *FieldError for the first label or requirement that can't be evaluated. It accepts
// an empty selector; the caller decides whether one is allowed.
func (s *Selector) Validate(field string) error {
	if _, ok := s.Labels[""]; ok {
		return Invalid(field+".labels", "has an empty key")
	}
	for i, r := range s.Requirements {
		at := fmt.Sprintf("%s.requirements[%d]", field, i)
		switch r.Operator {
		case In, NotIn:
			if len(r.Values) == 0 {
				return Invalid(at+".values", "must not be empty for operator "+string(r.Operator))
			}
		case Exists, DoesNotExist:
			if len(r.Values) != 0 {
				return Invalid(at+".values", "must be empty for operator "+string(r.Operator))
			}
		default:
			return Invalid(at+".operator", fmt.Sprintf("%q is unknown", r.Operator))
		}
		if r.Key == "" {
			return Invalid(at+".key", "must not be empty")
		}
	}
	return nil
}

// Clone returns a copy that shares nothing with s.
func (s *Selector) Clone() Selector {
	c := Selector{Labels: maps.Clone(s.Labels), Requirements: slices.Clone(s.Requirements)}
	for i := range c.Requirements {
		c.Requirements[i].Values = slices.Clone(c.Requirements[i].Values)
	}
	return c
}

// Equal reports whether both state the same conditions in the same order.
func (s *Selector) Equal(t *Selector) bool {
	return maps.Equal(s.Labels, t.Labels) && slices.EqualFunc(s.Requirements, t.Requirements,
		func(a, b Requirement) bool {
			return a.Key == b.Key && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
		})
}
