package machines

import (
	"sync"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// paces are what this process knows of machines that the limits of providers hold back.
type paces struct {
	mu      sync.Mutex
	waiting map[object.Key]bool // since their last call
	asked   map[object.Key]asked
}

// asked is what a machine's pass had learned of its VM when it had to wait with the create.
type asked struct {
	version string // of the machine
	vm      *machine.VM
	at      time.Time
}

// askedFor is how long that is believed: create calls are safe to repeat, but not to delay for long.
const askedFor = 2 * time.Minute

// keep keeps an answer for the machine's next pass, so that each pass gets further than the one
// before, though the provider takes one call at a time.
func (s *paces) keep(m *machine.Machine, vm *machine.VM, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = make(map[object.Key]asked)
	}
	a, known := s.asked[m.Key]
	if !known || a.vm != vm {
		a.at = now
	}
	s.asked[m.Key] = asked{m.Version, vm, a.at}
}

// kept returns that answer, if the machine was not written since.
func (s *paces) kept(m *machine.Machine, now time.Time) *machine.VM {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, found := s.asked[m.Key]
	if found && a.version == m.Version && now.Sub(a.at) < askedFor {
		return a.vm
	}
	delete(s.asked, m.Key)
	return nil
}

func (s *paces) waits(m object.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting[m]
}

// wait notes whether a machine is held back.
func (s *paces) wait(m object.Key, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !held {
		delete(s.waiting, m)
		return
	}
	if s.waiting == nil {
		s.waiting = make(map[object.Key]bool)
	}
	s.waiting[m] = true
}
