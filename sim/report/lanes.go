package report

import (
	"slices"

	"github.com/millwright-go/millwright/sim/history"
)

// lane is a row of marks below the plot.
type lane struct {
	kind  history.Kind
	name  string
	times int
	marks []history.Mark
}

const (
	laneHeight = 32.0 // in pixels
	maxLanes   = 14   // of faults
)

// laneKinds are the kinds in the order of their lanes, the gravest first.
var laneKinds = [...]struct {
	kind history.Kind
	name string
}{
	{history.Violation, "violations"}, {history.Edit, "changes by the owner"}, {history.Freeze, "frozen"},
	{history.Outage, "outages"}, {history.Kill, "kills of the manager"},
}

// lanes puts the marks into lanes: one for each kind that occurs, except for faults. These have one
// lane for each text, the most frequent first. Beyond maxLanes, the rarest faults share one lane.
func lanes(h *history.History) (out []lane) {
	for _, k := range laneKinds {
		l := lane{kind: k.kind, name: k.name}
		for _, m := range h.Marks {
			if m.Kind == k.kind {
				l.add(m)
			}
		}
		if l.times > 0 {
			out = append(out, l)
		}
	}
	var faults []lane
	at := map[string]int{}
	for _, m := range h.Marks {
		if m.Kind != history.Fault {
			continue
		}
		i, known := at[m.What]
		if !known {
			i = len(faults)
			at[m.What] = i
			faults = append(faults, lane{name: printable(m.What)})
		}
		faults[i].add(m)
	}
	slices.SortStableFunc(faults, func(a, b lane) int { return b.times - a.times })
	if len(faults) > maxLanes {
		rest := lane{name: "other faults"}
		for _, l := range faults[maxLanes-1:] {
			for _, m := range l.marks {
				rest.add(m)
			}
		}
		slices.SortStableFunc(rest.marks, func(a, b history.Mark) int { return int(min(max(a.After-b.After, -1), 1)) })
		faults = append(faults[:maxLanes-1], rest)
	}
	return append(out, faults...)
}

func (l *lane) add(m history.Mark) {
	l.marks = append(l.marks, m)
	l.times += max(m.Times, 1)
}

// lane draws a row of marks, with its name above them.
func (c *fleetChart) lane(l *lane, top float64) {
	name := l.name
	if l.times > 1 {
		name += " × " + decimal(l.times)
	}
	y := top + 18
	c.printf(`<text class="ink" x="%f" y="%f">%s</text>`, c.left, top+9, fitted(name, c.right-c.left, letter))
	c.printf(`<path class="grid" d="M%f %fH%f"/>`+"\n", c.left, y, c.right)
	for i := 0; i < len(l.marks); {
		m := l.marks[i]
		what, end := m.What, c.x(m.Until)
		for i++; i < len(l.marks) && c.x(l.marks[i].After) < end+2; i++ { // a reader can't tell them apart
			next := &l.marks[i]
			if next.What != what {
				what = "several things"
			}
			m.Until, m.Times = max(m.Until, next.Until), m.Times+next.Times
			end = c.x(m.Until)
		}
		c.mark(&m, what, y)
	}
}

// mark draws one mark. Its shape shows its kind, and its tooltip shows the rest.
func (c *fleetChart) mark(m *history.Mark, what string, y float64) {
	from, until := c.x(m.After), c.x(m.Until)
	switch {
	case m.Kind == history.Edit && until-from < 6:
		c.printf(`<path class="edit" d="M%f %fl-5 -8h10Z">`, from, y+4)
	case m.Kind == history.Kill && until-from < 6:
		c.printf(`<path class="kill" d="M%f %fl8 8m0 -8l-8 8">`, from-4, y-4)
	case m.Kind == history.Violation && until-from < 6:
		c.printf(`<path class="violation" d="M%f %fl6 6l-6 6l-6 -6Z">`, from, y-6)
	default:
		c.printf(`<path class="%s" d="M%f %fH%fv8H%fZ">`, m.Kind.String(), from-1, y-4, max(until, from)+1.5, from-1)
	}
	text := span(m.After, m.Until) + ": " + printable(what)
	if m.Times > 1 {
		text += " × " + decimal(m.Times)
	}
	c.printf("<title>%s</title></path>\n", text)
}
