package machines

import (
	"sync"

	"github.com/millwright-go/millwright/object"
)

// paces are what this process knows of machines that the limits of providers hold back.
type paces struct {
	mu      sync.Mutex
	waiting map[object.Key]bool // since their last call
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
