// Command mutants makes small mistakes in the source of the core packages at random, and finds out
// which of them no test notices.
//
//	go -C test/mutation run ./mutants -seed 1 -count 60
//	go -C test/mutation run ./mutants -packages manager/engine,drain
//
// The mistakes are a negated condition, a moved boundary, "and" for "or", a dropped call or
// assignment of a field, a number that is one off, true for false. All are in one build, and a
// switch chooses one (package overlay). For each, the short tests of its package run.
// What they miss meets storms, and then the tests of the manager.
//
// It prints each survivor with its place, and the score at the end. A survivor is no fault yet: the
// changed code may do the same, only say something else, or only take longer. The exit status is 1
// if nothing could be built or run.
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

// core are the trees of packages whose source is changed. Of these trees, suites for users to run
// are left out.
var core = []string{
	"codes", "object", "decision", "machine", "machineset", "deployment", "machineclass", "machinepool", "drain", "driver",
	"safety", "store", "manager",
}

// patience limits the tests of a package, or storms, with a mistake. A mistake that takes longer is
// counted apart: it does not end, or the machine is slow.
const patience = 8 * time.Minute

// endless is the report for a mistake that takes longer than patience.
const endless = "nothing, within its time"

func main() {
	root := flag.String("root", "../..", "the directory of the repository")
	seed := flag.Uint64("seed", 1, "which mistakes are drawn")
	count := flag.Int("count", 60, "how many")
	only := flag.String("packages", strings.Join(core, ","), "the trees of packages in which they are made")
	storms := flag.Int("storms", 60, "how many storms a mistake meets that its package's tests miss")
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
		if said, err := t.build.Tests(ctx, 0, dir, ""); err != nil {
			return fmt.Errorf("%s: the tests fail without a mistake: %w: %s", dir, err, said)
		}
	}
	caught := t.all(ctx, drawn)
	report(drawn, caught)
	return nil
}

// tested returns the packages whose tests are needed: those with changes and with tests, and those
// of the manager, whose tests see the others at work.
func tested(root string, drawn []change) []string {
	list := ofManager(root)
	for _, c := range drawn {
		dir := path.Dir(c.File)
		tests, _ := filepath.Glob(filepath.Join(root, dir, "*_test.go")) // the pattern is a good one
		if len(tests) > 0 && !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return list
}

// ofManager returns the manager and the packages beside its reconcilers whose tests run a manager.
func ofManager(root string) []string {
	list := []string{"manager"}
	files, _ := filepath.Glob(filepath.Join(root, "manager", "*", "*_test.go")) // the patterns are good ones
	internal, _ := filepath.Glob(filepath.Join(root, "manager", "internal", "*", "*_test.go"))
	for _, file := range append(files, internal...) {
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err == nil && !slices.Contains(list, filepath.ToSlash(dir)) {
			list = append(list, filepath.ToSlash(dir))
		}
	}
	return list
}

// trial runs tests and storms with mistakes.
type trial struct {
	build    *overlay.Build
	storms   int
	tested   []string
	managers []string // the packages of the manager with tests
}

// all finds out what notices each of the changes, on all processors. The entry is empty if nothing
// does.
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

// one returns what notices a mistake in a package.
func (t *trial) one(ctx context.Context, number int, dir string) string {
	ways := []struct {
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
		ways = ways[1:]
	}
	for _, way := range ways {
		within, cancel := context.WithTimeout(ctx, patience)
		err := way.run(within)
		late := within.Err() != nil
		cancel()
		var exit *exec.ExitError
		switch {
		case late:
			return endless
		case errors.As(err, &exit):
			return way.name
		}
	}
	return ""
}

// managersTests runs the manager's tests with a mistake, but for those of its own package.
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

// report prints the survivors and the score.
func report(drawn []change, caught []string) {
	by := map[string]int{}
	for i, c := range drawn {
		by[caught[i]]++
		if caught[i] == "" || caught[i] == endless {
			fmt.Printf("%v: noticed by %s\n", c, cmp.Or(caught[i], "nothing"))
		}
	}
	fmt.Printf("%d of %d noticed, %d do not end", len(drawn)-by[""]-by[endless], len(drawn), by[endless])
	for _, name := range []string{"its own tests", "storms", "storms of pools", "storms of an open world", "the manager's tests"} {
		fmt.Printf(", %d by %s", by[name], name)
	}
	fmt.Println()
}
