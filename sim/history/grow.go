package history

import (
	"cmp"
	"slices"
	"time"
)

// These are the limits of a history.
const (
	maxSamples = 2048
	maxMarks   = 1024
)

// minStride is the initial value of Stride and of Gap.
const minStride = time.Second

// Add records the fleet's counts at s.After. If that is before the last sample, the time of the last
// sample is taken. MinAvailable, MaxTotal, Short and Over are computed here.
func (h *History) Add(s Sample) {
	h.Stride = max(h.Stride, minStride)
	s.After = max(s.After, 0)
	s.MinAvailable, s.MaxTotal = s.Available(), s.Total()
	s.Short, s.Over = max(s.Floor-s.MinAvailable, 0), max(s.MaxTotal-s.Ceiling, 0)
	if n := len(h.Samples); n > 0 {
		last := &h.Samples[n-1]
		s.After = max(s.After, last.After)
		if last.sameCounts(&s) {
			h.Length = max(h.Length, s.After)
			return
		}
	}
	h.Length = max(h.Length, s.After)
	h.Samples = append(h.Samples, s)
	if h.joinLast(); len(h.Samples) <= maxSamples {
		return
	}
	for len(h.Samples) > maxSamples {
		h.Stride *= 2
		all := h.Samples
		h.Samples = h.Samples[:0]
		for i := range all {
			h.Samples = append(h.Samples, all[i])
			h.joinLast()
		}
	}
}

// sameCounts reports whether two samples have the same counts and bounds.
func (s *Sample) sameCounts(other *Sample) bool {
	a, b := *s, *other
	a.After, a.MinAvailable, a.MaxTotal, a.Short, a.Over = b.After, b.MinAvailable, b.MaxTotal, b.Short, b.Over
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

// Take merges next, a later sample, into s: then s stands for the time of both.
func (s *Sample) Take(next *Sample) {
	both := *next
	both.After = s.After
	both.MinAvailable, both.MaxTotal = min(s.MinAvailable, next.MinAvailable), max(s.MaxTotal, next.MaxTotal)
	both.Short, both.Over = max(s.Short, next.Short), max(s.Over, next.Over)
	*s = both
}

// Note records that something happened. If there is no room left, marks of the same kind and words
// are merged, the closest ones first. If that is not enough, the last mark that is no violation is
// left out.
func (h *History) Note(m Mark) {
	h.Gap = max(h.Gap, minStride)
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
		return cmp.Or(cmp.Compare(a.After, b.After), -1) // after all marks of the same moment
	})
	h.Marks = slices.Insert(h.Marks, at, m)
	for len(h.Marks) > maxMarks && h.Gap <= h.Length {
		h.Gap *= 2
		h.joinMarks()
	}
	if len(h.Marks) > maxMarks {
		h.leaveOut()
	}
}

func (m *Mark) like(other *Mark) bool { return m.Kind == other.Kind && m.What == other.What }

// near reports whether other begins at most gap after m has ended, and not before m begins.
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

// leaveOut drops the last mark that is no violation, or the last one if all are violations.
func (h *History) leaveOut() {
	at := len(h.Marks) - 1
	for i := at; i >= 0; i-- {
		if h.Marks[i].Kind != Violation {
			at = i
			break
		}
	}
	h.Marks = slices.Delete(h.Marks, at, at+1)
	h.Dropped++
}
