package gallery_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutant is a mistake: in a file, one text in place of another.
type mutant struct {
	name   string
	breaks string // the invariants that are at stake
	file   string // from the root of the module
	from   string // is there once
	to     string
}

// root is the module's directory.
const root = "../.."

// TestGallery builds the library with each mistake in it, lets it live through
// storms, and expects that to be noticed.
func TestGallery(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the library once for each mistake: minutes")
	}
	t.Run("none", func(t *testing.T) {
		said, caught := hunt(t, mutant{}, "60")
		require.False(t, caught, said)
		t.Log(said)
	})
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			if dir := byTests[m.name]; dir != "" {
				runTests(t, m, dir)
				return
			}
			said, caught := hunt(t, m, "600")
			require.True(t, caught, "%s (%s) is not noticed: %s", m.name, m.breaks, said)
			t.Logf("%s: %s", m.breaks, said)
		})
	}
}

// TestMutants: each is one change of one place, and no two have the same name.
func TestMutants(t *testing.T) {
	require.GreaterOrEqual(t, len(mutants), 25)
	names := map[string]bool{}
	for _, m := range mutants {
		require.False(t, names[m.name], m.name)
		names[m.name] = true
		changed(t, m)
	}
}

// changed is the file with the mistake in it.
func changed(t *testing.T, m mutant) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, m.file))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(source), m.from), "%s: the text to change is not in %s, or more than once", m.name, m.file)
	require.NotEqual(t, m.from, m.to)
	return strings.Replace(string(source), m.from, m.to, 1)
}

// hunt builds and runs command hunt with a mistake in it.
func hunt(t *testing.T, m mutant, storms string) (said string, caught bool) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "hunt")
	args := []string{"build", "-o", program}
	if m.file != "" {
		args = append(args, "-overlay", overlay(t, dir, m))
	}
	build := exec.CommandContext(t.Context(), "go", append(args, "./sim/gallery/hunt")...)
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s does not compile: %s", m.name, out)

	args = []string{"-storms", storms}
	if slices.Contains(pooled, m) {
		args = append(args, "-pools")
	}
	out, err = exec.CommandContext(t.Context(), program, args...).Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 3) {
		return "it does not run: " + err.Error(), true
	}
	return strings.TrimSpace(string(out)), err != nil
}

// byTests are mistakes that the tests of a package notice, by name. Storms show
// them too rarely.
var byTests = map[string]string{
	"a set makes machines in the place of failed ones that it may have kept":          "machineset",
	"that no create was ever issued stays noted when one is announced":                "machine",
	"a failed stage of a deletion is tried again at once, whatever wakes the machine": "machine",
	"a set gives out names for missing machines by what its cache shows":              "machineset",
	"a class is let go while machines of it are being deleted":                        "manager",
	"an update of a group that was killed counts as never sent":                       "machinepool",
	"an update of a VM that was not answered in time counts as done":                  "machine",
}

// runTests runs the tests of a package with a mistake in it.
func runTests(t *testing.T, m mutant, dir string) {
	t.Helper()
	run := exec.CommandContext(t.Context(), "go", "test", "-short", "-overlay", overlay(t, t.TempDir(), m), "./"+dir)
	run.Dir = root
	out, err := run.CombinedOutput()
	require.Error(t, err, "%s (%s) is not noticed by the tests of %s", m.name, m.breaks, dir)
	require.Contains(t, string(out), "--- FAIL", "%s", out)
	t.Logf("%s: by the tests of %s", m.breaks, dir)
}

// overlay writes what the build puts in place of the file with the mistake.
func overlay(t *testing.T, dir string, m mutant) string {
	t.Helper()
	broken := filepath.Join(dir, "broken.go")
	require.NoError(t, os.WriteFile(broken, []byte(changed(t, m)), 0o600))
	file, err := filepath.Abs(filepath.Join(root, m.file))
	require.NoError(t, err)
	text, err := json.Marshal(map[string]map[string]string{"Replace": {file: broken}})
	require.NoError(t, err)
	name := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(name, text, 0o600))
	return name
}
