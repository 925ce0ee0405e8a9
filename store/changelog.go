package store

import (
	"slices"

	"github.com/millwright-go/millwright/object"
)

// batchSize bounds how many changes a watch takes at once, and so how long it holds the lock.
const batchSize = 128

// changeLog lists all entries, the most recently changed last. Each watch has a position in the list
// and reads towards the end. A change moves its entry to the end once, for all watches together. So
// a slow watch costs writers almost nothing, several changes of one object merge into one, and
// memory grows with the number of objects, not of changes.
//
// An entry whose object is gone stays as a tombstone until every watch has read it. The lock of
// Memory guards the list.
type changeLog[T object.Object[T]] struct {
	first, last *entry[T]
	lastSeq     uint64 // the highest sequence number given out
	maxRead     uint64 // no watch has read beyond this sequence number
	tombstones  int    // in the list
	watches     []*watch[T]
}

// position is where an entry stands in the list.
type position[T object.Object[T]] struct {
	prev, next *entry[T]
	seq        uint64 // sequence number: rises along the list
	addedAt    uint64 // the first sequence number of this entry
}

// watch is one reader of the list. wake, batch and seen belong to the goroutine that watches. The
// lock of Memory guards the rest.
type watch[T object.Object[T]] struct {
	next   *entry[T] // the first entry beyond cursor, or nil
	cursor uint64    // all entries up to this sequence number have been read
	idle   bool      // has read everything and waits for wake
	wake   chan struct{}
	batch  []snapshot[T]
	seen   map[*entry[T]]T // what was delivered last
}

// snapshot is an entry and the object that it held when a watch read it.
type snapshot[T object.Object[T]] struct {
	entry  *entry[T]
	object T
}

// added appends a new entry.
func (l *changeLog[T]) added(e *entry[T]) {
	l.append(e)
	e.position.addedAt = e.position.seq
}

// changed moves e to the end. An entry that no watch has read yet stays where it is.
func (l *changeLog[T]) changed(e *entry[T]) {
	if e.position.seq > l.maxRead {
		return
	}
	l.unlink(e)
	l.append(e)
}

// removed turns e, which no longer holds an object, into a tombstone. It is dropped at once if no
// watch has read the entry.
func (l *changeLog[T]) removed(e *entry[T]) {
	l.changed(e)
	l.tombstones++
	l.prune(e)
}

// prune drops a tombstone, unless a watch still has to read it. A watch whose cursor is below
// addedAt never read the object, so it needs no tombstone. Hence a watch keeps no more tombstones
// than there were objects at its cursor.
func (l *changeLog[T]) prune(e *entry[T]) {
	for _, w := range l.watches {
		if e.position.addedAt <= w.cursor && w.cursor < e.position.seq {
			return
		}
	}
	l.tombstones--
	l.unlink(e)
}

func (l *changeLog[T]) append(e *entry[T]) {
	l.lastSeq++
	e.position.seq = l.lastSeq
	e.position.prev, e.position.next = l.last, nil
	if l.last == nil {
		l.first = e
	} else {
		l.last.position.next = e
	}
	l.last = e
	for _, w := range l.watches {
		if w.next == nil {
			w.next = e
		}
		if w.idle {
			w.idle = false
			w.wake <- struct{}{} // never blocks: a watch empties it before it is idle again
		}
	}
}

func (l *changeLog[T]) unlink(e *entry[T]) {
	prev, next := e.position.prev, e.position.next
	if prev == nil {
		l.first = next
	} else {
		prev.position.next = next
	}
	if next == nil {
		l.last = prev
	} else {
		next.position.prev = prev
	}
	e.position.prev, e.position.next = nil, nil
	for _, w := range l.watches {
		if w.next == e {
			w.next = next
		}
	}
}

// read fills w.batch with the next entries.
func (l *changeLog[T]) read(w *watch[T]) {
	w.batch = w.batch[:0]
	var none T
	for w.next != nil && len(w.batch) < batchSize {
		e := w.next
		w.cursor, w.next = e.position.seq, e.position.next
		w.batch = append(w.batch, snapshot[T]{entry: e, object: e.object})
		if e.object == none {
			l.prune(e)
		}
	}
	w.idle = w.next == nil
	l.maxRead = max(l.maxRead, w.cursor)
}

// removeWatch drops w and the tombstones that only w still had to read.
func (l *changeLog[T]) removeWatch(w *watch[T]) {
	l.watches = slices.DeleteFunc(l.watches, func(x *watch[T]) bool { return x == w })
	var none T
	for e := w.next; e != nil && l.tombstones > 0; {
		next := e.position.next
		if e.object == none {
			l.prune(e)
		}
		e = next
	}
}

// startWatch returns a watch that stands before the first entry.
func (m *Memory[T]) startWatch() *watch[T] {
	m.mu.RLock()
	size := len(m.objects)
	m.mu.RUnlock()
	w := &watch[T]{wake: make(chan struct{}, 1), seen: make(map[*entry[T]]T, size)}
	m.mu.Lock()
	defer m.mu.Unlock()
	w.next = m.changes.first
	m.changes.watches = append(m.changes.watches, w)
	return w
}

func (m *Memory[T]) stopWatch(w *watch[T]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes.removeWatch(w)
}

// nextBatch returns the next batch, valid until the next call. more is false if the watch must wait
// for wake before it calls again.
func (m *Memory[T]) nextBatch(w *watch[T]) (batch []snapshot[T], more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes.read(w)
	return w.batch, !w.idle
}

// record remembers s as delivered, and returns the change that it is for this watch. It returns
// false if there is none: the object came and went unseen, or has not changed.
func (w *watch[T]) record(s snapshot[T]) (Change[T], bool) {
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
