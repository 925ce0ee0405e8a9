package manager

import (
	"sync"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/orphan"
)

// missing are machines whose VMs no listing names, or names as unhealthy, on their way
// from the pass that listed VMs to those of the machines. Losing them costs time only.
type missing struct {
	mu   sync.Mutex
	all  map[object.Key]*missed
	sick map[object.Key]*sick
	wake func(object.Key) // has a machine looked at; nil: it is in its time
}

// missed is a machine whose VM is missing, and what the provider said when asked.
type missed struct {
	orphan.Unlisted
	found    bool // or it can't be told: nothing follows from the last listing
	notFound bool
}

// sick is a machine whose VM is unhealthy in the last listing.
type sick struct {
	orphan.Unhealthy
	asked bool // the provider, since that listing
}

// wakes sets who has machines looked at whose VMs are missing or unhealthy.
func (s *missing) wakes(wake func(object.Key)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = wake
}

// note takes in what listings do not name, or name as unhealthy. Of a machine of which
// a further listing says so too the provider is asked again.
func (s *missing) note(unlisted []orphan.Unlisted, unhealthy []orphan.Unhealthy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteSick(unhealthy)
	before := s.all
	s.all = make(map[object.Key]*missed)
	for _, u := range unlisted {
		if u.Missing.IsZero() {
			continue
		}
		if known := before[u.Machine]; known != nil && known.Unlisted == u {
			s.all[u.Machine] = known
			continue
		}
		s.all[u.Machine] = &missed{Unlisted: u}
		s.look(u.Machine)
	}
}

// noteSick takes in what listings name as unhealthy.
func (s *missing) noteSick(unhealthy []orphan.Unhealthy) {
	before := s.sick
	s.sick = make(map[object.Key]*sick)
	for _, u := range unhealthy {
		if known := before[u.Machine]; known != nil && known.Unhealthy == u {
			s.sick[u.Machine] = known
			continue
		}
		s.sick[u.Machine] = &sick{Unhealthy: u}
		s.look(u.Machine)
	}
}

// look has a machine looked at.
func (s *missing) look(key object.Key) {
	if s.wake != nil {
		s.wake(key)
	}
}

// unhealthy reports whether the last listing named a machine's VM as unhealthy, and the
// provider was not asked since.
func (s *missing) unhealthy(m *machine.Machine) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.sick[m.Key]
	return known != nil && !known.asked && known.UID == m.UID && known.ProviderID == m.Spec.ProviderID
}

// of is what a machine's own pass is to know; nil: its VM is not missing.
func (s *missing) of(m *machine.Machine) *machine.MissingVM {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.all[m.Key]
	if known == nil || known.found || known.UID != m.UID || known.ProviderID != m.Spec.ProviderID {
		return nil
	}
	return &machine.MissingVM{Since: known.Since, NotFound: known.notFound}
}

// asked takes in how GetMachineStatus was answered for a machine.
func (s *missing) asked(key object.Key, answer codes.Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.sick[key]; known != nil {
		known.asked = true
	}
	if known := s.all[key]; known != nil {
		known.notFound = answer == codes.NotFound
		known.found = !known.notFound
	}
}
