package simtest

import (
	"flag"
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
)

var seedFlag = flag.String("simtest.seed", "", "play only the scenario of this seed, and print the whole story if it fails")

// Run plays scenarios, and fails t if one of them violates anything. It reports the lowest seed that
// fails. A scenario that fails is played again. If the second run is different, the report says so.
func Run(t *testing.T, o Options) {
	t.Helper()
	o, err := o.complete()
	if err != nil {
		t.Fatal(err)
	}
	seeds, whole := seedRange{n: uint64(o.Seeds)}, false
	if *seedFlag != "" {
		seed, err := strconv.ParseUint(*seedFlag, 10, 64)
		if err != nil {
			t.Fatalf("simtest: -simtest.seed must be a number from 0 on, but is %q", *seedFlag)
		}
		seeds, whole = seedRange{seed, 1}, true
	}
	report, err := o.run(t.Name(), seeds, whole)
	switch {
	case err != nil:
		t.Fatal(err)
	case report != "":
		t.Error(report)
	}
}

// seedRange is a range of n seeds that begins with first.
type seedRange struct{ first, n uint64 }

// run plays the scenarios of seeds, and returns the report on the first that fails.
func (o *Options) run(test string, seeds seedRange, whole bool) (report string, err error) {
	failed, err := o.search(seeds)
	if err != nil || failed == nil {
		return "", err
	}
	f, err := o.explain(failed)
	if err != nil {
		return "", err
	}
	return f.report(test, whole), nil
}

// outcome is the seed of a scenario that failed, and why.
type outcome struct {
	seed uint64
	err  error // of sim.Play
	rule string
}

// search returns the failed scenario with the lowest seed, or nil.
func (o *Options) search(seeds seedRange) (*outcome, error) {
	var (
		next    atomic.Uint64
		mu      sync.Mutex
		first   *outcome
		workers sync.WaitGroup
	)
	for range min(uint64(runtime.GOMAXPROCS(0)), seeds.n) {
		workers.Go(func() {
			for {
				i := next.Add(1) - 1
				mu.Lock()
				over := first != nil
				mu.Unlock()
				if i >= seeds.n || over {
					return
				}
				seed := seeds.first + i
				r, err := sim.Play(o.scenario(seed))
				if err == nil && r.Violation == nil {
					continue
				}
				mu.Lock()
				if first == nil || seed < first.seed {
					first = &outcome{seed: seed, err: err}
					if err == nil {
						first.rule = r.Violation.Rule
					}
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if first != nil && first.err != nil {
		return nil, fmt.Errorf("simtest: seed %d: %w", first.seed, first.err)
	}
	return first, nil
}

// recorded is one run of a scenario.
type recorded struct {
	result sim.Result
	lines  []line
}

// record plays a scenario and records what happens in it.
func (o *Options) record(s *sim.Scenario) (*recorded, error) {
	j := &journal{}
	again := *s
	o.equip(&again, j)
	again.Options.Tell = j.tell
	r, err := sim.Play(&again)
	return &recorded{result: r, lines: j.upTo(r.Violation != nil)}, err
}

// failure is what is known of a scenario that failed.
type failure struct {
	seed      uint64
	small     *sim.Scenario
	play      *recorded
	different string // how the second run differs from the first; empty: it does not
}

// explain plays a failed scenario twice, and makes it smaller.
func (o *Options) explain(failed *outcome) (*failure, error) {
	s := o.scenario(failed.seed)
	one, err := o.record(s)
	if err != nil {
		return nil, err
	}
	two, err := o.record(o.scenario(failed.seed))
	if err != nil {
		return nil, err
	}
	f := &failure{seed: failed.seed, small: s, play: one, different: difference(one, two)}
	switch {
	case one.result.Violation == nil:
		one.result.Violation = &sim.Violation{Rule: failed.rule, What: "only when it was played first"}
		f.different = "nothing is violated when it is played again"
	case f.different == "" && o.Tries > 0:
		f.small = scenario.Shrink(s, failed.rule, o.Tries)
		f.play, err = o.record(f.small)
	}
	return f, err
}

// difference returns the first difference between two runs of a scenario, or "".
func difference(one, two *recorded) string {
	for i := range min(len(one.lines), len(two.lines)) {
		if a, b := &one.lines[i], &two.lines[i]; a.at != b.at || a.text != b.text {
			return fmt.Sprintf("at %s: %s\nat %s: %s", a.at, a.text, b.at, b.text)
		}
	}
	if a, b := len(one.lines), len(two.lines); a != b {
		return fmt.Sprintf("%d events, then %d", a, b)
	}
	return ""
}

// report returns the report on a failure, in at most maxStory lines unless whole is true.
func (f *failure) report(test string, whole bool) string {
	v := f.play.result.Violation
	var head, tail strings.Builder
	fmt.Fprintf(&head, "simtest: seed %d: %s: %s\n", f.seed, v.Rule, ofDriver(v.What))
	if f.different != "" {
		fmt.Fprintf(&head, "The run is not deterministic: the driver, its provider or a property uses real time, goroutines, chance or\nthe order of a map. Played again, it differs:\n%s\n", f.different)
	}
	fmt.Fprintf(&head, "What happens in the smallest scenario found (%s):\n", scenario.Summary(f.small))
	s := newStory(f.play.lines, v.Rule, v.What)
	tail.WriteString(s.lastCalls())
	fmt.Fprintf(&tail, "To play it again: go test -run '%s' -simtest.seed=%d", pattern(test), f.seed)
	limit := 0
	if !whole {
		limit = maxStory - strings.Count(head.String(), "\n") - strings.Count(tail.String(), "\n") - 1
	}
	return head.String() + s.text(limit) + tail.String()
}

// ofDriver cuts a stack trace after the driver's own frames, and to as many lines as a story has room for.
func ofDriver(what string) string {
	what, _, _ = strings.Cut(what, "\n\t"+reflect.TypeFor[watched]().PkgPath()+".")
	lines := strings.Split(strings.TrimRight(what, "\n"), "\n")
	return strings.Join(lines[:min(len(lines), maxStory/3)], "\n")
}

// pattern returns the argument of -run for a test.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i := range parts {
		parts[i] = "^" + regexp.QuoteMeta(parts[i]) + "$"
	}
	return strings.Join(parts, "/")
}
