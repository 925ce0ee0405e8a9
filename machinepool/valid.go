package machinepool

import (
	"slices"
	"strconv"
	"strings"

	"github.com/millwright-go/millwright/object"
)

// Validate returns an *object.FieldError that names the first field which
// can't be acted upon.
func (s *Pool) Validate() error {
	err := s.invalidField()
	if err == nil {
		return nil
	}
	return err.Of("pool", s.Key)
}

func (r *RollingUpdate) invalidField() *object.FieldError {
	switch {
	case r == nil:
	case r.MaxSurge.Problem() != "":
		return object.Invalid("spec.rollingUpdate.maxSurge", r.MaxSurge.Problem())
	case r.MaxUnavailable.Problem() != "":
		return object.Invalid("spec.rollingUpdate.maxUnavailable", r.MaxUnavailable.Problem())
	}
	return nil
}

func (s *Pool) invalidField() *object.FieldError {
	boot := &s.Spec.Template.Bootstrap
	switch {
	case s.Name == "":
		return object.Invalid("metadata.name", "must not be empty")
	case s.Spec.ClusterName == "":
		return object.Invalid("spec.clusterName", "must not be empty")
	case s.Spec.Replicas != nil && *s.Spec.Replicas < 0:
		return object.Invalid("spec.replicas", "must not be negative")
	case s.Spec.MinReady < 0:
		return object.Invalid("spec.minReady", "must not be negative")
	case boot.DataSecret != nil && *boot.DataSecret != "" && strings.TrimSpace(*boot.DataSecret) == "":
		return object.Invalid("spec.template.bootstrap.dataSecret", "must not be blank; empty skips the bootstrap")
	}
	if bad := s.Spec.RollingUpdate.invalidField(); bad != nil {
		return bad
	}
	for i, domain := range s.Spec.FailureDomains {
		field := "spec.failureDomains"
		switch {
		case domain == "":
			return object.Invalid(field+"["+strconv.Itoa(i)+"]", "must not be empty")
		case slices.Contains(s.Spec.FailureDomains[:i], domain):
			return object.Invalid(field+"["+strconv.Itoa(i)+"]", "must not be named twice")
		}
	}
	return s.Spec.Template.NodeTemplate.InvalidEntry("spec.template.nodeTemplate")
}
