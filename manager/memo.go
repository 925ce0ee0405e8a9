package manager

import (
	"sync"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// told is how many different events about one object are remembered as told.
const told = 32

// memo is what a reconciler remembers of its objects between passes. Losing it
// shortens a backoff or repeats an event; that of names that came to be has them
// settled at once, or used again for as long as creates may be on their way.
type memo struct {
	mu   sync.Mutex
	keys map[object.Key]*recollection
}

type recollection struct {
	kind     machine.OperationKind // what failed last, and how often in a row
	stage    machine.Stage
	failures int

	refusal    *deployment.Refusal // of an order
	generation int64               // that it was seen with

	events        map[string]bool // told already
	statusWritten time.Time
	recorded      time.Time // of a machine: when its VM was
	gathering     time.Time // since when orders wait for others
	created       created
}

// created is up to which ordinal the names of one reservation of one set are known
// to have come to be machines. Of any other, also one that was put back, it says
// nothing.
type created struct {
	uid     string
	of      machineset.Reservation
	ordinal int64
}

func (m *memo) of(key object.Key) *recollection {
	if m.keys == nil {
		m.keys = make(map[object.Key]*recollection)
	}
	r := m.keys[key]
	if r == nil {
		r = &recollection{}
		m.keys[key] = r
	}
	return r
}

// recall is what is remembered of an object; zero: nothing.
func (m *memo) recall(key object.Key) recollection {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.keys[key]; r != nil {
		return *r
	}
	return recollection{}
}

func (m *memo) failures(key object.Key) int { return m.recall(key).failures }

// failuresBefore counts the failures in a row before a pass; counted says that
// this pass has added its own.
func (m *memo) failuresBefore(key object.Key, counted bool) int {
	n := m.failures(key)
	if counted {
		n--
	}
	return n
}

// failed counts one more failure in a row of one stage and returns how many
// there are now.
func (m *memo) failed(key object.Key, kind machine.OperationKind, stage machine.Stage) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(key)
	if r.kind != kind || r.stage != stage {
		r.kind, r.stage, r.failures = kind, stage, 0
	}
	r.failures++
	return r.failures
}

// accepted ends a row of failures; what was told of them may be told again.
func (m *memo) accepted(key object.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.keys[key]; r != nil && r.failures > 0 {
		r.failures, r.events, r.refusal = 0, nil, nil
	}
}

// refuse remembers a refusal and the generation it was seen with.
func (m *memo) refuse(key object.Key, r *deployment.Refusal, generation int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(key).refusal, m.of(key).generation = r, generation
}

// refusal is what was refused last, if that was with this generation.
func (m *memo) refusal(key object.Key, generation int64) *deployment.Refusal {
	if r := m.recall(key); r.generation == generation {
		return r.refusal
	}
	return nil
}

// first tells whether this event has not been told yet, and remembers it.
func (m *memo) first(key object.Key, event string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(key)
	if r.events[event] {
		return false
	}
	if r.events == nil || len(r.events) >= told {
		r.events = make(map[string]bool)
	}
	r.events[event] = true
	return true
}

func (m *memo) wroteStatus(key object.Key, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(key).statusWritten = at
}

func (m *memo) recorded(key object.Key, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(key).recorded = at
}

func (m *memo) gather(key object.Key, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(key).gathering = since
}

func (m *memo) noteCreated(s *machineset.Set, ordinal int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(s.Key).created = created{s.UID, s.Reservation, ordinal}
}

// createdFor is up to which ordinal names of the set's last reservation came to be.
func (m *memo) createdFor(s *machineset.Set) int64 {
	c := m.recall(s.Key).created
	if c.uid == s.UID && c.of.Reserved == s.Reservation.Reserved && c.of.At.Equal(s.Reservation.At) {
		return c.ordinal
	}
	return 0
}

// forget drops what is known of an object that is gone, or has succeeded.
func (m *memo) forget(key object.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.keys, key)
}
