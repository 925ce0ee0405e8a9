package machineset

import (
	"errors"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Validate returns an *object.FieldError that names the first field which
// can't be acted upon, or else the first entry of the node template that no API
// server accepts. With such an entry a set makes no machine.
func (s *Set) Validate() error {
	err := s.invalidField()
	if err == nil {
		err = s.Spec.Template.InvalidEntry()
	}
	if err == nil {
		return nil
	}
	return err.Of("set", s.Key)
}

func (s *Set) invalidField() *object.FieldError {
	switch r := &s.Instructions.Reservation; {
	case s.Name == "":
		return object.Invalid("metadata.name", "must not be empty")
	case s.UID == "":
		return object.Invalid("metadata.uid", "must not be empty")
	case s.Spec.Replicas < 0:
		return object.Invalid("spec.replicas", "must not be negative")
	case s.Spec.AutoPreserve < 0:
		return object.Invalid("spec.autoPreserve", "must not be negative")
	case s.Spec.MinReady < 0:
		return object.Invalid("spec.minReady", "must not be negative")
	case s.Spec.MaxAge < 0:
		return object.Invalid("spec.maxAge", "must not be negative")
	case s.Spec.MaxAge > 0 && s.Spec.MaxAge < time.Minute:
		return object.Invalid("spec.maxAge", "must be at least a minute")
	case r.Settled < 0 || r.Reserved < r.Settled || r.Reserved > maxOrdinal:
		return object.Invalid("reservation", "holds numbers that no process can have written")
	}
	if bad := s.Spec.invalidSelector(); bad != nil {
		return bad
	}
	return s.Spec.Template.invalidField()
}

// AboveLimit says that a size is above a policy's limit; nil: it is not, or the
// limit is zero or object.Off, which is none.
func AboveLimit(replicas, limit int32) *object.FieldError {
	if limit <= 0 || replicas <= limit {
		return nil
	}
	return object.Invalid("spec.replicas", "must be at most "+strconv.Itoa(int(limit))+", the policy's limit, and is "+strconv.Itoa(int(replicas)))
}

func (s *Spec) invalidSelector() *object.FieldError {
	const field = "spec.selector"
	if s.Selector.Empty() {
		return object.Invalid(field, "must not be empty")
	}
	if err := s.Selector.Validate(field); err != nil {
		var bad *object.FieldError
		if !errors.As(err, &bad) {
			bad = object.Invalid(field, err.Error())
		}
		return bad
	}
	if !s.Selector.Matches(s.Template.Labels) {
		return object.Invalid("spec.template.labels", "must match spec.selector")
	}
	return nil
}

// InvalidEntry returns the first entry of the node template that no API server
// accepts on a node, or nil: see machine.NodeTemplate.InvalidEntry.
func (t *Template) InvalidEntry() *object.FieldError {
	return t.Spec.NodeTemplate.InvalidEntry("spec.template.spec.nodeTemplate")
}

func (t *Template) invalidField() *object.FieldError {
	c := &t.Spec.Config
	switch {
	case t.Spec.Class.Name == "":
		return object.Invalid("spec.template.spec.class.name", "must not be empty")
	case t.Spec.ProviderID != "":
		return object.Invalid("spec.template.spec.providerID", "must be empty: it is one machine's")
	case t.Spec.NodeName != "":
		return object.Invalid("spec.template.spec.nodeName", "must be empty: it is one machine's")
	case t.Spec.Marks != (machine.RolloutMarks{}):
		return object.Invalid("spec.template.spec.marks", "must be empty: instructions.marks of the set is for that")
	case t.Spec.InPlace != machine.InPlaceNone:
		return object.Invalid("spec.template.spec.inPlace", "must be empty: it is one machine's")
	case c.CreationTimeout < 0:
		return object.Invalid("spec.template.spec.config.creationTimeout", "must not be negative")
	case c.HealthTimeout < 0:
		return object.Invalid("spec.template.spec.config.healthTimeout", "must not be negative")
	case c.DrainTimeout < 0:
		return object.Invalid("spec.template.spec.config.drainTimeout", "must not be negative")
	case c.PreserveTimeout < 0:
		return object.Invalid("spec.template.spec.config.preserveTimeout", "must not be negative")
	}
	return nil
}
