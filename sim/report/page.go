package report

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"

	"github.com/millwright-go/millwright/sim/history"
)

// PageOptions say how a page is made. The zero value has good defaults.
type PageOptions struct {
	// Title is the page's heading. If it is empty, the page names its history.
	Title string
	// Rows is about how many rows the table has. Zero or less: 40.
	Rows int
}

// HTML writes a history as one page: a summary, the chart, the chart's numbers as a table, and what
// happened. The file is complete in itself, without scripts or external resources. It follows the
// reader's preference for light or dark, and holds the chart in three widths (see drawings). The
// error is the writer's.
func HTML(w io.Writer, h *history.History, o PageOptions) error {
	p := page{Title: o.Title, Of: fleetHeading(h), Description: describe(h), Style: template.CSS(fleetStyle(Adaptive) + pageStyle)} //nolint:gosec // our own
	if p.Title == "" {
		p.Title = p.Of
		p.Of = ""
	}
	p.Title, p.Start = printable(p.Title), h.Start.UTC().Format("2006-01-02 15:04:05 MST")
	for _, f := range figures(h) {
		p.Figures = append(p.Figures, pageFigure{f.name, f.value, f.note, f.bad})
	}
	for _, d := range drawings {
		p.Charts = append(p.Charts, d.of(h, p.Description))
	}
	for _, s := range slots(h, historyRows(o.Rows)) {
		p.Rows = append(p.Rows, pageRow{
			Time: moment(s.from), Bounds: s.bounds(), What: s.happened(),
			Numbers: []int{s.last.MinAvailable, s.last.MaxTotal, s.last.Wanted, s.last.Pending, s.last.Updating, ill(&s.last), s.last.Terminating},
		})
	}
	for _, c := range h.Counts() {
		p.Counts = append(p.Counts, pageCount{c.Kind.String(), printable(c.What), c.Times, span(c.First, c.Last)})
	}
	p.Dropped = h.Dropped
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, &p); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}

// page is the data of the template. Of is the history's heading, if the title is another.
type page struct {
	Title, Of, Description, Start string
	Style                         template.CSS
	Figures                       []pageFigure
	Charts                        []template.HTML
	Rows                          []pageRow
	Counts                        []pageCount
	Dropped                       int
}

type pageFigure struct {
	Name, Value, Note string
	Bad               bool
}

type pageRow struct {
	Time, Bounds, What string
	Numbers            []int
}

type pageCount struct {
	Kind, What string
	Times      int
	When       string
}

// drawing is a size of the chart. The style sheet shows the one that suits the screen.
type drawing struct {
	class         string
	width, height int
}

var drawings = [...]drawing{{"phone", 336, 380}, {"tablet", 640, 420}, {"desk", 1120, 460}}

// of returns the drawing of a history, as an element of a page.
func (d drawing) of(h *history.History, description string) template.HTML {
	c := newFleetChart(h, ChartOptions{Width: d.width, Height: d.height})
	c.lift(legendTop - 16) // it has no title
	c.printf(`<svg class="%s" viewBox="0 0 %d %f" role="img" aria-label="%s">`+"\n", d.class, d.width, c.height, description)
	c.draw()
	c.printf("</svg>\n")
	return template.HTML(c.out.String()) //nolint:gosec // all text in it is escaped
}

//go:embed page.html.tmpl
var pageText string

//go:embed page.css
var pageStyle string

var pageTemplate = template.Must(template.New("page").Parse(pageText))
