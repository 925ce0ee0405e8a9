package object

import "errors"

// ErrInvalid matches every *FieldError with errors.Is.
var ErrInvalid = errors.New("invalid")

// FieldError says which field of which object is rejected, and why.
type FieldError struct {
	Kind    string // may be empty if the caller knows it
	Key     Key    // zero for a policy or an option
	Field   string // a path such as "spec.class.name"
	Problem string // completes "<field> …": "must not be empty"
}

// Invalid returns a *FieldError that does not name its object yet.
func Invalid(field, problem string) *FieldError {
	return &FieldError{Field: field, Problem: problem}
}

// Error returns a text such as "set fleet/a: spec.replicas must not be negative".
func (e *FieldError) Error() string {
	problem := e.Field + " " + e.Problem
	switch {
	case e.Kind == "" && e.Key == (Key{}):
		return problem
	case e.Kind == "":
		return e.Key.String() + ": " + problem
	case e.Key == (Key{}):
		return e.Kind + ": " + problem
	}
	return e.Kind + " " + e.Key.String() + ": " + problem
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

// Of returns a copy of the error that names its object.
func (e *FieldError) Of(kind string, key Key) *FieldError {
	named := *e
	named.Kind, named.Key = kind, key
	return &named
}
