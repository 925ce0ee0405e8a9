package engine

import (
	"sync"

	"github.com/millwright-go/millwright/object"
)

// maxTold bounds how many different events about one object are remembered as told.
const maxTold = 32

// Memory is what a process remembers of the objects of a kind between passes. Losing it shortens a
// backoff, or repeats an event.
type Memory struct {
	mu   sync.Mutex
	keys map[object.Key]*remembered
}

type remembered struct {
	step     string // what failed last, and how often in a row
	failures int
	told     map[string]bool
}

func (m *Memory) of(key object.Key) *remembered {
	if m.keys == nil {
		m.keys = make(map[object.Key]*remembered)
	}
	r := m.keys[key]
	if r == nil {
		r = &remembered{}
		m.keys[key] = r
	}
	return r
}

// Failures returns how often in a row an object's passes have failed.
func (m *Memory) Failures(key object.Key) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.keys[key]; r != nil {
		return r.failures
	}
	return 0
}

// Failed counts one more failure in a row of one step, and returns how many there are now.
func (m *Memory) Failed(key object.Key, step string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(key)
	if r.step != step {
		r.step, r.failures = step, 0
	}
	r.failures++
	return r.failures
}

// Succeeded ends a row of failures. What was told of them may be told again.
func (m *Memory) Succeeded(key object.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.keys[key]; r != nil && r.failures > 0 {
		r.failures, r.told = 0, nil
	}
}

// first reports whether this event has not been told yet, and remembers it.
func (m *Memory) first(key object.Key, event string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(key)
	if r.told[event] {
		return false
	}
	if r.told == nil || len(r.told) >= maxTold {
		r.told = make(map[string]bool)
	}
	r.told[event] = true
	return true
}

// Forget drops what is remembered of an object that is gone, or has succeeded.
func (m *Memory) Forget(key object.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.keys, key)
}

// Notes are what a kind itself remembers of its objects. Each object's begin as the zero value.
type Notes[N any] struct {
	mu   sync.Mutex
	keys map[object.Key]N
}

// Of returns the notes about an object.
func (n *Notes[N]) Of(key object.Key) N {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.keys[key]
}

// Change changes the notes about an object.
func (n *Notes[N]) Change(key object.Key, change func(*N)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.keys == nil {
		n.keys = make(map[object.Key]N)
	}
	of := n.keys[key]
	change(&of)
	n.keys[key] = of
}

// Forget drops the notes about an object.
func (n *Notes[N]) Forget(key object.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.keys, key)
}
