package stage

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Screen prints what goes on, line by line. It is safe for concurrent use.
type Screen struct {
	out   io.Writer
	start time.Time
	mu    sync.Mutex
}

// NewScreen returns a screen that writes to out. Lines begin with the time since then.
func NewScreen(out io.Writer) *Screen { return &Screen{out: out, start: time.Now()} }

// Line prints a text with the present time.
func (s *Screen) Line(text string) {
	s.Text(fmt.Sprintf("%7.2fs  %s", time.Since(s.start).Seconds(), text))
}

// Headline begins a new part.
func (s *Screen) Headline(text string) { s.Text("\n" + text) }

// Text prints a text as it is.
func (s *Screen) Text(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintln(s.out, text) // if the output fails, there is no other place to report that
}
