package app

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// TestMigratingPage: the settings in the table of docs/how-to/migrating.md exist, and have the defaults in
// the table.
func TestMigratingPage(t *testing.T) {
	r, err := newReading(&Program{Name: "millwright-manager"}, nil, io.Discard)
	require.NoError(t, err)
	known := map[string]*kong.Flag{}
	for _, flag := range r.parser.Model.Flags {
		known[flag.Name] = flag
	}
	text, err := os.ReadFile("../../../docs/how-to/migrating.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "\n## Settings\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	rows := 0
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| `--") {
			continue
		}
		cells := strings.Split(line, "|")
		require.Len(t, cells, 7, line)
		here, value := strings.Trim(cells[3], " `"), strings.Trim(cells[4], " `")
		if rows++; here == "" {
			continue
		}
		require.Contains(t, known, here)
		require.Equal(t, known[here].Default, value, line)
		for i, quoted := range strings.Split(cells[5], "`") {
			if i%2 == 1 && strings.Contains(quoted, "-") && !strings.Contains(quoted, ":") {
				require.Contains(t, known, quoted, line)
			}
		}
	}
	require.Equal(t, 39, rows)
}
