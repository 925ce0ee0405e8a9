package overlay

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Build is the library built once with many mistakes: command hunt, and the tests of packages.
type Build struct{ root, dir string }

// New builds into dir what the repository at root is with the edits, of which edit i is mistake number
// i+1: command hunt, and the tests of the packages, which may be in nested modules.
func New(ctx context.Context, root, dir string, edits []Edit, packages []string) (*Build, error) {
	file, err := Write(root, dir, edits)
	if err != nil {
		return nil, err
	}
	b := &Build{root, dir}
	err = b.run(ctx, "test/mutation", "build", "-overlay", file, "-o", filepath.Join(dir, "hunt"), "./hunt")
	if err != nil {
		return b, err
	}
	for module, names := range byModule(root, packages) {
		args := []string{"test", "-c", "-vet=off", "-overlay", file, "-o", dir + string(filepath.Separator)}
		if err := b.run(ctx, module, append(args, names...)...); err != nil {
			return b, err
		}
	}
	return b, nil
}

// byModule groups packages by the directory of their module, from which they are named.
func byModule(root string, packages []string) map[string][]string {
	groups := map[string][]string{}
	for _, name := range packages {
		module := name
		for module != "." {
			if _, err := os.Stat(filepath.Join(root, module, "go.mod")); err == nil {
				break
			}
			module = path.Dir(module)
		}
		groups[module] = append(groups[module], "./"+strings.TrimPrefix(name+"/", module+"/"))
	}
	return groups
}

func (b *Build) run(ctx context.Context, module string, args ...string) error {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = filepath.Join(b.root, module)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("a mistake does not compile: %w: %s", err, out)
	}
	return nil
}

// Storms plays storms of a kind, see command hunt, with a mistake, or 0 for none, until one shows a violation. The error is an
// *exec.ExitError if one did, or if the program failed in another way.
func (b *Build) Storms(ctx context.Context, mistake, storms int, kind string) (said string, err error) {
	c := b.command(ctx, mistake, "hunt", "-storms", strconv.Itoa(storms), "-kind", kind)
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Tests runs the short tests of a package whose names match the pattern (empty: all), with a
// mistake, or 0 for none, until the first fails. The error is an *exec.ExitError if one did.
func (b *Build) Tests(ctx context.Context, mistake int, name, pattern string) (said string, err error) {
	c := b.command(ctx, mistake, path.Base(name)+".test",
		"-test.short", "-test.failfast", "-test.timeout=10m", "-test.run", pattern)
	c.Dir = filepath.Join(b.root, name)
	out, err := c.CombinedOutput()
	return string(out), err
}

// confined limits a program, which a mistake may let grow without end, to 32 GB of addresses. Each
// file of the bolt store takes one GB of them.
const confined = `ulimit -v 32000000 2>/dev/null; exec "$0" "$@"`

// command is a program with one mistake switched on. Properties draw the same inputs each time, and
// a failing one is not made smaller, because that takes longer.
func (b *Build) command(ctx context.Context, mistake int, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", confined, filepath.Join(b.dir, name)}, args...)...)
	c.Env = append(os.Environ(), Variable+"="+strconv.Itoa(mistake), "GOMAXPROCS=1",
		"RAPID_SEED=1", "RAPID_SHRINKTIME=0s", "RAPID_NOFAILFILE=true")
	return c
}
