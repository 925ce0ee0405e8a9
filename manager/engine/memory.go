package engine

import (
	"sync"

	"github.com/millwright-go/millwright/object"
)

// maxReported bounds how many different events about one object are remembered as emitted.
const maxReported = 32

// Memory is what a process remembers of the objects of a kind between passes. Losing it shortens a
// backoff, or repeats an event.
type Memory struct {
	mu   sync.Mutex
	keys map[object.Key]*remembered
}

type remembered struct {
	step     string // what failed last
	failures int    // how often in a row
	reported map[string]bool
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

// Succeeded ends a row of failures. Events about them may be emitted again.
func (m *Memory) Succeeded(key object.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.keys[key]; r != nil && r.failures > 0 {
		r.failures, r.reported = 0, nil
	}
}

// first reports whether this event has not been emitted yet, and remembers it.
func (m *Memory) first(key object.Key, event string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(key)
	if r.reported[event] {
		return false
	}
	if r.reported == nil || len(r.reported) >= maxReported {
		r.reported = make(map[string]bool)
	}
	r.reported[event] = true
	return true
}

// Forget drops what is remembered of an object that is gone, or has succeeded.
func (m *Memory) Forget(key object.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.keys, key)
}

// Notes are what a kind itself remembers of its objects. The notes about an object begin as the zero value.
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

// Permits limits how many hold a permit at a time, in each group: drains of the nodes of a zone, updates
// of the VMs of a fleet. The zero value is ready to use, by several goroutines at a time.
//
// Permits are kept in this process's memory. A new process learns from [Ask.Read] who uses one, which
// caches may show late: a few more may be given then. So this is not for what must survive, such as a
// permit to replace a machine, which is stored.
//
// H is what is kept with a permit, about its holder.
type Permits[H any] struct {
	mu   sync.Mutex
	held map[string]Permit[H] // by the holder's ID; nil: not read yet
}

// Permit is a permit that is held.
type Permit[H any] struct {
	Group  string
	Holder H

	aside bool // see SetAside
}

// Ask is a question for a permit.
type Ask[H any] struct {
	ID     string // of who asks
	Group  string
	Limit  int
	Holder H
	// Again replaces what is kept of a holder that asks once more. False: it stays as it was.
	Again bool
	// Read returns who uses a permit already, by ID. It is asked before the first permit is given.
	Read func() (map[string]Permit[H], error)
	// Uses reports whether a holder still uses its permit. If not, it has lost the permit.
	Uses func(id string, holder H) bool
}

// Take gives a permit if fewer than the limit are held in the group. A holder that asks again has one.
// An error is that of Ask.Read, which the next ask calls again. Read and Uses read nothing but caches:
// all others wait meanwhile.
func (p *Permits[H]) Take(a *Ask[H]) (given bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		held, err := a.Read()
		if err != nil {
			return false, err
		}
		p.held = make(map[string]Permit[H], len(held))
		for id, permit := range held {
			p.held[id] = permit
		}
	}
	switch held, has := p.held[a.ID]; {
	case has && !held.aside && !a.Again:
		return true, nil
	case has && !held.aside:
	case p.inUse(a) >= a.Limit:
		return false, nil
	}
	p.held[a.ID] = Permit[H]{Group: a.Group, Holder: a.Holder}
	return true, nil
}

// inUse counts the permits of a group that others hold (see SetAside), and drops those no longer used.
func (p *Permits[H]) inUse(a *Ask[H]) int {
	n, aside := 0, 0
	for id, held := range p.held {
		switch {
		case id == a.ID:
		case !a.Uses(id, held.Holder):
			delete(p.held, id)
		case held.Group != a.Group:
		case held.aside:
			aside++
		default:
			n++
		}
	}
	return n + max(aside-a.Limit, 0)
}

// SetAside marks the permits of holders for which of returns true, because their passes panicked: a few
// whose passes always panic must not keep all others waiting. Up to the limit, marked permits are not
// counted; beyond it they are. The holder of a marked permit has to ask again.
func (p *Permits[H]) SetAside(of func(holder H) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, held := range p.held {
		if of(held.Holder) {
			held.aside = true
			p.held[id] = held
		}
	}
}

// Release gives a permit back, if there is one.
func (p *Permits[H]) Release(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.held, id)
}
