package store

import (
	"context"
	"iter"
	"math"
	"sync"

	"github.com/millwright-go/millwright/object"
)

// Follower is a cache of objects that other processes write as well. Whoever follows the store tells it what a
// list or a watch of the store has shown; whoever writes tells it the answers. It answers the reads of a
// Collection by the rules of one: reads never show less than an own write that has returned, and watches never
// go back. NewFollower makes it. It is safe for concurrent use.
//
// R is what the store keeps of an object beside the T, such as its form on the wire; or struct{}.
type Follower[T object.Object[T], R any] struct {
	mirror *Mirror[T]
	filled sync.Once
	synced chan struct{} // closed once all objects were read

	mu      sync.Mutex
	current map[object.Key]State[T, R] // of the objects in the mirror
	ahead   map[object.Key]State[T, R] // own writes that the watch has not shown yet
	writing map[object.Key]*inFlight
}

// State is what a store has under a key at some time.
type State[T object.Object[T], R any] struct {
	Key    object.Key
	Object T // nil: there is none
	// UID is that of the object, or of the one that has ended; empty if that is not known.
	UID string
	// Order tells older states of this key from newer ones, which have a higher number, also across the end of an
	// object and the beginning of the next. Zero: it is not known.
	Order uint64
	Raw   R
}

// inFlight are the own writes to a key whose answers are not known yet.
type inFlight struct {
	writes int
	gone   uint64 // the order at which the key was last shown to have no object
}

// NewFollower returns a Follower that has read nothing. Reads and watches wait for the first Replace. The rules
// for indexes are those of NewMemory.
func NewFollower[T object.Object[T], R any](indexes map[Index]func(T) []string) *Follower[T, R] {
	return &Follower[T, R]{
		mirror: NewMirror(indexes), synced: make(chan struct{}),
		current: make(map[object.Key]State[T, R]), ahead: make(map[object.Key]State[T, R]),
		writing: make(map[object.Key]*inFlight),
	}
}

// Get implements Reader.
func (f *Follower[T, R]) Get(ctx context.Context, k object.Key) (T, error) {
	if err := f.ready(ctx); err != nil {
		var none T
		return none, err
	}
	return f.mirror.Get(ctx, k)
}

// List implements Reader.
func (f *Follower[T, R]) List(ctx context.Context, q Query) ([]T, error) {
	if err := f.ready(ctx); err != nil {
		return nil, err
	}
	return f.mirror.List(ctx, q)
}

// Watch implements Collection's Watch. It never yields an error: while the store shows nothing, it delivers
// nothing.
func (f *Follower[T, R]) Watch(ctx context.Context) iter.Seq2[Change[T], error] {
	return func(yield func(Change[T], error) bool) {
		if f.ready(ctx) == nil {
			f.mirror.Watch(ctx)(yield)
		}
	}
}

// State returns what is known under a key, and false if there is no object, or nothing was read yet.
func (f *Follower[T, R]) State(k object.Key) (State[T, R], bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, found := f.current[k]
	return s, found
}

// Synced is closed once Replace was called.
func (f *Follower[T, R]) Synced() <-chan struct{} { return f.synced }

// ready returns once all objects were read, or with the error of ctx.
func (f *Follower[T, R]) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-f.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Replace takes over a list of all objects. Keys that it lacks had no object at the order at; zero says that
// this is not known. Own writes of a higher order, which the list can't show yet, stay.
func (f *Follower[T, R]) Replace(all []State[T, R], at uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := make(map[object.Key]State[T, R], len(all))
	for _, s := range all {
		f.noteGone(s)
		if s.exists() {
			next[s.Key] = s
		}
	}
	for k, w := range f.writing {
		if _, found := next[k]; !found {
			w.gone = max(w.gone, at)
		}
	}
	for k, own := range f.ahead {
		listed, found := next[k]
		if !found {
			listed = State[T, R]{Key: k, Order: at}
		}
		switch {
		case own.Order > 0 && own.Order <= at || !own.hides(listed): // a list knows what was written before it
			delete(f.ahead, k)
		case own.exists():
			next[k] = own
		default:
			delete(next, k)
		}
	}
	objects := make([]T, 0, len(next))
	for _, s := range next {
		objects = append(objects, s.Object)
	}
	f.current = next
	f.mirror.Replace(objects)
	f.filled.Do(func() { close(f.synced) })
}

// Forget is to be called before Replace if the store may have lost writes, such as after an older copy of it was
// restored: no own write is known to have happened.
func (f *Follower[T, R]) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.ahead)
	for _, w := range f.writing {
		w.gone = math.MaxUint64
	}
}

// Show takes over what a watch has shown. States of one key must come in their order.
func (f *Follower[T, R]) Show(s State[T, R]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noteGone(s)
	if own, found := f.ahead[s.Key]; found {
		if own.hides(s) {
			return
		}
		delete(f.ahead, s.Key)
	}
	f.set(s)
}

// Writing is to be called before an own write to a key, and the function that it returns once Wrote was called
// with the answer, or there is none.
func (f *Follower[T, R]) Writing(k object.Key) (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.writing[k]
	if w == nil {
		w = &inFlight{}
		f.writing[k] = w
	}
	w.writes++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if w.writes--; w.writes == 0 {
			delete(f.writing, k)
		}
	}
}

// Wrote takes over the answer to an own write, unless something newer is known.
func (f *Follower[T, R]) Wrote(s State[T, R]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, found := f.current[s.Key]
	own, isAhead := f.ahead[s.Key]
	w := f.writing[s.Key]
	switch {
	case !f.isSynced():
		return // the list that comes has it
	case !s.exists() && s.Order == 0: // the end of one object, at an order that is not known
		if !found || known.UID != s.UID {
			return
		}
	case s.Order == 0 || found && known.Order >= s.Order || isAhead && own.hides(s) || w != nil && w.gone >= s.Order:
		return
	}
	f.ahead[s.Key] = s
	f.set(s)
}

func (f *Follower[T, R]) isSynced() bool {
	select {
	case <-f.synced:
		return true
	default:
		return false
	}
}

// exists reports whether there is an object.
func (s *State[T, R]) exists() bool {
	var none T
	return s.Object != none
}

// hides reports whether an own write is newer than a state that the store shows.
func (s *State[T, R]) hides(shown State[T, R]) bool {
	if !s.exists() && s.UID != "" && s.UID == shown.UID {
		return shown.exists() // nothing comes after the end of an object
	}
	return s.Order > shown.Order && shown.Order > 0 || s.Order > 0 && shown.Order == 0
}

// noteGone remembers that a key was shown to have no object, for writes that are in flight.
func (f *Follower[T, R]) noteGone(s State[T, R]) {
	if w := f.writing[s.Key]; w != nil && !s.exists() {
		w.gone = max(w.gone, s.Order)
	}
}

// set makes s the state of its key. The caller holds f.mu.
func (f *Follower[T, R]) set(s State[T, R]) {
	if s.exists() {
		f.current[s.Key] = s
		f.mirror.Put(s.Object)
		return
	}
	delete(f.current, s.Key)
	f.mirror.Drop(s.Key)
}
