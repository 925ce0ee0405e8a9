package history

import (
	"slices"
	"time"
)

// Last returns how the fleet stood in the end.
func (h *History) Last() Sample {
	if n := len(h.Samples); n > 0 {
		return h.Samples[n-1]
	}
	return Sample{}
}

// Clone returns a copy that shares nothing changeable with h.
func (h *History) Clone() *History {
	c := *h
	c.Samples, c.Marks = slices.Clone(h.Samples), slices.Clone(h.Marks)
	return &c
}

// end returns until when a sample holds.
func (h *History) end(i int) time.Duration {
	if i+1 < len(h.Samples) {
		return h.Samples[i+1].After
	}
	return max(h.Length, h.Samples[i].After)
}

// Tally sums a history up.
type Tally struct {
	// Reached is when, since the start, as many machines were available as the floor asks for, for
	// the first time. It is negative if that never happened.
	Reached time.Duration
	// Below is for how long fewer machines than that were available since, Short by how many at
	// most, and Fewest how few were available. Only Fewest includes times that were too short for a
	// sample.
	Below         time.Duration
	Short, Fewest int
	// Above is for how long there were more machines than the ceiling allows,
	// Over by how many at most, Most how many there were at most, and MostOfAll
	// with those being deleted.
	Above                 time.Duration
	Over, Most, MostOfAll int
	// Times is how often each kind of thing happened.
	Times [kindCount]int
}

// Tally sums the history up. Times are as exact as the stride.
func (h *History) Tally() Tally {
	t := Tally{Reached: -1}
	for i := range h.Samples {
		s := &h.Samples[i]
		held := h.end(i) - s.After
		if t.Reached < 0 && s.Available() >= s.Floor && s.Wanted > 0 {
			t.Reached, t.Fewest = s.After, s.Available()
		} else if t.Reached >= 0 {
			t.Fewest, t.Short = min(t.Fewest, s.Fewest), max(t.Short, s.Short)
		}
		if t.Reached >= 0 && s.Available() < s.Floor {
			t.Below += held
		}
		if s.Total() > s.Ceiling {
			t.Above += held
		}
		t.Most, t.Over = max(t.Most, s.Most), max(t.Over, s.Over)
		t.MostOfAll = max(t.MostOfAll, s.Most, s.Total()+s.Terminating)
	}
	for i := range h.Marks {
		if m := &h.Marks[i]; int(m.Kind) < kindCount {
			t.Times[m.Kind] += m.Times
		}
	}
	return t
}

// Count is how often one thing happened.
type Count struct {
	Kind        Kind
	What        string
	Times       int
	First, Last time.Duration
}

// Counts returns how often each thing happened, in the order of its first time.
func (h *History) Counts() []Count {
	var out []Count
	at := map[Count]int{}
	for i := range h.Marks {
		m := &h.Marks[i]
		key := Count{Kind: m.Kind, What: m.What}
		n, known := at[key]
		if !known {
			n = len(out)
			at[key] = n
			out = append(out, Count{Kind: m.Kind, What: m.What, First: m.After})
		}
		out[n].Times += m.Times
		out[n].Last = max(out[n].Last, m.Until)
	}
	return out
}
