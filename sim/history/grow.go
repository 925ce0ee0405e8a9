package history

import (
	"cmp"
	"slices"
	"time"
)

// These are the limits of a history.
const (
	mostSamples = 2048
	mostMarks   = 1024
)

// finest is the first stride and the first gap.
const finest = time.Second

// Add records how the fleet stands at s.After. A sample from before the last one is taken for one
// of that moment. Values that a sample holds beyond that moment are counted here.
func (h *History) Add(s Sample) {
	h.Stride = max(h.Stride, finest)
	s.After = max(s.After, 0)
	s.Fewest, s.Most = s.Available(), s.Total()
	s.Short, s.Over = max(s.Floor-s.Fewest, 0), max(s.Most-s.Ceiling, 0)
	if n := len(h.Samples); n > 0 {
		last := &h.Samples[n-1]
		s.After = max(s.After, last.After)
		if last.stands(&s) {
			h.Length = max(h.Length, s.After)
			return
		}
	}
	h.Length = max(h.Length, s.After)
	h.Samples = append(h.Samples, s)
	if h.joinLast(); len(h.Samples) <= mostSamples {
		return
	}
	for len(h.Samples) > mostSamples {
		h.Stride *= 2
		all := h.Samples
		h.Samples = h.Samples[:0]
		for i := range all {
			h.Samples = append(h.Samples, all[i])
			h.joinLast()
		}
	}
}

// stands reports whether a fleet has the same counts as it had, at any time.
func (s *Sample) stands(other *Sample) bool {
	a, b := *s, *other
	a.After, a.Fewest, a.Most, a.Short, a.Over = b.After, b.Fewest, b.Most, b.Short, b.Over
	return a == b
}

// joinLast merges the last two samples if they lie in the same stride.
func (h *History) joinLast() {
	n := len(h.Samples)
	if n < 2 || h.Samples[n-2].After/h.Stride != h.Samples[n-1].After/h.Stride {
		return
	}
	h.Samples[n-2].Take(&h.Samples[n-1])
	h.Samples = h.Samples[:n-1]
}

// Take makes s, which came before next, stand for the time of both.
func (s *Sample) Take(next *Sample) {
	both := *next
	both.After = s.After
	both.Fewest, both.Most = min(s.Fewest, next.Fewest), max(s.Most, next.Most)
	both.Short, both.Over = max(s.Short, next.Short), max(s.Over, next.Over)
	*s = both
}

// Note records that something happened. If there is no room left, marks that lie closer and closer
// to each other are merged. Violations are the last to be left out.
func (h *History) Note(m Mark) {
	h.Gap = max(h.Gap, finest)
	m.After, m.Times = max(m.After, 0), max(m.Times, 1)
	m.Until = max(m.Until, m.After)
	h.Length = max(h.Length, m.Until)
	for i := len(h.Marks) - 1; i >= 0; i-- {
		if h.Marks[i].like(&m) {
			if h.Marks[i].near(&m, h.Gap) {
				h.Marks[i].take(&m)
				return
			}
			break
		}
	}
	at, _ := slices.BinarySearchFunc(h.Marks, m, func(a, b Mark) int {
		return cmp.Or(cmp.Compare(a.After, b.After), -1) // behind those of the same moment
	})
	h.Marks = slices.Insert(h.Marks, at, m)
	for len(h.Marks) > mostMarks && h.Gap <= h.Length {
		h.Gap *= 2
		h.joinMarks()
	}
	if len(h.Marks) > mostMarks {
		h.leaveOut()
	}
}

func (m *Mark) like(other *Mark) bool { return m.Kind == other.Kind && m.What == other.What }

// near reports whether a mark that does not begin before m comes so soon after it.
func (m *Mark) near(other *Mark, gap time.Duration) bool {
	return other.After >= m.After && other.After-m.Until <= gap
}

func (m *Mark) take(other *Mark) {
	m.Until, m.Times = max(m.Until, other.Until), m.Times+other.Times
}

// joinMarks merges all marks that are alike and near to each other.
func (h *History) joinMarks() {
	type key struct {
		kind Kind
		what string
	}
	last := map[key]int{}
	kept := h.Marks[:0]
	for _, m := range h.Marks {
		k := key{m.Kind, m.What}
		if i, ok := last[k]; ok && kept[i].near(&m, h.Gap) {
			kept[i].take(&m)
			continue
		}
		last[k] = len(kept)
		kept = append(kept, m)
	}
	clear(h.Marks[len(kept):])
	h.Marks = kept
}

// leaveOut drops the last mark that is no violation.
func (h *History) leaveOut() {
	at := len(h.Marks) - 1
	for i := at; i >= 0; i-- {
		if h.Marks[i].Kind != Violation {
			at = i
			break
		}
	}
	h.Marks = slices.Delete(h.Marks, at, at+1)
	h.Unkept++
}
