package gallery_test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/test/mutation/overlay"
)

// mutant is a mistake: it replaces one text in the body of a function, or in the value of a
// variable of the package, by another.
type mutant struct {
	name   string
	breaks string // the invariants at stake, or what else is
	file   string // from the root of the module
	from   string // occurs once
	to     string
	// by says what notices it: storms, if empty; poolStorms; openStorms; or short tests of the
	// file's package, as "TestX|TestY".
	by string
}

// These are storms of other kinds, as command hunt names them.
const (
	poolStorms = "pools"
	openStorms = "open"
)

// mutants are the mistakes, by package.
var mutants = slices.Concat(
	ofCodes, ofObject, ofMachine, ofMachineset, ofDeployment, ofRollout, ofDrain, ofSafety,
	ofMachineclass, ofMachinepool, ofDriver, ofStore, ofBolt, ofManager, ofFsm, ofSim,
)

// core are the packages that have mistakes here.
var core = []string{
	"codes", "object", "machine", "machineset", "deployment", "deployment/rollout", "drain", "safety",
	"machineclass", "machinepool", "driver", "store", "adapters/bolt", "manager", "machine/fsm",
}

// root is the directory of the repository.
const root = "../../.."

// storms is how many storms a mistake meets at most.
const storms = 600

// tested reports whether tests, and not storms, notice the mistake.
func (m *mutant) tested() bool { return !slices.Contains([]string{"", poolStorms, openStorms}, m.by) }

// dir is the package whose tests notice the mistake: the file's; for what manager is composed of, the one
// there that declares the test, or manager; orphan for its brake.
func (m *mutant) dir() string {
	dir := path.Dir(m.file)
	switch {
	case strings.HasPrefix(dir, "manager/") && !declares(dir, m.by):
		below, _ := filepath.Glob(filepath.Join(root, "manager", "*")) // the patterns are good ones
		internal, _ := filepath.Glob(filepath.Join(root, "manager", "internal", "*"))
		for _, b := range append(below, internal...) {
			if b, err := filepath.Rel(root, b); err == nil && declares(filepath.ToSlash(b), m.by) {
				return filepath.ToSlash(b)
			}
		}
		return "manager"
	case dir == "safety/internal/brake":
		return "safety/orphan"
	}
	return dir
}

// declares reports whether a package declares the tests of these names.
func declares(dir, names string) bool {
	files, _ := filepath.Glob(filepath.Join(root, dir, "*_test.go")) // the pattern is a good one
	var all strings.Builder
	for _, file := range files {
		text, _ := os.ReadFile(file) // what can't be read declares nothing
		all.Write(text)
	}
	for name := range strings.SplitSeq(names, "|") {
		if !strings.Contains(all.String(), "func "+name+"(") {
			return false
		}
	}
	return true
}

// TestGallery builds the library once with all mistakes in it, each behind a
// switch. It switches on one at a time and expects storms, or the tests that
// the mistake names, to notice it.
func TestGallery(t *testing.T) {
	if testing.Short() {
		t.Skip("plays storms and runs tests for each mistake: minutes")
	}
	named := namedTests()
	build, err := overlay.New(t.Context(), root, t.TempDir(), edits(t), slices.Sorted(maps.Keys(named)))
	require.NoError(t, err)
	for _, kind := range []string{"", poolStorms, openStorms} {
		said, err := build.Storms(t.Context(), 0, 5, kind)
		require.NoError(t, err, said)
	}
	for dir, names := range named {
		t.Run("none in the tests of "+dir, func(t *testing.T) {
			t.Parallel()
			said, err := build.Tests(t.Context(), 0, dir, pattern(strings.Join(names, "|")))
			require.NoError(t, err, said)
		})
	}
	for i, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			var said string
			var err error
			if m.tested() {
				said, err = build.Tests(t.Context(), i+1, m.dir(), pattern(m.by))
			} else {
				said, err = build.Storms(t.Context(), i+1, storms, m.by)
			}
			var exit *exec.ExitError
			require.True(t, errors.As(err, &exit), "%s (%s) is not noticed: %v %s", m.name, m.breaks, err, said)
			require.NotContains(t, said, "testing: warning: no tests to run")
			t.Logf("%s: %.300s", m.breaks, said)
		})
	}
}

// pattern matches the tests of these names and no others.
func pattern(names string) string { return "^(" + names + ")$" }

// namedTests returns the tests that mistakes name, by directory.
func namedTests() map[string][]string {
	all := map[string][]string{}
	for _, m := range mutants {
		if !m.tested() {
			continue
		}
		dir := m.dir()
		for name := range strings.SplitSeq(m.by, "|") {
			if !slices.Contains(all[dir], name) {
				all[dir] = append(all[dir], name)
			}
		}
	}
	return all
}

// TestMutants: there are at least 120 mistakes, and some in each core package. Each is one change
// of one place, and no two have the same name.
func TestMutants(t *testing.T) {
	require.GreaterOrEqual(t, len(mutants), 120)
	names, in := map[string]bool{}, map[string]int{}
	for _, m := range mutants {
		require.False(t, names[m.name], m.name)
		names[m.name] = true
		assert.True(t, !m.tested() || declares(m.dir(), m.by), "%s: %s does not declare %s", m.name, m.dir(), m.by)
		in[m.dir()]++
		if strings.HasPrefix(m.dir(), "safety/") {
			in["safety"]++
		}
	}
	for _, dir := range core {
		require.GreaterOrEqual(t, in[dir], 3, dir)
	}
	_, err := overlay.Files(root, edits(t))
	require.NoError(t, err)
}

func edits(t *testing.T) []overlay.Edit {
	t.Helper()
	var list []overlay.Edit
	for _, m := range mutants {
		e, err := overlay.Replacing(root, m.file, m.from, m.to)
		require.NoError(t, err, m.name)
		list = append(list, e)
	}
	return list
}
