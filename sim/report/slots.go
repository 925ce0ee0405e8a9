package report

import (
	"strconv"
	"strings"
	"time"

	"github.com/millwright-go/millwright/sim/history"
)

// slot is the part of a history that one row of the table shows.
type slot struct {
	from time.Duration
	// last holds the counts at the end of the slot. Its MinAvailable and MaxTotal are those of the
	// whole slot.
	last  history.Sample
	marks []history.Mark // those that began in the slot
	quiet bool           // whether nothing changed in the slot
}

// slots cuts a history into rows, about as many as asked for, at round times. It leaves out rows in
// which nothing happened, except for the first and the last.
func slots(h *history.History, rows int) []slot {
	step := roundTime(h.Length, rows)
	var out []slot
	var now history.Sample
	sample, mark := 0, 0
	for from := time.Duration(0); ; from += step {
		end := h.Length-from < step // whether this is the last slot
		s := slot{from: from, last: now, quiet: true}
		s.last.MinAvailable, s.last.MaxTotal = now.Available(), now.Total()
		for ; sample < len(h.Samples) && (end || h.Samples[sample].After < from+step); sample++ {
			s.take(h.Samples[sample])
		}
		for ; mark < len(h.Marks) && (end || h.Marks[mark].After < from+step); mark++ {
			s.marks = append(s.marks, h.Marks[mark])
			s.quiet = false
		}
		now = s.last
		if !s.quiet || end || len(out) == 0 {
			out = append(out, s)
		}
		if end {
			return out
		}
	}
}

func (s *slot) take(next history.Sample) {
	if s.quiet && next.After <= s.from {
		s.last = next // the counts before it belong to the slot before
	}
	s.last.Take(&next)
	s.quiet = false
}

// bounds returns floor and ceiling as text.
func (s *slot) bounds() string { return decimal(s.last.Floor) + ".." + decimal(s.last.Ceiling) }

// ill returns the number of machines that will be replaced unless they recover.
func ill(s *history.Sample) int { return s.Unknown + s.CrashLoop + s.Failed }

// happened returns the text for a slot's marks: faults as a number, all other things in words, each
// once.
func (s *slot) happened() string {
	var order []string
	times, faults := map[string]int{}, 0
	for i := range s.marks {
		m := &s.marks[i]
		if m.Kind == history.Fault {
			faults += m.Times
			continue
		}
		what := describeMark(m)
		if times[what] == 0 {
			order = append(order, what)
		}
		times[what] += m.Times
	}
	for i, what := range order {
		if n := times[what]; n > 1 {
			order[i] = what + " × " + strconv.Itoa(n)
		}
	}
	if faults > 0 {
		order = append(order, counted(faults, "fault"))
	}
	return strings.Join(order, "; ")
}

// describeMark returns the text of a mark, with its kind in front where the text does not say it.
func describeMark(m *history.Mark) string {
	what := printable(m.What)
	switch m.Kind {
	case history.Edit:
		return "owner: " + what
	case history.Outage:
		return "outage: " + what
	case history.Violation:
		return "VIOLATION: " + what
	case history.Fault, history.Kill, history.Freeze:
	}
	return what
}

// figure is one number of a history's summary, with its meaning.
type figure struct {
	name, value, note string
	bad               bool
}

// figures returns the numbers of a history's summary.
func figures(h *history.History) []figure {
	t, last := h.Tally(), h.Last()
	out := []figure{{name: "wanted", value: decimal(last.Wanted), note: decimal(last.Available()) + " available in the end"}}
	if t.Reached >= 0 {
		note := "the floor was reached after " + moment(t.Reached)
		if t.Short > 0 {
			note += ", and since then missed " + lasting(t.Below) + ", by " + decimal(t.Short) + " at most"
		} else {
			note += ", and never missed since"
		}
		out = append(out, figure{name: "fewest available", value: decimal(t.MinAvailable), note: note})
	} else {
		out = append(out, figure{name: "fewest available", value: "0", note: "the floor was never reached"})
	}
	note := "never above the ceiling"
	if t.Over > 0 {
		note = "above the ceiling " + lasting(t.Above) + ", by " + decimal(t.Over) + " at most"
	}
	if t.MaxWithTerminating > t.MaxTotal {
		note += ", " + decimal(t.MaxWithTerminating) + " with terminating ones"
	}
	out = append(out, figure{name: "most in all", value: decimal(t.MaxTotal), note: note})
	out = append(out, figure{name: "faults", value: decimal(t.Times[history.Fault] + t.Times[history.Outage]), note: counted(t.Times[history.Kill], "kill") + " of the manager"})
	violations := figure{name: "violations", value: decimal(t.Times[history.Violation]), note: "all held that must always hold"}
	if t.Times[history.Violation] > 0 {
		violations.bad, violations.note = true, "something was seen that must never be"
	}
	return append(out, violations)
}

// lasting returns how long something lasted, in words.
func lasting(d time.Duration) string {
	if d < time.Second {
		return "for a moment"
	}
	return "for " + moment(d)
}

// fleetHeading names a history: the fleet, how long the run was, and its seed.
func fleetHeading(h *history.History) string {
	return printable(h.Name) + ": " + moment(h.Length) + " simulated, seed " + strconv.FormatUint(h.Seed, 10)
}
