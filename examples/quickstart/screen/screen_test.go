package screen

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// buffer is an output that can be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func fixed() time.Time { return start }

func someMachines() Table {
	return Table{
		Title: "two machines", Header: []string{"MACHINE", "PHASE", "WHY"},
		Rows: [][]Cell{
			{{Text: "a"}, {Text: "Running", Tone: Good}, {Text: "node a is healthy"}},
			{{Text: "longer"}, {Text: "Unknown", Tone: Bad}, {Text: "node longer is silent and will be for a while"}},
		},
	}
}

func text(lines []line) []string {
	var out []string
	for _, l := range lines {
		var b strings.Builder
		for _, c := range l {
			b.WriteString(c.Text)
		}
		out = append(out, b.String())
	}
	return out
}

func TestPlainLinesComeAtOnce(t *testing.T) {
	var out buffer
	s := New(&out, Options{Now: fixed}, someMachines)
	s.Headline("One")
	s.Line(Bad, "a line that is longer than most terminals are wide, and stays one line where nobody looks at a terminal at all")
	s.Text("end")
	s.Run(t.Context()) // nothing to redraw
	require.Equal(t, "\nOne\n   0.00s  a line that is longer than most terminals are wide, and stays one line where nobody looks at a terminal at all\nend\n", out.String())
}

func TestLayout(t *testing.T) {
	require.Equal(t, []string{
		"two machines",
		"MACHINE  PHASE    WHY",
		"a        Running  node a is healthy",
		"longer   Unknown  node longer is silent and will be for a while",
	}, text(someMachines().lines(100, 10)))
	require.Equal(t, []string{
		"two machines",
		"MACHINE  PHASE    WHY",
		"a        Running  node a is...",
		"longer   Unknown  node long...",
	}, text(someMachines().lines(30, 10)))
	require.Equal(t, []string{
		"two machines",
		"MACHINE  PHASE  ",
		"a        Running",
		"longer   Unknown",
	}, text(someMachines().lines(25, 10)))
	require.Equal(t, []string{"two machines", "MACHINE  PHASE    WHY", "..."}, text(someMachines().lines(30, 3)))
	require.Equal(t, []string{"tw", "MA", "a ", "lo"}, text(someMachines().lines(2, 10)))
	require.Empty(t, someMachines().lines(30, 2))
	require.Empty(t, Table{}.lines(30, 10))
	for width := 1; width < 60; width++ {
		for _, l := range someMachines().lines(width, 10) {
			require.LessOrEqual(t, l.width(), width)
		}
	}
}

func TestTableIsRedrawnInPlace(t *testing.T) {
	var out buffer
	width := 60
	s := New(&out, Options{Live: true, Now: fixed, Size: func() (int, int) { return width, 20 }}, someMachines)
	s.draw()
	require.NotContains(t, out.String(), "\x1b", "nothing to take away, and no colours")
	s.Line(Plain, strings.Repeat("word ", 15))
	require.NotContains(t, out.String(), "word", "lines wait for the next drawing")
	s.draw()
	first, second, _ := strings.Cut(out.String(), "\x1b[4A\r\x1b[J")
	require.Len(t, strings.Split(strings.TrimSpace(first), "\n"), 4)
	lines := strings.Split(strings.TrimRight(second, "\n"), "\n")
	require.Equal(t, "   0.00s  word word word word word word word word word word", lines[0])
	require.Equal(t, "          word word word word word", lines[1], "wrapped under the first")
	require.Equal(t, "two machines", lines[2])

	width = 30 // narrower: what was drawn takes more lines now
	s.draw()
	require.Contains(t, out.String(), "\x1b[6A\r\x1b[J")
}

func TestColours(t *testing.T) {
	var out buffer
	s := New(&out, Options{Color: true, Now: fixed}, someMachines)
	s.Headline("One")
	s.Line(Bad, "broken")
	require.Equal(t, "\n\x1b[1mOne\x1b[0m\n\x1b[2m   0.00s  \x1b[0m\x1b[31mbroken\x1b[0m\n", out.String())
}

func TestRunLeavesTheLines(t *testing.T) {
	var out buffer
	s := New(&out, Options{Live: true, Now: fixed, Size: func() (int, int) { return 60, 20 }}, someMachines)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.Run(ctx)
		close(ended)
	}()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "MACHINE") }, time.Minute, time.Millisecond)
	s.Line(Plain, "last words")
	cancel()
	<-ended
	s.Text("after")
	require.True(t, strings.HasSuffix(out.String(), "after\n"), "%q", out.String())
	_, rest, _ := strings.Cut(out.String(), "last words")
	require.NotContains(t, rest[len(rest)-len("\nafter\n"):], "MACHINE")
}
