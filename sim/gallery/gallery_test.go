package gallery_test

import (
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/sim/gallery/overlay"
)

// mutant is a mistake: in the body of a function, one text in place of another.
type mutant struct {
	name   string
	breaks string // the invariants that are at stake
	file   string // from the root of the module
	from   string // is there once
	to     string
}

// root is the module's directory.
const root = "../.."

// TestGallery builds the library once with all mistakes in it, each behind a
// switch, lets it live through storms with one of them at a time, and expects
// that to be noticed.
func TestGallery(t *testing.T) {
	if testing.Short() {
		t.Skip("plays storms for each mistake: minutes")
	}
	b := build(t)
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		said, caught := b.hunt(t, 0, false, "60")
		require.False(t, caught, said)
		t.Log(said)
	})
	for i, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if dir := byTests[m.name]; dir != "" {
				b.runTests(t, i+1, m, dir)
				return
			}
			said, caught := b.hunt(t, i+1, slices.Contains(pooled, m), "600")
			require.True(t, caught, "%s (%s) is not noticed: %s", m.name, m.breaks, said)
			t.Logf("%s: %s", m.breaks, said)
		})
	}
	for _, dir := range testedDirs() {
		t.Run("none in the tests of "+dir, func(t *testing.T) {
			t.Parallel()
			out, err := b.tests(t, 0, dir)
			require.NoError(t, err, out)
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
	}
	for name := range byTests {
		require.True(t, names[name], name)
	}
	_, err := overlay.Write(root, t.TempDir(), edits(t))
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

// built is what was built with all mistakes: command hunt, and the tests of
// packages.
type built struct{ dir string }

func build(t *testing.T) built {
	t.Helper()
	b := built{t.TempDir()}
	file, err := overlay.Write(root, b.dir, edits(t))
	require.NoError(t, err)
	run := func(args ...string) {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir = root
		out, err := command.CombinedOutput()
		require.NoError(t, err, "a mistake does not compile: %s", out)
	}
	run("build", "-overlay", file, "-o", b.program("hunt"), "./sim/gallery/hunt")
	for _, dir := range testedDirs() {
		run("test", "-c", "-vet=off", "-overlay", file, "-o", b.program(dir), "./"+dir)
	}
	return b
}

func (b built) program(name string) string {
	return filepath.Join(b.dir, strings.ReplaceAll(name, "/", "-")+".program")
}

// command is a program with one mistake switched on. Properties draw the same
// inputs each time, and a failing one is not made smaller: that takes longer.
func (b built) command(t *testing.T, mistake int, name string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), b.program(name), args...)
	c.Env = append(os.Environ(), overlay.Variable+"="+strconv.Itoa(mistake), "GOMAXPROCS=1",
		"RAPID_SEED=1", "RAPID_SHRINKTIME=0s", "RAPID_NOFAILFILE=true")
	return c
}

// hunt runs command hunt with a mistake.
func (b built) hunt(t *testing.T, mistake int, pools bool, storms string) (said string, caught bool) {
	t.Helper()
	args := []string{"-storms", storms}
	if pools {
		args = append(args, "-pools")
	}
	out, err := b.command(t, mistake, "hunt", args...).Output()
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
	"a machine that works and is to be replaced goes before one that does not":        "machineset",
	"a set is given names with its size while creates under others are on their way":  "deployment",
	"new machines that are not available are not taken off the budget":                "deployment/rollout",
}

func testedDirs() []string {
	var dirs []string
	for _, dir := range byTests {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// runTests runs the tests of a package with a mistake in it.
func (b built) runTests(t *testing.T, mistake int, m mutant, dir string) {
	t.Helper()
	out, err := b.tests(t, mistake, dir)
	require.Error(t, err, "%s (%s) is not noticed by the tests of %s", m.name, m.breaks, dir)
	require.Contains(t, out, "--- FAIL", "%s", out)
	t.Logf("%s: by the tests of %s", m.breaks, path.Base(dir))
}

func (b built) tests(t *testing.T, mistake int, dir string) (string, error) {
	t.Helper()
	run := b.command(t, mistake, dir, "-test.short", "-test.failfast", "-test.timeout=5m")
	run.Dir = filepath.Join(root, dir)
	out, err := run.CombinedOutput()
	return string(out), err
}
