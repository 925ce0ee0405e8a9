package report

import (
	"io"
	"time"

	"github.com/millwright-go/millwright/sim/history"
)

// fleetBands are the areas in the chart of a history, the lowest first. The first two are the
// available machines. Bounds count all areas but the last.
var fleetBands = [...]struct {
	class, name string
	of          func(*history.Sample) int
}{
	{"old", "old, available", func(s *history.Sample) int { return s.OldAvailable }},
	{"new", "new, available", func(s *history.Sample) int { return s.NewAvailable }},
	{"moving", "updating in place", func(s *history.Sample) int { return s.Updating }},
	{"lacking", "pending", func(s *history.Sample) int { return s.Pending }},
	{"unknown", "unknown", func(s *history.Sample) int { return s.Unknown }},
	{"crashing", "crash loop", func(s *history.Sample) int { return s.CrashLoop }},
	{"failed", "failed", func(s *history.Sample) int { return s.Failed }},
	{"going", "terminating", func(s *history.Sample) int { return s.Terminating }},
}

// fleetChart is the chart of a history being drawn.
type fleetChart struct {
	canvas
	h       *history.History
	o       ChartOptions
	samples []history.Sample // to be drawn
	after   []time.Duration  // when each begins
	entries []entry
	lanes   []lane
	foot    float64 // where the lanes begin, in pixels from the top
	height  float64
}

// HistorySVG writes a history as a chart. It shows machines by phase as stacked areas, the available
// ones at the bottom, with lines for floor and ceiling. Below, it shows what happened, in one lane
// for each kind of event. The file is complete in itself, without scripts or external resources.
// The error is the writer's.
//
// ChartOptions.Height is the height without the lanes; ChartOptions.Width may be 300 and more.
func HistorySVG(w io.Writer, h *history.History, o ChartOptions) error {
	c := newFleetChart(h, o)
	title := o.Title
	if title == "" {
		title = fleetHeading(h)
	}
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %f" width="%d" height="%f" role="img" aria-labelledby="title desc">`+"\n",
		c.o.Width, c.height, c.o.Width, c.height)
	c.printf("<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n", title, describe(h))
	c.out.WriteString("<style>\n" + fleetStyle(o.Theme) + "</style>\n")
	c.printf(`<rect class="paper" width="%d" height="%f"/>`+"\n", c.o.Width, c.height)
	c.printf(`<text class="title" x="20" y="30">%s</text>`+"\n", fitted(title, float64(c.o.Width-40), 10))
	c.printf(`<text class="ink" x="20" y="51">%s</text>`+"\n", fittingParts(figuresLine(h), "; ", float64(c.o.Width-40), letter))
	c.draw()
	c.printf("</svg>\n")
	_, err := w.Write(c.out.Bytes())
	return err
}

// figuresLine returns the figures in one line of text.
func figuresLine(h *history.History) string {
	line := ""
	for i, f := range figures(h) {
		if i > 0 {
			line += "; "
		}
		line += f.name + " " + f.value
	}
	return line
}

// describe returns a chart in words, for those who can't see it.
func describe(h *history.History) string {
	text := "Machines by phase over time."
	for _, f := range figures(h) {
		text += " " + f.name + ": " + f.value + ", " + f.note + "."
	}
	return text
}

// The space around the plot of a history, in pixels.
const (
	fleetMarginLeft  = 56.0
	fleetMarginRight = 26.0
)

// longest is the longest time that fits on an axis, far beyond any real time.
const longest = 40 * 365 * day

func newFleetChart(h *history.History, o ChartOptions) *fleetChart {
	o.Width, o.Height = within(o.Width, 960, 300), within(o.Height, 460, 280)
	c := &fleetChart{h: h, o: o, lanes: lanes(h)}
	c.zero, c.until = "0", min(max(h.Length, time.Second), longest)
	c.left, c.right = fleetMarginLeft, float64(o.Width)-fleetMarginRight
	c.most = max(int64(h.Tally().MaxWithTerminating), int64(highestBound(h)), 1)
	c.most += c.most/20 + 1
	c.thin()
	for i := range c.samples {
		c.after = append(c.after, c.samples[i].After)
	}
	for _, b := range fleetBands {
		if c.some(b.of) {
			c.entries = append(c.entries, entry{class: b.class, name: b.name})
		}
	}
	c.entries = append(c.entries, entry{class: "floor", name: "floor"}, entry{class: "ceiling", name: "ceiling"})
	c.entries = placed(float64(o.Width), c.entries)
	c.top, c.bottom = c.entries[len(c.entries)-1].y+marginTop, float64(o.Height)-marginBottom
	c.foot = float64(o.Height)
	c.height = c.foot + float64(len(c.lanes))*laneHeight
	return c
}

// thin merges samples that fall into the same pixel.
func (c *fleetChart) thin() {
	for _, s := range c.h.Samples {
		if n := len(c.samples); n > 0 && int(c.x(c.samples[n-1].After)) == int(c.x(s.After)) {
			c.samples[n-1].Take(&s)
			continue
		}
		c.samples = append(c.samples, s)
	}
}

// some reports whether a count is above zero in any sample that is drawn.
func (c *fleetChart) some(of func(*history.Sample) int) bool {
	for i := range c.samples {
		if of(&c.samples[i]) > 0 {
			return true
		}
	}
	return false
}

func (c *fleetChart) draw() {
	c.grid()
	if len(c.samples) > 0 {
		c.areas()
		c.limits()
		c.blips()
	}
	c.moments()
	c.legend(c.entries)
	for i := range c.lanes {
		c.lane(&c.lanes[i], c.foot+float64(i)*laneHeight)
	}
}

// areas draws the bands, each on top of the one before.
func (c *fleetChart) areas() {
	lower, upper := make([]int64, len(c.samples)), make([]int64, len(c.samples))
	for _, b := range fleetBands {
		for i := range c.samples {
			upper[i] = lower[i] + int64(max(b.of(&c.samples[i]), 0))
		}
		if c.some(b.of) {
			c.area(b.class, c.after, lower, upper)
		}
		lower, upper = upper, lower
	}
}

// limits draws floor and ceiling, which change with what is wanted.
func (c *fleetChart) limits() {
	floor, ceiling := make([]int64, len(c.samples)), make([]int64, len(c.samples))
	for i := range c.samples {
		floor[i], ceiling[i] = int64(max(c.samples[i].Floor, 0)), int64(max(c.samples[i].Ceiling, 0))
	}
	c.line("halo", c.after, ceiling)
	c.line("halo", c.after, floor)
	c.line("line ceiling", c.after, ceiling)
	c.line("line floor", c.after, floor) // last: where both meet, the ceiling shows in the gaps of its dashes
}

// blips draws violations of the bounds that were too short to show in the areas: fewer machines
// available than the floor, or more machines than the ceiling.
func (c *fleetChart) blips() {
	for i := range c.samples {
		s := &c.samples[i]
		x := c.x(s.After)
		if s.Short > 0 && s.Available() >= s.Floor {
			c.printf(`<path class="blip" d="M%f %fV%f"/>`+"\n", x, c.y(int64(max(s.Floor, 0))), c.y(int64(max(s.Floor-s.Short, 0))))
		}
		if s.Over > 0 && s.Total() <= s.Ceiling {
			c.printf(`<path class="blip" d="M%f %fV%f"/>`+"\n", x, c.y(int64(max(s.Ceiling, 0))), c.y(int64(s.Ceiling)+int64(s.Over)))
		}
	}
}

// moments draws lines down the plot at changes by the owner and at violations.
func (c *fleetChart) moments() {
	type place struct {
		kind history.Kind
		x    int
	}
	drawn := map[place]bool{}
	for i := range c.h.Marks {
		m := &c.h.Marks[i]
		if m.Kind != history.Edit && m.Kind != history.Violation {
			continue
		}
		x := c.x(m.After)
		if at := (place{m.Kind, int(x)}); !drawn[at] {
			drawn[at] = true
			c.printf(`<path class="moment %s" d="M%f %fV%f"/>`+"\n", m.Kind.String()+"-moment", x, c.top, c.bottom)
		}
	}
}

// lift moves everything up by so many pixels.
func (c *fleetChart) lift(by float64) {
	for i := range c.entries {
		c.entries[i].y -= by
	}
	c.top -= by
	c.bottom -= by
	c.height -= by
	c.foot -= by
}
