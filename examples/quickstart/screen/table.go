package screen

import (
	"strings"
	"unicode/utf8"
)

// Tone is the meaning of a text.
type Tone string

// These are the tones.
const (
	Plain  Tone = ""
	Strong Tone = "1"
	Dim    Tone = "2"
	Good   Tone = "32"
	Busy   Tone = "33"
	Bad    Tone = "31"
)

func (s *Screen) paint(text string, t Tone) string {
	if !s.options.Color || t == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(t) + "m" + text + "\x1b[0m"
}

// Cell is one field of a table.
type Cell struct {
	Text string
	Tone Tone
}

// Table is what is shown below the lines.
type Table struct {
	Title  string
	Header []string
	Rows   [][]Cell // as many cells as Header has
}

// line is a row whose cells are as wide as they are to be shown.
type line []Cell

func (l line) width() int {
	n := 0
	for _, c := range l {
		n += utf8.RuneCountInString(c.Text)
	}
	return n
}

const (
	gap    = 2 // between columns
	narrow = 8 // what a column must at least have, if it needs as much
)

// lines formats a table in width columns and at most height lines. The last column gets what the
// others leave, and what does not fit is cut off. It returns no lines if there is not enough room.
func (t Table) lines(width, height int) []line {
	if width < 1 || height < 3 || len(t.Header) == 0 {
		return nil
	}
	header := make(line, len(t.Header))
	for i, text := range t.Header {
		header[i] = Cell{text, Strong}
	}
	rows := append([][]Cell{header}, t.Rows...)
	widths := columns(rows, width)
	out := []line{{{cut(t.Title, width), Dim}}}
	for i, row := range rows {
		if len(out) == height-1 && i < len(rows)-1 {
			return append(out, line{{cut("...", width), Dim}})
		}
		out = append(out, lay(row, widths))
	}
	return out
}

// columns returns the widths of the columns, so that the sum fits. It leaves out a column with
// almost no room, and all columns behind it.
func columns(rows [][]Cell, width int) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	for i := range widths {
		if i > 0 && width < min(widths[i], narrow) {
			width = 0
		}
		widths[i] = min(widths[i], width)
		width = max(0, width-widths[i]-gap)
	}
	return widths
}

func lay(row []Cell, widths []int) line {
	out := make(line, 0, 2*len(row))
	for i, c := range row {
		if widths[i] == 0 {
			break
		}
		if i > 0 {
			out = append(out, Cell{strings.Repeat(" ", gap), Plain})
		}
		text := cut(c.Text, widths[i])
		out = append(out, Cell{text, c.Tone})
		if i < len(row)-1 {
			out = append(out, Cell{strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)), Plain})
		}
	}
	return out
}

// cut shortens a text to width runes.
func cut(text string, width int) string {
	text = strings.ReplaceAll(text, "\n", " ")
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	runes := []rune(text)
	if width <= 3 {
		return string(runes[:max(0, width)])
	}
	return string(runes[:width-3]) + "..."
}

// wrap breaks a text at spaces into parts of at most width runes. A longer word is left whole.
// Without a width the text stays as it is.
func wrap(text string, width int) []string {
	if width < 1 || utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	var parts []string
	part := ""
	for _, word := range strings.Fields(text) {
		switch {
		case part == "":
			part = word
		case utf8.RuneCountInString(part)+1+utf8.RuneCountInString(word) > width:
			parts = append(parts, part)
			part = word
		default:
			part += " " + word
		}
	}
	return append(parts, part)
}
