// Command mutants makes random small mistakes in the source of the core packages, and finds out which of
// them no test notices.
//
//	go -C test/mutation run ./mutants -seed 1 -count 60
//	go -C test/mutation run ./mutants -packages manager/engine,drain
//
// The mistakes are: a negated condition, another operator such as <= for < or || for &&, a removed call or
// assignment to a field, a number that is off by one, and false for true or true for false. All are in one
// build, and an environment variable switches one on (package overlay). For each mistake, the short tests
// of its package run. If they don't notice it, storms (see command hunt) are played, and then the tests
// of the manager run.
//
// It prints each mistake that nothing noticed, with its position, and a summary. Such a mistake may be
// harmless: the changed code may have the same effect, or differ only in a text or in speed. The exit
// status is 1 if the build or a test without mistakes fails.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millwright-go/millwright/test/mutation/overlay"
)

// core are the trees of packages whose source is changed, without test suites in them.
var core = []string{
	"codes", "object", "decision", "machine", "machineset", "deployment", "machineclass", "machinepool", "drain", "driver",
	"safety", "store", "manager",
}

// patience limits the tests of a package, or the storms, with a mistake. A mistake that takes longer is
// counted separately: perhaps it never ends, or the computer is slow.
const patience = 8 * time.Minute

// timedOut is the report for a mistake that takes longer than patience.
const timedOut = "nothing, within its time"

func main() {
	root := flag.String("root", "../..", "the directory of the repository")
	seed := flag.Uint64("seed", 1, "seed that draws the mistakes")
	count := flag.Int("count", 60, "how many mistakes")
	only := flag.String("packages", strings.Join(core, ","), "trees of packages in which mistakes are made")
	storms := flag.Int("storms", 60, "how many storms are played if the tests of the package don't notice a mistake")
	flag.Parse()
	if err := run(context.Background(), *root, *seed, *count, *storms, strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string, seed uint64, count, storms int, packages []string) error {
	all, err := changes(root, packages)
	if err != nil {
		return err
	}
	total := len(all)
	drawn, err := compiling(root, sample(all, 2*count, seed))
	if err != nil {
		return err
	}
	drawn = drawn[:min(count, len(drawn))]
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	fmt.Fprintf(os.Stderr, "%d of %d changes, seed %d\n", len(drawn), total, seed)
	t := trial{storms: storms, tested: tested(root, drawn), managers: ofManager(root)}
	if t.build, err = overlay.New(ctx, root, dir, edits(drawn), t.tested); err != nil {
		return err
	}
	for _, dir := range t.tested {
		if output, err := t.build.Tests(ctx, 0, dir, ""); err != nil {
			return fmt.Errorf("%s: the tests fail without a mistake: %w: %s", dir, err, output)
		}
	}
	caught := t.all(ctx, drawn)
	report(drawn, caught)
	return nil
}

// tested returns the packages whose tests run: changed packages with tests, and the manager's packages,
// whose tests use all others.
func tested(root string, drawn []change) []string {
	list := ofManager(root)
	for _, c := range drawn {
		dir := path.Dir(c.File)
		tests, _ := filepath.Glob(filepath.Join(root, dir, "*_test.go")) // the pattern is valid
		if len(tests) > 0 && !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return list
}

// ofManager returns package manager and the packages below it that have tests.
func ofManager(root string) []string {
	list := []string{"manager"}
	files, _ := filepath.Glob(filepath.Join(root, "manager", "*", "*_test.go")) // the patterns are valid
	internal, _ := filepath.Glob(filepath.Join(root, "manager", "internal", "*", "*_test.go"))
	for _, file := range append(files, internal...) {
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err == nil && !slices.Contains(list, filepath.ToSlash(dir)) {
			list = append(list, filepath.ToSlash(dir))
		}
	}
	return list
}

// trial runs tests and storms with a mistake switched on.
type trial struct {
	build    *overlay.Build
	storms   int
	tested   []string
	managers []string // the packages of the manager that have tests
}

// all returns what notices each mistake, as method one says it. It uses all processors.
func (t *trial) all(ctx context.Context, drawn []change) []string {
	caught := make([]string, len(drawn))
	numbers := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range numbers {
				caught[i] = t.one(ctx, i+1, path.Dir(drawn[i].File))
				fmt.Fprintf(os.Stderr, "%d of %d: %v: noticed by %s\n", i+1, len(drawn), drawn[i], cmp.Or(caught[i], "nothing"))
			}
		})
	}
	for i := range drawn {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
	return caught
}

// one returns what notices a mistake in a package: "" if nothing does, timedOut if that can't be told.
func (t *trial) one(ctx context.Context, number int, dir string) string {
	checks := []struct {
		name string
		run  func(context.Context) error
	}{
		{"its own tests", func(ctx context.Context) error { _, err := t.build.Tests(ctx, number, dir, ""); return err }},
		{"storms", func(ctx context.Context) error { _, err := t.build.Storms(ctx, number, t.storms, ""); return err }},
		{"storms of pools", func(ctx context.Context) error { _, err := t.build.Storms(ctx, number, t.storms, "pools"); return err }},
		{"storms of an open world", func(ctx context.Context) error { _, err := t.build.Storms(ctx, number, t.storms, "open"); return err }},
		{"the manager's tests", func(ctx context.Context) error { return t.managersTests(ctx, number, dir) }},
	}
	if !slices.Contains(t.tested, dir) {
		checks = checks[1:]
	}
	for _, check := range checks {
		within, cancel := context.WithTimeout(ctx, patience)
		err := check.run(within)
		tooLate := within.Err() != nil
		cancel()
		var exit *exec.ExitError
		switch {
		case tooLate:
			return timedOut
		case errors.As(err, &exit):
			return check.name
		}
	}
	return ""
}

// managersTests runs the tests of the manager's packages with a mistake, except for package own, whose
// tests have run already.
func (t *trial) managersTests(ctx context.Context, number int, own string) error {
	for _, dir := range t.managers {
		if dir == own {
			continue
		}
		if _, err := t.build.Tests(ctx, number, dir, ""); err != nil {
			return err
		}
	}
	return nil
}

// report prints the mistakes that nothing noticed, and a summary.
func report(drawn []change, caught []string) {
	by := map[string]int{}
	for i, c := range drawn {
		by[caught[i]]++
		if caught[i] == "" || caught[i] == timedOut {
			fmt.Printf("%v: noticed by %s\n", c, cmp.Or(caught[i], "nothing"))
		}
	}
	fmt.Printf("%d of %d noticed, %d do not end", len(drawn)-by[""]-by[timedOut], len(drawn), by[timedOut])
	for _, name := range []string{"its own tests", "storms", "storms of pools", "storms of an open world", "the manager's tests"} {
		fmt.Printf(", %d by %s", by[name], name)
	}
	fmt.Println()
}
