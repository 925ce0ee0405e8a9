package machine_test

import (
	"errors"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

var errConflict = errors.New("conflict")

// storeModel holds one machine and all its versions, so that reads can be
// stale. A nil version: it was gone.
type storeModel struct {
	w        *world
	versions []*machine.Machine
	writes   int
}

// cached reads the machine as it was so many versions ago; nil: there is none.
func (s *storeModel) cached(lag int) *machine.Machine {
	if len(s.versions) == 0 {
		return nil
	}
	return s.versions[max(0, len(s.versions)-1-lag)]
}

func (s *storeModel) live() *machine.Machine { return s.cached(0) }

// put stores the next version, whole seconds only, as every store does.
func (s *storeModel) put(m *machine.Machine) *machine.Machine {
	m.Version = strconv.Itoa(len(s.versions) + 1)
	s.versions = append(s.versions, m)
	s.writes++
	return m
}

func (s *storeModel) create(m *machine.Machine) {
	m = m.Clone()
	m.UID, m.Generation, m.CreatedAt = "uid-"+m.Name, 1, s.seconds()
	s.put(m)
}

// force stores any version at all, as an older program or a bad disk might.
func (s *storeModel) force(m *machine.Machine) { s.put(m.Clone()) }

func (s *storeModel) seconds() time.Time { return s.w.now.Truncate(time.Second) }

func (s *storeModel) current(version string) (*machine.Machine, error) {
	m := s.live()
	if m == nil || m.Version != version {
		return nil, errConflict
	}
	return m, nil
}

// update stores metadata and spec; nil: with that, the machine is gone.
func (s *storeModel) update(m *machine.Machine) (*machine.Machine, error) {
	was, err := s.current(m.Version)
	if err != nil {
		return nil, err
	}
	next := m.Clone()
	next.CopyStatus(was)
	next.Generation, next.CreatedAt, next.DeletedAt = was.Generation, was.CreatedAt, was.DeletedAt
	if !next.SpecEqual(was) {
		next.Generation++
	}
	if was.HasFinalizer(machine.Finalizer) && !next.HasFinalizer(machine.Finalizer) {
		s.released(was)
	}
	if next.Deleted() && len(next.Finalizers) == 0 {
		s.writes++
		s.versions = append(s.versions, nil)
		return nil, nil
	}
	return s.put(next), nil
}

func (s *storeModel) updateStatus(version string, status machine.Status) (*machine.Machine, error) {
	was, err := s.current(version)
	if err != nil {
		return nil, err
	}
	next := was.Clone()
	next.Status = status.Clone()
	return s.put(next), nil
}

// remove asks for the machine's deletion.
func (s *storeModel) remove() {
	m := s.live()
	if m == nil || m.Deleted() {
		return
	}
	next := m.Clone()
	if len(next.Finalizers) == 0 {
		s.writes++
		s.versions = append(s.versions, nil)
		return
	}
	next.DeletedAt = s.seconds()
	next.Generation++
	s.put(next)
}

// released holds the removal of the finalizer to P14 and P16.
func (s *storeModel) released(m *machine.Machine) {
	t, p := s.w.t, s.w.provider
	require.Empty(t, p.alive(m), "P14: the finalizer went while a VM exists")
	if m.Status.NeverCreated && m.Spec.ProviderID == "" {
		require.False(t, p.mayHaveMade, "P16: recorded that none was created, but a create may have made a VM")
		return
	}
	require.True(t, p.deletedOK, "P16: the finalizer went before a delete was answered")
}

func conditions(list []object.Condition) []string {
	var types []string
	for _, c := range list {
		types = append(types, c.Type+" "+string(c.Status))
	}
	return types
}
