package conformance

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

// alone runs f in a goroutine of its own, which f may end by runtime.Goexit, and waits.
func alone(f func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	<-ended
}

// Outcome is the result of one check.
type Outcome struct {
	Check           string // group/name
	Failed, Skipped bool
	Text            string // what it reported
	Left            string // why it was not run, or only in part; empty: it was run
}

// Outcomes runs the checks in order, each as if it were the only one.
func Outcomes(t *testing.T, checks []Check) []Outcome { return outcomes(t, checks, newMemory) }

// InOrder runs the checks as Run does: a check that needs one that failed is skipped, and a rule that is broken in
// the same way in several checks is reported by the first only.
func InOrder(t *testing.T, checks []Check) []Outcome {
	m := newMemory()
	return outcomes(t, checks, func() *memory { return m })
}

func outcomes(t *testing.T, checks []Check, memoryOf func() *memory) []Outcome {
	var all []Outcome
	for _, c := range checks {
		record, m := &recorder{TB: t}, memoryOf()
		alone(func() { m.try(t, record, c) })
		for _, f := range record.cleanups {
			alone(f)
		}
		all = append(all, Outcome{
			Check: c.title(), Failed: record.Failed(), Skipped: record.skipped, Text: record.text(), Left: m.omittedFor(c),
		})
	}
	return all
}

// Failures returns the names of the checks that failed.
func Failures(all []Outcome) []string {
	var names []string
	for _, o := range all {
		if o.Failed {
			names = append(names, o.Check)
		}
	}
	return names
}

// Judge checks a broken driver's outcomes. fails maps each check that must fail to a text that it must report. At
// least one check must not fail. Judge sets found for each check in fails that failed with its text.
func Judge(t *testing.T, all []Outcome, fails map[string]string, found map[string]bool) {
	t.Helper()
	for check, says := range fails {
		i := slices.IndexFunc(all, func(o Outcome) bool { return o.Check == check })
		switch {
		case i < 0:
			t.Errorf("there is no check %q", check)
		case !all[i].Failed:
			t.Errorf("%s does not fail; failing are %q", check, Failures(all))
		case !strings.Contains(all[i].Text, says):
			t.Errorf("%s does not say %q but\n%s", check, says, all[i].Text)
		default:
			found[check] = true
		}
	}
	if len(Failures(all)) == len(all) {
		t.Errorf("every check fails, so the failures don't show that the right checks find the bug")
	}
}

// PromptFor returns Options.Prompt, how long a call may go on after its context has ended, for a broken driver that is
// expected to fail as fails says: 20 ms if a call never returns, else zero, the default.
func PromptFor(fails map[string]string) time.Duration {
	if slices.Contains(slices.Collect(maps.Values(fails)), "did not return within") {
		return 20 * time.Millisecond
	}
	return 0
}
