package report_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millwright-go/millwright/sim/history"
	"github.com/millwright-go/millwright/sim/report"
)

// TestChartOfALongHistory: with very many changes, faults and sorts of faults the page stays small.
// It still shows the one moment below the floor, and a violation at the moment of an edit.
func TestChartOfALongHistory(t *testing.T) {
	h := &history.History{Name: "web"}
	for i := range 20_000 {
		s := history.Sample{After: time.Duration(i) * time.Second, Wanted: 9, Floor: 9, Ceiling: 10, NewAvailable: 9, Pending: i / 20 % 2}
		if i == 7_777 {
			s.NewAvailable = 4
		}
		h.Add(s)
		if i%3 == 0 {
			h.Note(history.Mark{After: s.After, What: fmt.Sprint("sort ", i%40)})
		}
	}
	h.Note(history.Mark{After: 5000 * time.Second, Kind: history.Edit, What: "edited"})
	h.Note(history.Mark{After: 5000 * time.Second, Kind: history.Violation, What: "P7"})
	svg := string(written(t, func(w io.Writer) error { return report.HistorySVG(w, h, report.ChartOptions{Width: 336}) }))
	assert.Less(t, len(svg), 16_000)
	assert.Equal(t, 1, strings.Count(svg, `class="blip"`), "the dip")
	assert.Equal(t, 1, strings.Count(svg, `class="moment edit-moment"`))
	assert.Equal(t, 1, strings.Count(svg, `class="moment violation-moment"`))
	assert.Contains(t, svg, ">other faults × ")
	assert.Contains(t, svg, ": several things × ")
	assert.Equal(t, 14, strings.Count(svg, ">sort ")+strings.Count(svg, ">other faults"), "lanes of faults")
}

// TestMarksInOnePixelOfAHistory: a reader can't tell them apart, so they are merged, with the times
// of all and from the first to the last.
func TestMarksInOnePixelOfAHistory(t *testing.T) {
	h := &history.History{Name: "web", Length: 100 * time.Hour}
	for i := range 5 {
		h.Note(history.Mark{After: time.Duration(60+10*i) * time.Second, Kind: history.Kill, What: "manager killed"})
	}
	svg := string(written(t, ways(h)["svg"]))
	assert.Equal(t, 1, strings.Count(svg, `class="kill"`))
	assert.Contains(t, svg, "<title>1m to 1m40s: manager killed × 5</title>")
}

// TestHistoryOfAges: a length that no run has is cut to what an axis can show.
func TestHistoryOfAges(t *testing.T) {
	h := &history.History{Name: "web", Length: 1<<63 - 1}
	for _, width := range []int{300, 1120, 4000} {
		requireApart(t, elements(t, written(t, func(w io.Writer) error {
			return report.HistorySVG(w, h, report.ChartOptions{Title: "a", Width: width})
		})))
	}
}

// TestTableBegins: a run in which nothing happens at first has its first row too.
func TestTableBegins(t *testing.T) {
	h := &history.History{Name: "web", Length: time.Hour}
	h.Note(history.Mark{After: 30 * time.Minute, Kind: history.Edit, What: "edited"})
	text := string(written(t, ways(h)["txt"]))
	assert.Contains(t, text, "\n  0s ")
	assert.Contains(t, text, "\n 30m ")
	assert.Equal(t, 2+1+3, strings.Count(text[:strings.Index(text, "\nPicture")], "\n"))
}

// TestFiguresOfAHistory: figures that are not in the chart are written.
func TestFiguresOfAHistory(t *testing.T) {
	h := &history.History{Name: "web", Unkept: 3}
	h.Add(history.Sample{Wanted: 2, Floor: 2, Ceiling: 900, NewAvailable: 2, Terminating: 5})
	text, page := string(written(t, ways(h)["txt"])), string(written(t, ways(h)["html"]))
	assert.Contains(t, text, "3 marks more had no room\n")
	assert.Contains(t, page, "<p>3 marks more had no room.</p>")
	assert.Contains(t, text, "most in all: 2 (never above the ceiling, 7 with terminating ones)\n")
	assert.Contains(t, text, "; 7 machines wide", "a ceiling far away does not make the rest small")
}
