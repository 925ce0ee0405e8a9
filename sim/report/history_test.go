package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/sim/history"
	"github.com/millwright-go/millwright/sim/report"
)

// eventfulHistory returns a history of a run that has everything a history can hold, but dropped marks.
func eventfulHistory() *history.History {
	h := &history.History{Name: "web", Seed: 42, Start: startTime}
	at := func(minutes int, s history.Sample) {
		s.After = time.Duration(minutes) * time.Minute
		h.Add(s)
	}
	note := func(minutes int, kind history.Kind, what string, length time.Duration) {
		m := history.Mark{After: time.Duration(minutes) * time.Minute, Kind: kind, What: what}
		m.Until = m.After + length
		h.Note(m)
	}
	note(0, history.Edit, "created with 6 machines of class small", 0)
	at(0, history.Sample{Wanted: 6, Floor: 5, Ceiling: 8})
	at(1, history.Sample{Wanted: 6, Floor: 5, Ceiling: 8, Pending: 6})
	at(4, history.Sample{Wanted: 6, Floor: 5, Ceiling: 8, NewAvailable: 6})
	note(20, history.Edit, "class <large> wanted", 0)
	at(20, history.Sample{Wanted: 6, Floor: 5, Ceiling: 8, OldAvailable: 6})
	at(21, history.Sample{Wanted: 6, Floor: 5, Ceiling: 8, OldAvailable: 5, Pending: 3, Terminating: 1})
	note(22, history.Fault, "call to the provider failed", 0)
	note(22, history.Fault, "call to the provider failed", 0)
	note(23, history.Fault, "VM that never boots", 0)
	note(25, history.Kill, "manager killed", 0)
	note(26, history.Outage, "the target cluster", 6*time.Minute)
	at(27, history.Sample{Wanted: 6, Floor: 5, Ceiling: 8, OldAvailable: 3, NewAvailable: 2, Pending: 1, Unknown: 1, CrashLoop: 1})
	at(33, history.Sample{Wanted: 6, Floor: 5, Ceiling: 8, OldAvailable: 1, NewAvailable: 3, Unknown: 1, Failed: 1, Updating: 1, Terminating: 2})
	note(34, history.Freeze, "frozen: too many machines", 4*time.Minute)
	at(40, history.Sample{Wanted: 6, Floor: 5, Ceiling: 8, NewAvailable: 6})
	at(44, history.Sample{Wanted: 6, Floor: 5, Ceiling: 8, NewAvailable: 3, Pending: 3})
	h.Add(history.Sample{After: 44*time.Minute + 500*time.Millisecond, Wanted: 6, Floor: 5, Ceiling: 8, NewAvailable: 6})
	h.Add(history.Sample{After: 44*time.Minute + 600*time.Millisecond, Wanted: 6, Floor: 5, Ceiling: 8, NewAvailable: 6, Pending: 4})
	h.Add(history.Sample{After: 44*time.Minute + 700*time.Millisecond, Wanted: 6, Floor: 5, Ceiling: 8, NewAvailable: 6})
	note(44, history.Violation, "P7: 10 machines of web, 8 are allowed", 0)
	h.Length = 50 * time.Minute
	return h
}

func written(t require.TestingT, write func(io.Writer) error) []byte {
	var out bytes.Buffer
	require.NoError(t, write(&out))
	return out.Bytes()
}

// writers returns all the ways to write a history.
func writers(h *history.History) map[string]func(io.Writer) error {
	return map[string]func(io.Writer) error{
		"txt":  func(w io.Writer) error { return report.HistoryText(w, h, report.TextOptions{}) },
		"svg":  func(w io.Writer) error { return report.HistorySVG(w, h, report.ChartOptions{}) },
		"html": func(w io.Writer) error { return report.HTML(w, h, report.PageOptions{}) },
	}
}

func TestHistoryGoldens(t *testing.T) {
	for kind, write := range writers(eventfulHistory()) {
		t.Run(kind, func(t *testing.T) {
			golden(t, "eventful-run."+kind, written(t, write))
		})
	}
	t.Run("nothing", func(t *testing.T) {
		golden(t, "empty-run.txt", written(t, writers(&history.History{Name: "web"})["txt"]))
	})
}

func TestHistoryWritersErrors(t *testing.T) {
	for kind, write := range writers(eventfulHistory()) {
		assert.ErrorIs(t, write(fullWriter{}), errFull, kind)
	}
}

// TestHistoryOptions: each option takes effect.
func TestHistoryOptions(t *testing.T) {
	h := eventfulHistory()
	page := string(written(t, func(w io.Writer) error { return report.HTML(w, h, report.PageOptions{Title: "a<b\x01", Rows: 3}) }))
	assert.Contains(t, page, "<title>a&lt;b?</title>")
	assert.Contains(t, page, "<h1>a&lt;b?</h1>\n<p>web: 50m simulated, seed 42</p>")
	assert.Equal(t, 4, strings.Count(page, `<tr><th scope="row">`))
	text := string(written(t, func(w io.Writer) error { return report.HistoryText(w, h, report.TextOptions{Rows: 3}) }))
	assert.Equal(t, 2+1+4, strings.Count(text[:strings.Index(text, "\nPicture")], "\n"))
	all := elements(t, written(t, func(w io.Writer) error {
		return report.HistorySVG(w, h, report.ChartOptions{Title: "Tonight", Width: 10, Height: 10, Theme: report.Dark})
	}))
	assert.Equal(t, "300", all[0].attributes["width"])
	assert.Equal(t, "Tonight", all[1].text)
	assert.Equal(t, fmt.Sprint(280+7*32), all[0].attributes["height"])
}

// drawHistory draws any history that a caller might put together, including those that no simulation
// records.
func drawHistory(t *rapid.T) *history.History {
	span := rapid.SampledFrom([]int64{0, 1, 1e9, 3e12, 1e15, math.MaxInt64}).Draw(t, "span")
	when := rapid.Int64Range(-1, span)
	count := rapid.IntRange(-1, rapid.SampledFrom([]int{3, 60, 1000, math.MaxInt32}).Draw(t, "size"))
	h := &history.History{
		Name: rapid.String().Draw(t, "name"), Seed: rapid.Uint64().Draw(t, "seed"), Length: time.Duration(when.Draw(t, "length")),
		Dropped: rapid.IntRange(0, 2).Draw(t, "dropped"),
	}
	if rapid.Bool().Draw(t, "has start") {
		h.Start = startTime
	}
	raw := rapid.Bool().Draw(t, "raw")
	for range rapid.IntRange(0, 25).Draw(t, "samples") {
		s := history.Sample{
			After: time.Duration(when.Draw(t, "after")), Wanted: count.Draw(t, "wanted"), Floor: count.Draw(t, "floor"), Ceiling: count.Draw(t, "ceiling"),
			OldAvailable: count.Draw(t, "old"), NewAvailable: count.Draw(t, "new"), Pending: count.Draw(t, "pending"), Terminating: count.Draw(t, "terminating"),
			Failed: count.Draw(t, "failed"), MinAvailable: count.Draw(t, "minAvailable"), MaxTotal: count.Draw(t, "maxTotal"),
		}
		if raw {
			h.Samples = append(h.Samples, s)
		} else {
			h.Add(s)
		}
	}
	for range rapid.IntRange(0, 25).Draw(t, "marks") {
		m := history.Mark{
			After: time.Duration(when.Draw(t, "after")), Until: time.Duration(when.Draw(t, "until")), Kind: history.Kind(rapid.IntRange(0, 7).Draw(t, "kind")),
			What: rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"</svg><script>", "call failed", ""})).Draw(t, "what"), Times: rapid.IntRange(-1, 9).Draw(t, "times"),
		}
		if raw {
			h.Marks = append(h.Marks, m)
		} else {
			h.Note(m)
		}
	}
	return h
}

// These match what would make a browser fetch or run something: in tags, and in style sheets.
var (
	activeTags   = regexp.MustCompile(`(?i)<script|<link|<img|<iframe|<object|\son[a-z]+=|src=|href=`)
	activeStyles = regexp.MustCompile(`(?i)@import|url\(`)

	styleSheets = regexp.MustCompile(`(?s)<style>.*?</style>`)
)

// TestAnyHistoryIsWritten: any history can be written in all formats. The files are the same each
// time, they need no external resources, and no text overlaps another.
func TestAnyHistoryIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		for kind, write := range writers(h) {
			out := written(t, write)
			require.True(t, utf8.Valid(out), kind)
			require.Equal(t, string(out), string(written(t, write)), kind)
			if kind != "txt" {
				require.NotRegexp(t, activeTags, tagsOnly(string(out)))
				for _, sheet := range styleSheets.FindAllString(string(out), -1) {
					require.NotRegexp(t, activeStyles, sheet)
				}
			}
		}
		width := rapid.SampledFrom([]int{300, 336, 640, 1120, 4000}).Draw(t, "width")
		requireNoOverlap(t, elements(t, written(t, func(w io.Writer) error {
			return report.HistorySVG(w, h, report.ChartOptions{Title: "a", Width: width})
		})))
		requireWellFormed(t, written(t, writers(h)["html"]))
		lines := strings.Split(string(written(t, writers(h)["txt"])), "\n")
		for _, l := range lines {
			require.Equal(t, strings.TrimRight(l, " "), l)
		}
	})
}

// tagsOnly strips text and the values of attributes from a document.
func tagsOnly(s string) string {
	s = regexp.MustCompile(`"[^"]*"`).ReplaceAllString(s, `""`)
	return regexp.MustCompile(`>[^<]*<`).ReplaceAllString(s, "><")
}

// requireWellFormed requires every element of a page to be closed in the right order. It returns the
// texts in them.
func requireWellFormed(t require.TestingT, page []byte) (texts []string) {
	decoder := xml.NewDecoder(bytes.NewReader(page))
	decoder.Strict, decoder.AutoClose, decoder.Entity = false, []string{"meta", "!DOCTYPE"}, xml.HTMLEntity
	var open []string
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			require.Empty(t, open)
			return texts
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			open = append(open, token.Name.Local)
		case xml.EndElement:
			require.Equal(t, open[len(open)-1], token.Name.Local)
			open = open[:len(open)-1]
		case xml.CharData:
			texts = append(texts, string(token))
		}
	}
}

// TestTableRows: merged rows still count each mark once, and show the minimum of available machines
// and the maximum of all machines. The last row is the state at the end.
func TestTableRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history.History{Name: "web"}
		faults := 0
		for i := range rapid.IntRange(1, 40).Draw(t, "changes") {
			after := h.Length
			if i > 0 { // the first sample is at time 0
				after += time.Duration(rapid.Int64Range(0, 600).Draw(t, "later")) * time.Second
			}
			n := rapid.IntRange(0, 9)
			h.Add(history.Sample{After: after, Ceiling: 10, NewAvailable: n.Draw(t, "available"), Pending: n.Draw(t, "pending"), Terminating: n.Draw(t, "terminating")})
			if rapid.Bool().Draw(t, "fault") {
				h.Note(history.Mark{After: after, What: "a"})
				faults++
			}
		}
		rowLimit := rapid.IntRange(1, 20).Draw(t, "rows")
		text := string(written(t, func(w io.Writer) error { return report.HistoryText(w, h, report.TextOptions{Rows: rowLimit}) }))
		rows := strings.Split(text[:strings.Index(text, "\n\nPicture")], "\n")[3:]
		require.LessOrEqual(t, len(rows), rowLimit+1)
		minAvailable, maxTotal, shownFaults := 99, 0, 0
		for _, row := range rows {
			cells := strings.Fields(row)
			minAvailable, maxTotal = min(minAvailable, number(t, cells[2])), max(maxTotal, number(t, cells[3]))
			if i := strings.LastIndex(row, " fault"); i > 0 {
				shownFaults += number(t, row[strings.LastIndex(row[:i], " ")+1:i])
			}
		}
		require.Equal(t, faults, shownFaults)
		wantMin, wantMax := 99, 0
		for i := range h.Samples {
			wantMin, wantMax = min(wantMin, h.Samples[i].MinAvailable), max(wantMax, h.Samples[i].MaxTotal)
		}
		require.Equal(t, wantMin, minAvailable)
		require.Equal(t, wantMax, maxTotal)
		last, end := strings.Fields(rows[len(rows)-1]), h.Last()
		require.Equal(t, []int{end.Pending, end.Terminating}, []int{number(t, last[5]), number(t, last[8])})
	})
}

func number(t require.TestingT, s string) int {
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

// TestLongHistoryMakesSmallChart: with very many changes, faults and sorts of faults the chart stays
// small. It still shows the one moment below the floor, and a violation at the moment of an edit.
func TestLongHistoryMakesSmallChart(t *testing.T) {
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

// TestMarksWithinOnePixelAreMerged: a reader can't tell such marks apart, so they are merged into one
// that has the number of all, the start of the first and the end of the last.
func TestMarksWithinOnePixelAreMerged(t *testing.T) {
	h := &history.History{Name: "web", Length: 100 * time.Hour}
	for i := range 5 {
		h.Note(history.Mark{After: time.Duration(60+10*i) * time.Second, Kind: history.Kill, What: "manager killed"})
	}
	svg := string(written(t, writers(h)["svg"]))
	assert.Equal(t, 1, strings.Count(svg, `class="kill"`))
	assert.Contains(t, svg, "<title>1m to 1m40s: manager killed × 5</title>")
}

// TestHugeLength: with the longest possible duration no labels of the chart overlap.
func TestHugeLength(t *testing.T) {
	h := &history.History{Name: "web", Length: 1<<63 - 1}
	for _, width := range []int{300, 1120, 4000} {
		requireNoOverlap(t, elements(t, written(t, func(w io.Writer) error {
			return report.HistorySVG(w, h, report.ChartOptions{Title: "a", Width: width})
		})))
	}
}

// TestTableStartsAtZero: the table begins at 0s, even if nothing happens before a later mark.
func TestTableStartsAtZero(t *testing.T) {
	h := &history.History{Name: "web", Length: time.Hour}
	h.Note(history.Mark{After: 30 * time.Minute, Kind: history.Edit, What: "edited"})
	text := string(written(t, writers(h)["txt"]))
	assert.Contains(t, text, "\n  0s ")
	assert.Contains(t, text, "\n 30m ")
	assert.Equal(t, 2+1+3, strings.Count(text[:strings.Index(text, "\nPicture")], "\n"))
}

// TestSummary: numbers that the chart does not show are in the summary below it.
func TestSummary(t *testing.T) {
	h := &history.History{Name: "web", Dropped: 3}
	h.Add(history.Sample{Wanted: 2, Floor: 2, Ceiling: 900, NewAvailable: 2, Terminating: 5})
	text, page := string(written(t, writers(h)["txt"])), string(written(t, writers(h)["html"]))
	assert.Contains(t, text, "3 more marks were dropped\n")
	assert.Contains(t, page, "<p>3 more marks were dropped.</p>")
	assert.Contains(t, text, "most in all: 2 (never above the ceiling, 7 with terminating ones)\n")
	assert.Contains(t, text, "; 7 machines wide", "a ceiling far away does not make the rest small")
}
