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

// Build is the result of one build with many mistakes: command hunt, and test binaries of packages.
type Build struct{ root, dir string }

// New builds command hunt and the tests of packages, which may be in nested modules, from the repository
// at root, into dir. Edit i is mistake number i+1.
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

// byModule groups packages by the directory of their module. Their names become relative to it.
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

// run runs the go command in a module.
func (b *Build) run(ctx context.Context, module string, args ...string) error {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = filepath.Join(b.root, module)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("a mistake does not compile: %w: %s", err, out)
	}
	return nil
}

// Storms plays storms of a kind (see command hunt) with a mistake switched on; 0 means none. It returns
// what the program prints. If there was a violation, or the program failed in another way, the error is an
// *exec.ExitError.
func (b *Build) Storms(ctx context.Context, mistake, storms int, kind string) (output string, err error) {
	c := b.command(ctx, mistake, "hunt", "-storms", strconv.Itoa(storms), "-kind", kind)
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Tests runs the short tests of a package that match a pattern (empty: all), until one fails, with a
// mistake switched on; 0 means none. It returns what they print. If a test fails, the error is an
// *exec.ExitError.
func (b *Build) Tests(ctx context.Context, mistake int, name, pattern string) (output string, err error) {
	c := b.command(ctx, mistake, path.Base(name)+".test",
		"-test.short", "-test.failfast", "-test.timeout=10m", "-test.run", pattern)
	c.Dir = filepath.Join(b.root, name)
	out, err := c.CombinedOutput()
	return string(out), err
}

// confined is a shell script that runs a program with at most 32 GB of address space, because a mistake
// may make it grow without end. Each file of the bolt store takes 1 GB of address space.
const confined = `ulimit -v 32000000 2>/dev/null; exec "$0" "$@"`

// command returns a command that runs a program with a mistake switched on. Property-based tests draw the
// same inputs each time, and don't shrink a failing input, because that takes time.
func (b *Build) command(ctx context.Context, mistake int, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", confined, filepath.Join(b.dir, name)}, args...)...)
	c.Env = append(os.Environ(), Variable+"="+strconv.Itoa(mistake), "GOMAXPROCS=1",
		"RAPID_SEED=1", "RAPID_SHRINKTIME=0s", "RAPID_NOFAILFILE=true")
	return c
}
