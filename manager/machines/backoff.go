package machines

import (
	"sync"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/backoff"
)

// Backoff is what this process remembers of the creates of each class, for all of its passes. A
// class that nothing was refused of is not in it.
type Backoff struct {
	mu      sync.Mutex
	classes map[object.Key]backoff.State
	turns   map[object.Key]object.Key // the class of each machine that has a turn
	now     func() time.Time
	slowed  func(class object.Key, wait time.Duration) // may be nil
}

// NewBackoff returns what is known before the first create: nothing. slowed is told after how long the next
// machine of a class is tried; it may be nil.
func NewBackoff(now func() time.Time, slowed func(class object.Key, wait time.Duration)) *Backoff {
	return &Backoff{now: now, slowed: slowed, classes: make(map[object.Key]backoff.State), turns: make(map[object.Key]object.Key)}
}

// Of returns what is known of a class.
func (r *Backoff) Of(class object.Key) backoff.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.classes[class]
}

// Knows reports whether anything is known of a class.
func (r *Backoff) Knows(class object.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.classes[class]
	return known
}

// ask asks for a machine's turn.
func (r *Backoff) ask(m, class object.Key, ask func(backoff.State) (backoff.State, machine.CreateTurn)) *machine.CreateTurn {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.classes[class]
	if !found {
		return &machine.CreateTurn{Given: true}
	}
	after, turn := ask(known)
	if r.classes[class] = after; turn.Given {
		r.turns[m] = class
	}
	return &turn
}

// leave ends the turn of a machine that has one.
func (r *Backoff) leave(m object.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	class, has := r.turns[m]
	if !has {
		return
	}
	delete(r.turns, m)
	if known, found := r.classes[class]; found {
		r.classes[class] = known.Leave(m)
	}
}

// note notes an answer.
func (r *Backoff) note(class object.Key, code codes.Code, note func(backoff.State) backoff.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.classes[class]
	if !found && !backoff.Slows(code) {
		return
	}
	after := note(known)
	if after.Idle() {
		delete(r.classes, class)
	} else {
		r.classes[class] = after
	}
	if tell := r.slowed; tell != nil {
		tell(class, after.Wait(r.now()))
	}
}
