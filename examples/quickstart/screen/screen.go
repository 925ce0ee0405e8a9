// Package screen shows what goes on: lines as they come and, on a terminal,
// below them a table that is redrawn in place.
package screen

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// interval is how often a table is redrawn, and so how late a line may be on a
// terminal.
const interval = 100 * time.Millisecond

// Options of a Screen.
type Options struct {
	// Live shows the table. Otherwise there are lines only, printed at once.
	Live bool
	// Color uses colours.
	Color bool
	// Size returns the terminal's width and height. Nil means that lines are not wrapped.
	Size func() (width, height int)
	// Now is the clock. Nil means time.Now. Lines begin with the time since New.
	Now func() time.Time
}

// Detect returns what can be done with a file. A terminal gets a table and, unless the environment
// has NO_COLOR, colours. Anything else gets plain lines.
func Detect(file *os.File) Options {
	fd := int(file.Fd())
	kind := os.Getenv("TERM")
	if !term.IsTerminal(fd) || kind == "" || kind == "dumb" {
		return Options{}
	}
	return Options{
		Live:  true,
		Color: os.Getenv("NO_COLOR") == "",
		Size: func() (int, int) {
			width, height, err := term.GetSize(fd)
			if err != nil || width < 20 || height < 5 {
				return 80, 24
			}
			return width, height
		},
	}
}

// Screen shows lines and a table. New makes it. It is safe for concurrent use.
type Screen struct {
	options Options
	out     io.Writer
	table   func() Table
	start   time.Time

	mu      sync.Mutex
	pending strings.Builder // whole lines not written yet
	drawn   []int           // widths of the lines of the table on the terminal
}

// New returns a screen that writes to out. table is called for each drawing.
func New(out io.Writer, o Options, table func() Table) *Screen {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Screen{options: o, out: out, table: table, start: o.Now()}
}

// Headline begins a new part.
func (s *Screen) Headline(text string) {
	s.add("\n" + s.paint(text, Strong) + "\n")
}

// Line prints a line with the present time.
func (s *Screen) Line(tone Tone, text string) {
	stamp := fmt.Sprintf("%7.2fs  ", s.options.Now().Sub(s.start).Seconds())
	width := 0
	if s.options.Size != nil {
		width, _ = s.options.Size()
	}
	var all strings.Builder
	for i, part := range wrap(text, width-len(stamp)) {
		before := s.paint(stamp, Dim)
		if i > 0 {
			before = strings.Repeat(" ", len(stamp))
		}
		all.WriteString(before + s.paint(part, tone) + "\n")
	}
	s.add(all.String())
}

// Text prints lines as they are.
func (s *Screen) Text(text string) { s.add(text + "\n") }

func (s *Screen) add(lines string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending.WriteString(lines)
	if !s.options.Live {
		s.flush("")
	}
}

// Run redraws the table until ctx ends, and then leaves the lines alone.
func (s *Screen) Run(ctx context.Context) {
	if !s.options.Live {
		return
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			s.mu.Lock()
			defer s.mu.Unlock()
			s.options.Live = false
			s.flush(s.erase())
			return
		case <-ticker.C:
			s.draw()
		}
	}
}

// draw writes what is pending in the place of the old table, and a new one
// below, in one write.
func (s *Screen) draw() {
	table := s.table()
	s.mu.Lock()
	defer s.mu.Unlock()
	width, height := s.options.Size()
	erase := s.erase()
	lines := table.lines(width-1, height-2) // a full last column wraps on some terminals
	s.drawn = s.drawn[:0]
	for _, line := range lines {
		s.drawn = append(s.drawn, line.width())
		for _, c := range line {
			s.pending.WriteString(s.paint(c.Text, c.Tone))
		}
		s.pending.WriteByte('\n')
	}
	s.flush(erase)
}

// erase returns what removes the table: a move to its first line, which may be more lines up than
// the table had if the terminal has become narrower, and clear.
func (s *Screen) erase() string {
	if len(s.drawn) == 0 {
		return ""
	}
	width, _ := s.options.Size()
	up := 0
	for _, w := range s.drawn {
		up += max(1, (w+width-1)/width)
	}
	s.drawn = s.drawn[:0]
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", up)
}

func (s *Screen) flush(before string) {
	// If the output fails, there is no other place to report that.
	_, _ = io.WriteString(s.out, before+s.pending.String())
	s.pending.Reset()
}
