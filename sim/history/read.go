package history

import (
	"slices"
	"time"
)

// Last returns the last sample, or a zero one if there is none.
func (h *History) Last() Sample {
	if n := len(h.Samples); n > 0 {
		return h.Samples[n-1]
	}
	return Sample{}
}

// Clone returns a deep copy of h.
func (h *History) Clone() *History {
	c := *h
	c.Samples, c.Marks = slices.Clone(h.Samples), slices.Clone(h.Marks)
	return &c
}

// end returns the time until which the i-th sample holds.
func (h *History) end(i int) time.Duration {
	if i+1 < len(h.Samples) {
		return h.Samples[i+1].After
	}
	return max(h.Length, h.Samples[i].After)
}

// Tally is the summary of a history.
type Tally struct {
	// Reached is when the floor was reached for the first time, since the start. It is negative if
	// that never happened.
	Reached time.Duration
	// Below is for how long the fleet was below its floor after that, Short is by how many machines
	// at most, and MinAvailable is the lowest number of available machines. Below leaves out times
	// that were too short for a sample.
	Below               time.Duration
	Short, MinAvailable int
	// Above is for how long the fleet was above its ceiling, Over is by how many machines at most,
	// and MaxTotal is the highest number of machines. MaxWithTerminating includes the machines that
	// are being deleted. Above leaves out times that were too short for a sample.
	Above                              time.Duration
	Over, MaxTotal, MaxWithTerminating int
	// Times is how often each kind of thing happened.
	Times [kindCount]int
}

// Tally returns the summary of the history. Its durations are as exact as the stride.
func (h *History) Tally() Tally {
	t := Tally{Reached: -1}
	for i := range h.Samples {
		s := &h.Samples[i]
		held := h.end(i) - s.After
		if t.Reached < 0 && s.Available() >= s.Floor && s.Wanted > 0 {
			t.Reached, t.MinAvailable = s.After, s.Available()
		} else if t.Reached >= 0 {
			t.MinAvailable, t.Short = min(t.MinAvailable, s.MinAvailable), max(t.Short, s.Short)
		}
		if t.Reached >= 0 && s.Available() < s.Floor {
			t.Below += held
		}
		if s.Total() > s.Ceiling {
			t.Above += held
		}
		t.MaxTotal, t.Over = max(t.MaxTotal, s.MaxTotal), max(t.Over, s.Over)
		t.MaxWithTerminating = max(t.MaxWithTerminating, s.MaxTotal, s.Total()+s.Terminating)
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
