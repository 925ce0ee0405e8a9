package store

import "fmt"

// Tracked returns how many entries the timeline holds, and how many of them
// are gone.
func (m *Memory[T]) Tracked() (entries, gone int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var none T
	for e := m.timeline.first; e != nil; e = e.place.next {
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
	for _, w := range m.timeline.watches {
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

// Intact checks what must hold of the timeline between two calls.
func (m *Memory[T]) Intact() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	l, stamp, live, gone := &m.timeline, uint64(0), 0, 0
	var none T
	var prev *entry[T]
	for e := l.first; e != nil; prev, e = e, e.place.next {
		switch {
		case e.place.prev != prev:
			return fmt.Errorf("the entry after stamp %d has another before it", stamp)
		case e.place.stamp <= stamp, e.place.born > e.place.stamp:
			return fmt.Errorf("stamp %d, born %d follows %d", e.place.stamp, e.place.born, stamp)
		case e.object == none:
			gone++
		default:
			live++
		}
		stamp = e.place.stamp
	}
	if l.last != prev || stamp > l.stamp {
		return fmt.Errorf("the list ends at stamp %d, not with its last", stamp)
	}
	if live != len(m.objects) || gone != l.graves {
		return fmt.Errorf("%d live of %d, %d gone of %d", live, len(m.objects), gone, l.graves)
	}
	return l.watchesIntact()
}

func (l *timeline[T]) watchesIntact() error {
	for i, w := range l.watches {
		next := l.first
		for next != nil && next.place.stamp <= w.cursor {
			next = next.place.next
		}
		switch {
		case w.next != next:
			return fmt.Errorf("watch %d does not stand before the first entry beyond its cursor", i)
		case w.cursor > l.front:
			return fmt.Errorf("watch %d is beyond the front", i)
		case w.asleep && next != nil:
			return fmt.Errorf("watch %d sleeps although it is behind", i)
		}
	}
	return nil
}
