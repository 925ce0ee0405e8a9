package report

import (
	"bytes"
	"io"
	"strings"

	"github.com/millwright-go/millwright/sim/history"
)

// standardRows is how many rows a table of a history has unless the caller asks for another number.
const standardRows = 40

// HistoryText writes a history as a table of text, with a summary below. A row stands for the time
// until the next row begins. AVAIL is the minimum in that time, TOTAL the maximum. The other counts
// and the picture are those at its end. Rows in which nothing changed are left out. The error is the
// writer's.
//
// TextOptions.Rows is about how many rows there are; zero or less: 40.
func HistoryText(w io.Writer, h *history.History, o TextOptions) error {
	rows := [][]string{{"TIME", "WANTED", "AVAIL", "TOTAL", "BOUNDS", "PENDING", "UPDATING", "ILL", "GOING", "PICTURE", "WHAT"}}
	most := max(h.Tally().MaxWithTerminating, highestBound(h), 1)
	for _, s := range slots(h, historyRows(o.Rows)) {
		rows = append(rows, []string{
			moment(s.from), decimal(s.last.Wanted), decimal(s.last.MinAvailable), decimal(s.last.MaxTotal), s.bounds(), decimal(s.last.Pending),
			decimal(s.last.Updating), decimal(ill(&s.last)), decimal(s.last.Terminating), picture(&s.last, most), s.happened(),
		})
	}
	var out bytes.Buffer
	out.WriteString(fleetHeading(h) + "\n\n" + aligned(rows))
	out.WriteString("\nPicture: # available, + not, ~ terminating, | floor, ] ceiling; " + counted(most, "machine") + " wide\n\n")
	writeFigures(&out, h)
	writeCounts(&out, h)
	_, err := w.Write(out.Bytes())
	return err
}

func historyRows(rows int) int {
	if rows <= 0 {
		return standardRows
	}
	return rows
}

// highestBound returns the highest number of wanted machines, or a higher ceiling. A ceiling more than
// twice as high as all that ever existed or was wanted does not count.
func highestBound(h *history.History) int {
	high := 0
	most := h.Tally().MaxWithTerminating
	for i := range h.Samples {
		s := &h.Samples[i]
		high = max(high, s.Wanted)
		if s.Ceiling/2 <= max(most, s.Wanted) {
			high = max(high, s.Ceiling)
		}
	}
	return high
}

// pictureWidth is the width of a picture in letters.
const pictureWidth = 30

// picture returns a bar of the machines there are, with the bounds in it.
func picture(s *history.Sample, most int) string {
	at := func(n int) int { return int(float64(min(max(n, 0), most)) / float64(most) * pictureWidth) }
	bar := []byte(strings.Repeat(" ", pictureWidth+1))
	for i := range at(s.Total() + s.Terminating) {
		switch {
		case i < at(s.Available()):
			bar[i] = '#'
		case i < at(s.Total()):
			bar[i] = '+'
		default:
			bar[i] = '~'
		}
	}
	if s.Ceiling > 0 && s.Ceiling <= most {
		bar[at(s.Ceiling)] = ']'
	}
	if s.Floor > 0 {
		bar[at(s.Floor)] = '|'
	}
	return string(bar)
}

func writeFigures(out *bytes.Buffer, h *history.History) {
	for _, f := range figures(h) {
		out.WriteString(f.name + ": " + f.value + " (" + f.note + ")\n")
	}
}

// writeCounts lists how often each thing happened.
func writeCounts(out *bytes.Buffer, h *history.History) {
	rows := [][]string{{"TIMES", "FIRST", "LAST", "KIND", "WHAT"}}
	for _, c := range h.Counts() {
		rows = append(rows, []string{decimal(c.Times), moment(c.First), moment(c.Last), c.Kind.String(), printable(c.What)})
	}
	if len(rows) > 1 {
		out.WriteString("\n" + aligned(rows))
	}
	if h.Dropped > 0 {
		out.WriteString(decimal(h.Dropped) + " more marks were dropped\n")
	}
}
