package store

import (
	"slices"

	"github.com/millwright-go/millwright/object"
)

// batchSize bounds how many changes a watch takes at once, and so how long it holds the lock.
const batchSize = 128

// timeline is the list of all entries, those changed last at its end. Each watch has a place in it
// and reads towards the end. A change moves its entry to the end, once, for all watches together.
// So a write costs almost nothing more for a watch that is behind, several changes of one object
// merge by themselves, and nothing is kept per change.
//
// Entries that are gone stay until every watch has read that. The lock of Memory guards the
// timeline.
type timeline[T object.Object[T]] struct {
	first, last *entry[T]
	stamp       uint64 // of the last entry ever appended
	front       uint64 // no watch has read beyond this stamp
	graves      int    // entries in the list that are gone
	watches     []*watch[T]
}

// place is where an entry stands in the timeline.
type place[T object.Object[T]] struct {
	prev, next *entry[T]
	stamp      uint64 // rises along the list
	born       uint64 // the first stamp of this entry
}

// watch is one reader of the timeline. wake, batch and seen belong to the goroutine that watches.
// The lock of Memory guards the rest.
type watch[T object.Object[T]] struct {
	next   *entry[T] // the first entry beyond cursor, or nil
	cursor uint64    // all entries up to this stamp have been read
	asleep bool      // has read everything and waits for wake
	wake   chan struct{}
	batch  []sight[T]
	seen   map[*entry[T]]T // what was delivered last
}

// sight is an entry and what it held when a watch read it.
type sight[T object.Object[T]] struct {
	entry  *entry[T]
	object T
}

// born appends a new entry.
func (l *timeline[T]) born(e *entry[T]) {
	l.append(e)
	e.place.born = e.place.stamp
}

// changed moves e to the end, unless every watch still has it ahead.
func (l *timeline[T]) changed(e *entry[T]) {
	if e.place.stamp > l.front {
		return
	}
	l.unlink(e)
	l.append(e)
}

// gone is changed for an entry that no longer holds an object. The entry leaves the list if no
// watch has read it.
func (l *timeline[T]) gone(e *entry[T]) {
	l.changed(e)
	l.graves++
	l.bury(e)
}

// bury removes an entry that is gone from the list, unless a watch still has to read that. A watch
// whose cursor is below the birth of the entry has never read the entry and need not. Hence a watch
// keeps no more in the list than the objects that existed at the time of its cursor.
func (l *timeline[T]) bury(e *entry[T]) {
	for _, w := range l.watches {
		if e.place.born <= w.cursor && w.cursor < e.place.stamp {
			return
		}
	}
	l.graves--
	l.unlink(e)
}

func (l *timeline[T]) append(e *entry[T]) {
	l.stamp++
	e.place.stamp = l.stamp
	e.place.prev, e.place.next = l.last, nil
	if l.last == nil {
		l.first = e
	} else {
		l.last.place.next = e
	}
	l.last = e
	for _, w := range l.watches {
		if w.next == nil {
			w.next = e
		}
		if w.asleep {
			w.asleep = false
			w.wake <- struct{}{} // there is room: a watch empties it before it sleeps
		}
	}
}

func (l *timeline[T]) unlink(e *entry[T]) {
	prev, next := e.place.prev, e.place.next
	if prev == nil {
		l.first = next
	} else {
		prev.place.next = next
	}
	if next == nil {
		l.last = prev
	} else {
		next.place.prev = prev
	}
	e.place.prev, e.place.next = nil, nil
	for _, w := range l.watches {
		if w.next == e {
			w.next = next
		}
	}
}

// read moves w on by one batch.
func (l *timeline[T]) read(w *watch[T]) {
	w.batch = w.batch[:0]
	var none T
	for w.next != nil && len(w.batch) < batchSize {
		e := w.next
		w.cursor, w.next = e.place.stamp, e.place.next
		w.batch = append(w.batch, sight[T]{entry: e, object: e.object})
		if e.object == none {
			l.bury(e)
		}
	}
	w.asleep = w.next == nil
	l.front = max(l.front, w.cursor)
}

// leave drops w and what only w still had to read.
func (l *timeline[T]) leave(w *watch[T]) {
	l.watches = slices.DeleteFunc(l.watches, func(x *watch[T]) bool { return x == w })
	var none T
	for e := w.next; e != nil && l.graves > 0; {
		next := e.place.next
		if e.object == none {
			l.bury(e)
		}
		e = next
	}
}

// join begins a watch before the first entry.
func (m *Memory[T]) join() *watch[T] {
	m.mu.RLock()
	size := len(m.objects)
	m.mu.RUnlock()
	w := &watch[T]{wake: make(chan struct{}, 1), seen: make(map[*entry[T]]T, size)}
	m.mu.Lock()
	defer m.mu.Unlock()
	w.next = m.timeline.first
	m.timeline.watches = append(m.timeline.watches, w)
	return w
}

func (m *Memory[T]) leave(w *watch[T]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timeline.leave(w)
}

// take returns the next batch, which the batch after it overwrites. The second result is false if
// the watch should wait for its wake first.
func (m *Memory[T]) take(w *watch[T]) ([]sight[T], bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timeline.read(w)
	return w.batch, !w.asleep
}

// see records what is delivered. It returns false if s is no news: an object that came and went
// unseen, or one that has not changed.
func (w *watch[T]) see(s sight[T]) (Change[T], bool) {
	var none T
	old := w.seen[s.entry]
	switch s.object {
	case old:
		return Change[T]{}, false
	case none:
		delete(w.seen, s.entry)
	default:
		w.seen[s.entry] = s.object
	}
	return Change[T]{Old: old, New: s.object}, true
}
