package report

import (
	"io"
	"strings"
	"time"

	"github.com/millwright-go/millwright/sim/preview"
)

// Theme selects the colours of a chart.
type Theme uint8

// These are the themes.
const (
	// Adaptive follows the reader's preference, and is light without one.
	Adaptive Theme = iota
	Light
	Dark
)

// ChartOptions say how a chart is drawn. The zero value has good defaults.
type ChartOptions struct {
	// Title stands above the chart. If it is empty, the chart names its rollout.
	Title string
	// Width and Height are in pixels, from 360 × 280 to 4000 × 4000. A value out of range is moved
	// into it. Zero: 960 × 460.
	Width, Height int
	// Theme selects the chart's colours. Zero: the reader's preference.
	Theme Theme
}

// SVG writes a timeline as a chart: machines over time as stacked areas. From the bottom up, these
// are the old available machines, the new available ones, those that are not available, and the
// terminating ones, which no bound counts. If the rollout keeps its bounds, the top of the second
// area never falls below the line of the floor, and the top of the third never rises above the line
// of the ceiling.
//
// The file is complete in itself, without scripts or external resources. The error is the writer's.
func SVG(w io.Writer, t *preview.Timeline, o ChartOptions) error {
	c := newChart(t, o)
	c.open()
	c.grid()
	c.areas()
	c.failures()
	c.limits()
	c.legend(c.entries)
	c.printf("</svg>\n")
	_, err := w.Write(c.out.Bytes())
	return err
}

// The space around the plot, in pixels. The right margin holds the names of the limits; marginTop is
// the space below the legend.
const (
	marginLeft   = 64.0
	marginRight  = 118.0
	marginTop    = 26.0
	marginBottom = 58.0
)

// chart is one chart being drawn.
type chart struct {
	canvas
	t     *preview.Timeline
	o     ChartOptions
	title string

	entries []entry // of the legend
}

func newChart(t *preview.Timeline, o ChartOptions) *chart {
	o.Width, o.Height = within(o.Width, 960, 360), within(o.Height, 460, 280)
	c := &chart{t: t, o: o, title: o.Title, entries: placed(float64(o.Width), names(t.Failed > 0))}
	c.zero = "now"
	c.left, c.right = marginLeft, float64(o.Width)-marginRight
	c.top, c.bottom = c.entries[len(c.entries)-1].y+marginTop, float64(o.Height)-marginBottom
	if c.title == "" {
		c.title = fittingParts(heading(t), ", ", float64(o.Width-40), 10)
	}
	c.until = t.Duration
	high := max(int64(t.Replicas), maxWithTerminating(t), 1)
	for i := range t.Samples {
		c.until = max(c.until, t.Samples[i].After)
	}
	if c.until == 0 {
		c.until = time.Minute
	}
	c.until += c.until / 25 // so that the end is visible
	c.most = high
	if int64(t.Ceiling) <= 2*high {
		c.most = max(high, int64(t.Ceiling))
	}
	c.most += c.most / 20
	return c
}

// within returns n, moved into the range from least to 4000, or the standard value if n is zero.
func within(n, standard, least int) int {
	if n == 0 {
		return standard
	}
	return min(max(n, least), 4000)
}

func (c *chart) open() {
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title desc">`+"\n",
		c.o.Width, c.o.Height, c.o.Width, c.o.Height)
	c.printf("<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n", c.title, c.description())
	c.out.WriteString(style(c.o.Theme))
	c.printf(`<rect class="paper" width="%d" height="%d"/>`+"\n", c.o.Width, c.o.Height)
	c.printf(`<text class="title" x="20" y="30">%s</text>`+"\n", fitted(c.title, float64(c.o.Width-40), 10))
	c.printf(`<text class="ink" x="20" y="51">%s</text>`+"\n", fittingParts(conclusion(c.t)+c.tally(), "; ", float64(c.o.Width-40), letter))
}

// tally returns what the second line of the chart adds to the outcome.
func (c *chart) tally() string {
	s := "; " + decimal(c.t.Created) + " created, " + decimal(c.t.Deleted) + " deleted"
	if c.t.Failed > 0 {
		s += ", " + decimal(c.t.Failed) + " failed"
	}
	return s
}

// description returns the chart in words, for those who can't see it.
func (c *chart) description() string {
	return "Machines over time, from now. " + strings.ReplaceAll(strings.TrimSuffix(Summary(c.t), "\n"), "\n", ". ") + "."
}

// letter is the approximate width of a letter of the chart's text, in pixels. The reader's browser
// chooses the font.
const letter = 6.6

// fittingParts cuts a text at a separator, so that it is no wider than so many pixels. If its first
// part is too wide, that is cut as fitted does.
func fittingParts(s, separator string, width, letter float64) string {
	for int(width/letter) < len([]rune(s)) {
		at := strings.LastIndex(s, separator)
		if at < 0 {
			break
		}
		s = s[:at]
	}
	return fitted(s, width, letter)
}

// fitted cuts a text that would be wider than so many pixels, and ends it with "…".
func fitted(s string, width, letter float64) string {
	runes := []rune(s)
	if most := int(width / letter); len(runes) > most {
		return string(runes[:max(most-1, 0)]) + "…"
	}
	return s
}
