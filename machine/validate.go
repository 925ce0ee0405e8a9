package machine

import "github.com/millwright-go/millwright/object"

// Validate returns an *object.FieldError that names the first field which
// can't be acted upon, or else the first entry of the node template that no API
// server accepts: see NodeTemplate.InvalidEntry.
func (m *Machine) Validate() error {
	err := m.invalidField()
	if err == nil {
		err = m.Spec.NodeTemplate.InvalidEntry(templatePath)
	}
	if err == nil {
		return nil
	}
	return err.Of("machine", m.Key)
}

const templatePath = "spec.nodeTemplate"

// unfit returns what no API server accepts on the machine's node, or nil. No VM is made meanwhile:
// its node could not be written, and it would be replaced again and again. A machine that has one
// works on.
func (s *situation) unfit() *object.FieldError {
	switch {
	case s.o.NoCluster:
		return nil
	case s.nameKey() != s.p.Keys.NodeMachine:
		return object.Invalid("metadata.name", "must be a valid value of label "+s.p.Keys.NodeMachine+" on its node")
	}
	return s.m.Spec.NodeTemplate.InvalidEntry(templatePath)
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
	case c.MaxEvictRetries < 0:
		return object.Invalid("spec.config.maxEvictRetries", "must not be negative")
	case !m.Spec.InPlace.known():
		return object.Invalid("spec.inPlace", "is unknown: "+string(m.Spec.InPlace))
	}
	return nil
}
