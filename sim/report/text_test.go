package report_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/sim/preview"
	"github.com/millwright-go/millwright/sim/report"
)

func table(t require.TestingT, line *preview.Timeline, rows int) []string {
	var out bytes.Buffer
	require.NoError(t, report.Text(&out, line, report.TextOptions{Rows: rows}))
	text, ended := strings.CutSuffix(out.String(), "\n")
	require.True(t, ended)
	return strings.Split(text, "\n")
}

// TestTableIsAligned: for any names, the table has one line for each step, aligned columns, and no
// trailing spaces.
func TestTableIsAligned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := drawTimeline(t)
		lines := table(t, line, 0)
		require.Len(t, lines, 1+len(line.Steps)+1)
		what := strings.Index(lines[0], "WHAT")
		for _, l := range lines {
			require.True(t, utf8.ValidString(l))
			require.Equal(t, strings.TrimRight(l, " "), l)
			before := []rune(l)[what-2 : what+1]
			require.Equal(t, "  ", string(before[:2]))
			require.NotEqual(t, ' ', before[2])
		}
	})
}

func TestTableLeavesOutTheMiddle(t *testing.T) {
	line := plans(t)["surge-a-fifth"].timeline(t)
	all := table(t, line, 0)
	require.Len(t, all, 19)
	assert.Equal(t, all, table(t, line, 17), "just as many")
	assert.Equal(t, all, table(t, line, -1))
	five := table(t, line, 5)
	require.Len(t, five, 1+3+1+2+1)
	assert.Contains(t, five[4], "12 steps left out")
	assert.Equal(t, squeezed(all[1:4]), squeezed(five[1:4]))
	assert.Equal(t, squeezed(all[16:]), squeezed(five[5:]))
	assert.Len(t, table(t, line, 1), 1+1+1+1+1, "the first and the last at least")
}

// squeezed returns lines with single spaces between the words.
func squeezed(lines []string) []string {
	var out []string
	for _, l := range lines {
		out = append(out, strings.Join(strings.Fields(l), " "))
	}
	return out
}

var errFull = errors.New("full")

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errFull }

func TestWritersErrors(t *testing.T) {
	line := plans(t)["zero"].timeline(t)
	assert.ErrorIs(t, report.Text(fullWriter{}, line, report.TextOptions{}), errFull)
	assert.ErrorIs(t, report.SVG(fullWriter{}, line, report.ChartOptions{}), errFull)
}
