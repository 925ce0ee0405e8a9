package safetytest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
)

var update = flag.Bool("update", false, "rewrite the files under testdata")

// ErrKilled is how a pass ends whose process is killed.
var ErrKilled = errors.New("killed")

// Run runs a package's tests. It lets rapid try harder than it does by default: these tests are
// quick, and what they look for is rare.
func Run(m *testing.M) int {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		if err := flag.Set("rapid.checks", "1000"); err != nil {
			panic(err)
		}
	}
	return m.Run()
}

// Epoch is when worlds begin. It has a fraction of a second, which stores drop.
var Epoch = time.Date(2026, 3, 1, 9, 0, 0, 700_000_000, time.UTC)

// Journal writes down what happens, one line for each decision: the time since the beginning, the
// action and its reason.
type Journal struct {
	Now  time.Time
	text strings.Builder
}

// Since returns a time as the journal prints it.
func (j *Journal) Since(at time.Time) string {
	return "+" + at.Sub(Epoch).Round(time.Millisecond).String()
}

// Say notes an event from outside.
func (j *Journal) Say(format string, args ...any) {
	fmt.Fprintf(&j.text, "%-9s -- %s\n", j.Since(j.Now), fmt.Sprintf(format, args...))
}

// Line notes a decision.
func (j *Journal) Line(state, action string, why fmt.Stringer) {
	fmt.Fprintf(&j.text, "%-9s %-22s %-44s %s\n", j.Since(j.Now), state, action, why)
}

// Printf notes a line of another form, after the time.
func (j *Journal) Printf(format string, args ...any) {
	fmt.Fprintf(&j.text, "%-9s %s\n", j.Since(j.Now), fmt.Sprintf(format, args...))
}

// Warn notes warnings. The zero Why is none.
func (j *Journal) Warn(all ...decision.Why) {
	for _, why := range all {
		if why != (decision.Why{}) {
			fmt.Fprintf(&j.text, "%-9s warning: %s\n", "", why)
		}
	}
}

// told names the stories that were run. Stories compares the names with the files.
var told = map[string]bool{}

// Compare compares a journal with its file.
func Compare(t *testing.T, name string, j *Journal) {
	t.Helper()
	name = strings.ReplaceAll(name, " ", "-")
	told[name] = true
	path := filepath.Join("testdata", "stories", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(j.text.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test -update writes it")
	assert.Equal(t, string(want), j.text.String())
}

// Stories runs all stories of a package, and checks that each file belongs to one.
func Stories(t *testing.T, tell func(*testing.T)) {
	tell(t)
	files, err := filepath.Glob(filepath.Join("testdata", "stories", "*.txt"))
	require.NoError(t, err)
	assert.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if !told[name] && flag.Lookup("test.run").Value.String() == "" {
			assert.Fail(t, "a file of no story", file)
		}
	}
}
