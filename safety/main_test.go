package safety_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the files under testdata")

// TestMain lets rapid try harder than it does by default: these tests are
// quick, and what they look for is rare.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		if err := flag.Set("rapid.checks", "1000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// epoch is when worlds begin. It has a fraction of a second, which stores drop.
var epoch = time.Date(2026, 3, 1, 9, 0, 0, 700_000_000, time.UTC)

// journal writes down what happens, one line for each decision: the time since the beginning, the
// action and its reason.
type journal struct {
	now  time.Time
	text strings.Builder
}

func (j *journal) since(at time.Time) string {
	return "+" + at.Sub(epoch).Round(time.Millisecond).String()
}

// say notes an event from outside.
func (j *journal) say(format string, args ...any) {
	fmt.Fprintf(&j.text, "%-9s -- %s\n", j.since(j.now), fmt.Sprintf(format, args...))
}

func (j *journal) line(state, action string, why fmt.Stringer) {
	fmt.Fprintf(&j.text, "%-9s %-22s %-44s %s\n", j.since(j.now), state, action, why)
}

func (j *journal) warn(all ...decision.Why) {
	for _, why := range all {
		if why != (decision.Why{}) {
			fmt.Fprintf(&j.text, "%-9s warning: %s\n", "", why)
		}
	}
}

// told names the stories that were run. TestStories compares the names with the files.
var told = map[string]bool{}

// compare compares a journal with its file.
func compare(t *testing.T, name string, j *journal) {
	t.Helper()
	name = strings.ReplaceAll(name, " ", "-")
	told[name] = true
	path := filepath.Join("testdata", "stories", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(j.text.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test ./safety -update writes it")
	assert.Equal(t, string(want), j.text.String())
}

// TestStories runs all stories, and checks that each file belongs to one.
func TestStories(t *testing.T) {
	for _, tell := range []func(*testing.T){tellOrphans, tellOvershoot, tellReach, tellGrants, tellNodes, tellOwnerless, tellPaces} {
		tell(t)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "stories", "*.txt"))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(files), 25)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if !told[name] && flag.Lookup("test.run").Value.String() == "" {
			assert.Fail(t, "a file of no story", file)
		}
	}
}
