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

// mutant is a mistake: in the body of a function, or the value of a variable of the package, it replaces
// the text from by to.
type mutant struct {
	name   string
	breaks string // the invariants (docs/reference/invariants.md) or the promise that it breaks
	file   string // relative to the root of the module
	from   string // must occur once in the file
	to     string
	// by is what notices it: empty means storms; poolStorms; openStorms; or names of short tests, as
	// "TestX|TestY", in the package that dir returns.
	by string
}

// These are values of mutant.by for kinds of storms of command hunt.
const (
	poolStorms = "pools"
	openStorms = "open"
)

// mutants are all mistakes.
var mutants = slices.Concat(
	ofCodes, ofObject, ofMachine, ofMachineset, ofDeployment, ofRollout, ofDrain, ofSafety,
	ofMachineclass, ofMachinepool, ofDriver, ofStore, ofBolt, ofManager, ofFsm, ofSim, ofLead,
)

// core are the packages that must have at least three mistakes.
var core = []string{
	"codes", "object", "machine", "machineset", "deployment", "deployment/rollout", "drain", "safety",
	"machineclass", "machinepool", "driver", "store", "adapters/bolt", "manager", "machine/fsm", "lead",
}

// root is the directory of the repository.
const root = "../../.."

// storms is how many storms are played with a mistake, at most.
const storms = 600

// tested reports whether tests, and not storms, notice the mistake.
func (m *mutant) tested() bool { return !slices.Contains([]string{"", poolStorms, openStorms}, m.by) }

// dir returns the package whose tests notice the mistake. It is that of the file, with two exceptions. If a
// package below manager does not declare the tests, it is the package below manager that does, or manager.
// For package brake it is package orphan.
func (m *mutant) dir() string {
	dir := path.Dir(m.file)
	switch {
	case strings.HasPrefix(dir, "manager/") && !declares(dir, m.by):
		below, _ := filepath.Glob(filepath.Join(root, "manager", "*")) // the patterns are valid
		internal, _ := filepath.Glob(filepath.Join(root, "manager", "internal", "*"))
		for _, other := range append(below, internal...) {
			if other, err := filepath.Rel(root, other); err == nil && declares(filepath.ToSlash(other), m.by) {
				return filepath.ToSlash(other)
			}
		}
		return "manager"
	case dir == "safety/internal/brake":
		return "safety/orphan"
	}
	return dir
}

// declares reports whether a package declares all tests in names, which are separated by "|".
func declares(dir, names string) bool {
	files, _ := filepath.Glob(filepath.Join(root, dir, "*_test.go")) // the pattern is valid
	var all strings.Builder
	for _, file := range files {
		text, _ := os.ReadFile(file) // a file that can't be read declares nothing
		all.Write(text)
	}
	for name := range strings.SplitSeq(names, "|") {
		if !strings.Contains(all.String(), "func "+name+"(") {
			return false
		}
	}
	return true
}

// TestGallery builds the library once with all mistakes. It switches on one mistake at a time, and requires
// that storms, or the tests in mutant.by, notice it.
func TestGallery(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes: plays storms or runs tests for each mistake")
	}
	named := namedTests()
	build, err := overlay.New(t.Context(), root, t.TempDir(), edits(t), slices.Sorted(maps.Keys(named)))
	require.NoError(t, err)
	for _, kind := range []string{"", poolStorms, openStorms} {
		output, err := build.Storms(t.Context(), 0, 5, kind)
		require.NoError(t, err, output)
	}
	for dir, names := range named {
		t.Run("no mistake in "+dir, func(t *testing.T) {
			t.Parallel()
			output, err := build.Tests(t.Context(), 0, dir, pattern(strings.Join(names, "|")))
			require.NoError(t, err, output)
		})
	}
	for i, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			var output string
			var err error
			if m.tested() {
				output, err = build.Tests(t.Context(), i+1, m.dir(), pattern(m.by))
			} else {
				output, err = build.Storms(t.Context(), i+1, storms, m.by)
			}
			var exit *exec.ExitError
			require.True(t, errors.As(err, &exit), "%s (%s) is not noticed: %v %s", m.name, m.breaks, err, output)
			require.NotContains(t, output, "testing: warning: no tests to run")
			t.Logf("%s: %.300s", m.breaks, output)
		})
	}
}

// pattern returns a pattern that matches exactly the tests in names.
func pattern(names string) string { return "^(" + names + ")$" }

// namedTests returns the tests in mutant.by of all mistakes, by package.
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

// TestMutants: the mistakes can be applied, have different names, and name existing tests. There are at
// least 120, and at least 3 in each core package.
func TestMutants(t *testing.T) {
	require.GreaterOrEqual(t, len(mutants), 120)
	names, count := map[string]bool{}, map[string]int{}
	for _, m := range mutants {
		require.False(t, names[m.name], m.name)
		names[m.name] = true
		assert.True(t, !m.tested() || declares(m.dir(), m.by), "%s: %s does not declare %s", m.name, m.dir(), m.by)
		count[m.dir()]++
		if strings.HasPrefix(m.dir(), "safety/") {
			count["safety"]++
		}
	}
	for _, dir := range core {
		require.GreaterOrEqual(t, count[dir], 3, dir)
	}
	_, err := overlay.Files(root, edits(t))
	require.NoError(t, err)
}

// edits returns the edits of all mistakes, in their order.
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
