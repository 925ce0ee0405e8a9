package machines

import (
	"sync"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/backoff"
)

// paces are what this process knows of the limits of providers, by credentials.
type paces struct {
	mu      sync.Mutex
	of      map[object.Key]*backoff.Pace
	waiting map[object.Key]bool // machines that a limit has held back since their last call
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

// ask returns when a machine's turn is; zero: now.
func (s *paces) ask(m, of object.Key, calls int, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	pace := s.of[of]
	if pace == nil {
		return time.Time{}
	}
	at := pace.Ask(m, calls, now)
	if !at.IsZero() {
		s.wait(m)
	}
	return at
}

func (s *paces) wait(m object.Key) {
	if s.waiting == nil {
		s.waiting = make(map[object.Key]bool)
	}
	s.waiting[m] = true
}

// note notes how a call ended, and returns how long the provider asks to wait.
func (s *paces) note(m, of object.Key, err error, began, now time.Time) time.Duration {
	wait := codes.RetryAfter(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[object.Key]*backoff.Pace)
	}
	pace := s.of[of]
	if pace == nil {
		pace = new(backoff.Pace)
		s.of[of] = pace
	}
	if wait <= 0 {
		pace.Called(now)
		delete(s.waiting, m)
		return 0
	}
	pace.Slow(wait, began, now)
	s.wait(m)
	return wait
}
