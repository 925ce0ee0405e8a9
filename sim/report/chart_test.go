package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/sim/preview"
	"github.com/millwright-go/millwright/sim/report"
)

// element is one element of a chart, with the text in it.
type element struct {
	name, text string
	attributes map[string]string
}

// elements parses a chart as strict XML.
func elements(t require.TestingT, svg []byte) []element {
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	var out []element
	var open []int
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			require.Empty(t, open)
			return out
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attributes: map[string]string{}}
			for _, a := range token.Attr {
				e.attributes[a.Name.Local] = a.Value
			}
			open = append(open, len(out))
			out = append(out, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				out[open[len(open)-1]].text += string(token)
			}
		}
	}
}

// label returns the first text of a class, and its y coordinate.
func label(t require.TestingT, all []element, class string) (text string, y float64) {
	for _, e := range all {
		if strings.HasSuffix(e.attributes["class"], class) && e.name == "text" {
			y, err := strconv.ParseFloat(e.attributes["y"], 64)
			require.NoError(t, err)
			return e.text, y
		}
	}
	require.Fail(t, "no text of class "+class)
	return "", 0
}

func TestChartSaysWhatItShows(t *testing.T) {
	line := plans(t)["surge-a-fifth"].timeline(t)
	svg := draw(t, line, report.ChartOptions{})
	all := elements(t, svg)
	require.Equal(t, "svg", all[0].name)
	assert.Equal(t, "img", all[0].attributes["role"])
	assert.Equal(t, "title desc", all[0].attributes["aria-labelledby"])
	assert.Equal(t, "fleet/web: 50 machines wanted, surge 10, unavailable 0", all[1].text)
	assert.Contains(t, all[2].text, "available: never below 50 (floor 50)")
	floor, _ := label(t, all, "floor-name")
	ceiling, _ := label(t, all, "ceiling-name")
	assert.Equal(t, [2]string{"floor 50", "ceiling 60"}, [2]string{floor, ceiling})
	text := string(svg)
	for _, part := range []string{
		"; 52 created, 52 deleted, 2 failed", "prefers-color-scheme:dark", ">machines<", ">now<", ">5m<", ">40<",
		"old, available", "new, available", "not available", "terminating, not counted", "failed, replaced",
	} {
		assert.Contains(t, text, part)
	}
	assert.Equal(t, 2+1, strings.Count(text, `class="failure"`), "two on the axis, one in the legend")
	for _, part := range []string{"href", "url(", "<script", "<image", "@import", "<!"} {
		assert.NotContains(t, text, part, "an external resource")
	}
	assert.Equal(t, 1, strings.Count(text, "http"), "more addresses than that of the XML name space")
}

func TestChartThemes(t *testing.T) {
	line := plans(t)["surge-one-at-a-time"].timeline(t)
	light, dark := draw(t, line, report.ChartOptions{Theme: report.Light}), draw(t, line, report.ChartOptions{Theme: report.Dark})
	assert.NotContains(t, string(light), "@media")
	assert.NotContains(t, string(dark), "@media")
	assert.Contains(t, string(light), ".paper{fill:#fff}")
	assert.NotContains(t, string(dark), ".paper{fill:#fff}")
}

// TestChartShowsTheCounts: the areas in the drawing are as high as the counts.
func TestChartShowsTheCounts(t *testing.T) {
	line := plans(t)["surge-one-at-a-time"].timeline(t)
	all := elements(t, draw(t, line, report.ChartOptions{}))
	paths := map[string]string{}
	for _, e := range all {
		if e.name == "path" {
			paths[e.attributes["class"]] += e.attributes["d"]
		}
	}
	// All four are available at first, so the old ones reach the floor. The fifth machine is not
	// available, so it lies between floor and ceiling.
	floor, _, _ := strings.Cut(paths["line floor"], "H")
	ceiling, _, _ := strings.Cut(paths["line ceiling"], "H")
	assert.True(t, strings.HasPrefix(paths["old"], floor+"H"), "%s: %s", floor, paths["old"])
	assert.True(t, strings.HasPrefix(paths["new"], floor+"H"), "%s: %s", floor, paths["new"])
	assert.Contains(t, paths["lacking"], "V"+strings.TrimPrefix(ceiling, "M64 ")+"H")
	assert.NotEmpty(t, paths["new"])
	assert.NotEmpty(t, paths["lacking"])
	assert.NotEmpty(t, paths["going"])
}

// TestLimitsAreReadable: for any numbers, the names of floor and ceiling are inside the picture and do
// not overlap.
func TestLimitsAreReadable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := drawTimeline(t)
		o := report.ChartOptions{Width: rapid.IntRange(-1, 5000).Draw(t, "width"), Height: rapid.IntRange(-1, 5000).Draw(t, "height")}
		all := elements(t, draw(t, line, o))
		_, floor := label(t, all, "floor-name")
		_, ceiling := label(t, all, "ceiling-name")
		require.GreaterOrEqual(t, floor-ceiling, 15.8)
		height, err := strconv.ParseFloat(all[0].attributes["height"], 64)
		require.NoError(t, err)
		require.Less(t, floor, height-40)
		require.Greater(t, ceiling, 80.0)
		require.LessOrEqual(t, len(all), 20_000)
		requireNoOverlap(t, all)
	})
}

// requireNoOverlap requires that no two texts overlap, if each letter has the given width and height.
func requireNoOverlap(t require.TestingT, all []element) {
	const wide, high = 6.0, 11.0
	type box struct {
		text               string
		left, right, below float64
	}
	var boxes []box
	for _, e := range all {
		if e.name != "text" || e.attributes["transform"] != "" {
			continue
		}
		x, err := strconv.ParseFloat(e.attributes["x"], 64)
		require.NoError(t, err)
		y, err := strconv.ParseFloat(e.attributes["y"], 64)
		require.NoError(t, err)
		width := wide * float64(utf8.RuneCountInString(e.text))
		switch {
		case strings.HasSuffix(e.attributes["class"], "tick"):
			x -= width / 2
		case strings.HasSuffix(e.attributes["class"], "number"):
			x -= width
		}
		b := box{e.text, x, x + width, y}
		for _, other := range boxes {
			require.True(t, b.left >= other.right || other.left >= b.right || math.Abs(b.below-other.below) >= high,
				"%q lies on %q", b.text, other.text)
		}
		boxes = append(boxes, b)
	}
}

// drawTimeline draws any timeline that a caller might put together, including those that no preview
// returns.
func drawTimeline(t *rapid.T) *preview.Timeline {
	count := rapid.Int32Range(0, rapid.SampledFrom([]int32{5, 60, 2000, math.MaxInt32 / 4}).Draw(t, "size"))
	line := &preview.Timeline{Duration: time.Duration(rapid.Int64Range(0, rapid.SampledFrom([]int64{0, 1, 1e9, 1e14, math.MaxInt64}).Draw(t, "span")).Draw(t, "duration"))}
	line.Replicas = count.Draw(t, "replicas")
	line.Floor = max(0, line.Replicas-count.Draw(t, "lost"))
	line.Ceiling = line.Replicas + count.Draw(t, "surge")
	line.Key.Name = rapid.String().Draw(t, "name")
	line.Failed = rapid.Int64Range(0, 3).Draw(t, "failed")
	for range rapid.IntRange(0, 20).Draw(t, "samples") {
		line.Samples = append(line.Samples, preview.Sample{
			After:  time.Duration(rapid.Int64Range(0, int64(line.Duration)).Draw(t, "after")),
			Counts: preview.Counts{Old: count.Draw(t, "old"), Terminating: count.Draw(t, "terminating")},
		})
	}
	for range rapid.IntRange(0, 5).Draw(t, "steps") {
		line.Steps = append(line.Steps, preview.Step{
			Set: rapid.String().Draw(t, "set"), Why: decision.Why{Reason: decision.NewReason(rapid.String().Draw(t, "reason"), "")},
			Machines: decision.Why{Reason: rapid.SampledFrom([]decision.Reason{{}, machineset.ReasonDeleteFailed, decision.NewReason("x\ny", "x\ny")}).Draw(t, "machines")},
		})
	}
	return line
}

// TestChartOfManySamples: a long timeline makes no large file. It still shows the one moment at which
// too few machines were available.
func TestChartOfManySamples(t *testing.T) {
	line := &preview.Timeline{Duration: 100_000 * time.Second}
	line.Replicas, line.Floor, line.Ceiling = 100, 100, 101
	for i := range 100_000 {
		c := preview.Counts{Old: 100 + int32(i%2), OldAvailable: 100 + int32(i%2)}
		if i == 55_555 {
			c.OldAvailable = 0
		}
		line.Samples = append(line.Samples, preview.Sample{After: time.Duration(i) * time.Second, Counts: c})
	}
	svg := draw(t, line, report.ChartOptions{})
	assert.Less(t, len(svg), 150_000)
	for _, e := range elements(t, svg) {
		if e.attributes["class"] == "old" && e.name == "path" {
			assert.Equal(t, 2, strings.Count(e.attributes["d"], "V402"), "down to the axis in the dip, and at the end")
		}
	}
}

func TestChartEscapes(t *testing.T) {
	line := plans(t)["nothing-to-do"].timeline(t)
	line.Key.Name = "<b>&\x00\"\xff\u202e"
	all := elements(t, draw(t, line, report.ChartOptions{}))
	assert.Contains(t, all[1].text, "<b>&?\"??")
	all = elements(t, draw(t, line, report.ChartOptions{Title: "a<b\x01", Width: 10, Height: 10}))
	assert.Equal(t, "a<b\ufffd", all[1].text)
	assert.Equal(t, "360 280", all[0].attributes["width"]+" "+all[0].attributes["height"])
}

func ExampleSVG() {
	var out bytes.Buffer
	err := report.SVG(&out, &preview.Timeline{}, report.ChartOptions{Title: "Tonight's rollout"})
	fmt.Println(strings.Contains(out.String(), "<title id=\"title\">Tonight&#39;s rollout</title>"), err)
	// Output: true <nil>
}
