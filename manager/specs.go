package manager

import (
	"slices"
	"sync"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// specs splits the specs of classes by what the driver declares, once a version
// of a class: all machines that are made from it share the strings.
type specs struct {
	fields []string // nil: the driver can't update VMs

	mu    sync.Mutex
	split map[object.Key]splitSpec
}

type splitSpec struct {
	uid, version string
	spec         *machine.VMSpec
}

func newSpecs(d driver.Driver) *specs {
	return &specs{fields: slices.Clone(driver.UpdatableFields(d)), split: make(map[object.Key]splitSpec)}
}

// of is the split spec of a class; nil: there is no class, or nothing can be
// updated.
func (s *specs) of(c *machine.Class) *machine.VMSpec {
	if c == nil || len(s.fields) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.split[c.Key]
	if known.spec == nil || known.uid != c.UID || known.version != c.Version {
		spec := machine.SplitSpec(c, s.fields)
		if known.spec != nil && *known.spec == spec {
			spec = *known.spec // for the strings that machines share
		}
		known = splitSpec{c.UID, c.Version, &spec}
		s.split[c.Key] = known
	}
	return known.spec
}
