package store

import "fmt"

// Tracked returns how many entries the changeLog holds, and how many of them
// are gone.
func (m *Memory[T]) Tracked() (entries, gone int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var none T
	for e := m.changes.first; e != nil; e = e.position.next {
		entries++
		if e.object == none {
			gone++
		}
	}
	return entries, gone
}

// Seen returns how many objects the watches remember. It must not run while a watch is read.
func (m *Memory[T]) Seen() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n := 0
	for _, w := range m.changes.watches {
		n += len(w.seen)
	}
	return n
}

// Buckets returns how many values the indexes hold, including that of the zero Query.
func (m *Memory[T]) Buckets() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n := 0
	for _, b := range m.indexes.buckets {
		n += len(b)
	}
	return n
}

// Intact checks what must hold of the changeLog between two calls.
func (m *Memory[T]) Intact() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	l, seq, live, gone := &m.changes, uint64(0), 0, 0
	var none T
	var prev *entry[T]
	for e := l.first; e != nil; prev, e = e, e.position.next {
		switch {
		case e.position.prev != prev:
			return fmt.Errorf("the entry after %d has a wrong prev", seq)
		case e.position.seq <= seq, e.position.addedAt > e.position.seq:
			return fmt.Errorf("sequence number %d, added at %d, follows %d", e.position.seq, e.position.addedAt, seq)
		case e.object == none:
			gone++
		default:
			live++
		}
		seq = e.position.seq
	}
	if l.last != prev || seq > l.lastSeq {
		return fmt.Errorf("the list ends at %d, which is not last, or is beyond lastSeq", seq)
	}
	if live != len(m.objects) || gone != l.tombstones {
		return fmt.Errorf("the list has %d objects and %d tombstones, want %d and %d", live, gone, len(m.objects), l.tombstones)
	}
	return l.watchesIntact()
}

func (l *changeLog[T]) watchesIntact() error {
	for i, w := range l.watches {
		next := l.first
		for next != nil && next.position.seq <= w.cursor {
			next = next.position.next
		}
		switch {
		case w.next != next:
			return fmt.Errorf("watch %d does not stand before the first entry beyond its cursor", i)
		case w.cursor > l.maxRead:
			return fmt.Errorf("watch %d is beyond maxRead", i)
		case w.idle && next != nil:
			return fmt.Errorf("watch %d is idle although it is behind", i)
		}
	}
	return nil
}
