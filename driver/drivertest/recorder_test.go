package drivertest

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// recorder is a test that may fail without failing the one around it.
type recorder struct {
	testing.TB

	mu       sync.Mutex
	failed   bool
	skipped  bool
	lines    []string
	cleanups []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Log(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintln(args...))
}

func (r *recorder) Fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) FailNow()                          { r.Fail(); runtime.Goexit() }
func (r *recorder) Logf(format string, args ...any)   { r.Log(fmt.Sprintf(format, args...)) }
func (r *recorder) Error(args ...any)                 { r.Log(args...); r.Fail() }
func (r *recorder) Errorf(format string, args ...any) { r.Logf(format, args...); r.Fail() }
func (r *recorder) Fatal(args ...any)                 { r.Log(args...); r.FailNow() }
func (r *recorder) Fatalf(format string, args ...any) { r.Logf(format, args...); r.FailNow() }

func (r *recorder) Skip(args ...any) {
	r.Log(args...)
	r.skipped = true
	runtime.Goexit()
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) text() string { return strings.Join(r.lines, "") }

// alone runs f to its end, wherever in it that is.
func alone(f func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	<-ended
}

// outcome is how one check went.
type outcome struct {
	check string // group/name
	*recorder
	reason string // why it was skipped
}

// outcomes runs every check of the suite, each on its own.
func outcomes(t *testing.T, s Suite) []outcome {
	var all []outcome
	for _, g := range groups() {
		for _, c := range g.checks {
			record := &recorder{TB: t}
			trial := newTrial(record, s, s.New(t))
			alone(func() { trial.try(c) })
			for _, f := range record.cleanups {
				alone(f)
			}
			all = append(all, outcome{g.name + "/" + c.name, record, trial.skipped})
		}
	}
	return all
}

// failures are the names of the checks that failed.
func failures(all []outcome) []string {
	var names []string
	for _, o := range all {
		if o.Failed() {
			names = append(names, o.check)
		}
	}
	return names
}

// judge requires of a broken driver's outcomes that the checks fail that should,
// each with what it says, and not all of them; it adds those to found.
func judge(t *testing.T, all []outcome, fails map[string]string, found map[string]bool) {
	t.Helper()
	for check, says := range fails {
		i := slices.IndexFunc(all, func(o outcome) bool { return o.check == check })
		switch {
		case i < 0:
			t.Errorf("there is no check %q", check)
		case !all[i].Failed():
			t.Errorf("%s does not fail; failing are %q", check, failures(all))
		case !strings.Contains(all[i].text(), says):
			t.Errorf("%s does not say %q but\n%s", check, says, all[i].text())
		default:
			found[check] = true
		}
	}
	if len(failures(all)) == len(all) {
		t.Errorf("every single check fails, which says nothing")
	}
}

// promptFor is a suite's patience with a driver that fails so.
func promptFor(fails map[string]string) time.Duration {
	if slices.Contains(slices.Collect(maps.Values(fails)), "did not return within") {
		return 20 * time.Millisecond // it never will; the others have all the time they need
	}
	return 0
}
