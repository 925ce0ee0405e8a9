package machine

import "github.com/millwright-go/millwright/object"

// Validate returns an *object.FieldError that names the first field which
// can't be acted upon.
func (m *Machine) Validate() error {
	err := m.invalidField()
	if err == nil {
		return nil
	}
	return err.Of("machine", m.Key)
}

func (m *Machine) invalidField() *object.FieldError {
	c := &m.Spec.Config
	switch {
	case m.Name == "":
		return object.Invalid("metadata.name", "must not be empty")
	case m.Spec.Class.Name == "":
		return object.Invalid("spec.class.name", "must not be empty")
	case c.CreationTimeout < 0:
		return object.Invalid("spec.config.creationTimeout", "must not be negative")
	case c.HealthTimeout < 0:
		return object.Invalid("spec.config.healthTimeout", "must not be negative")
	case c.DrainTimeout < 0:
		return object.Invalid("spec.config.drainTimeout", "must not be negative")
	case c.InPlaceTimeout < 0:
		return object.Invalid("spec.config.inPlaceTimeout", "must not be negative")
	case c.PreserveTimeout < 0:
		return object.Invalid("spec.config.preserveTimeout", "must not be negative")
	case !m.Spec.InPlace.known():
		return object.Invalid("spec.inPlace", "is unknown: "+string(m.Spec.InPlace))
	}
	return nil
}
