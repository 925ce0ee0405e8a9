package conformance

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millwright-go/millwright/driver"
)

// Options says how a Trial watches calls.
type Options struct {
	// Patience is how long a call may take: the deadline in its context. Zero
	// stands for 30 seconds.
	Patience time.Duration
	// Prompt is how long a call may go on after its context has ended. Zero
	// stands for 5 seconds.
	Prompt time.Duration
	// Settle returns once the effects of the calls are visible. Nil: they are visible at once.
	Settle func(ctx context.Context)
	// Responsive are the calls to which OK alone is no answer.
	Responsive []driver.Method
}

// Trial is one run of one check, with a driver.
type Trial struct {
	testing.TB
	Options
	Ctx   context.Context //nolint:containedctx // as long as the test, like testing.T's own
	Names string          // begins every name of an object of this trial
	// Left is why the check was not run, or only in part. Empty: it was run.
	Left string

	memory  *memory
	check   string                 // its title; empty outside of a run
	coda    string                 // what the first failure ends with: the duty, and why it matters
	broken  atomic.Bool            // the check failed
	quiet   atomic.Int32           // if positive, breaches of rules are only logged, see Quiet
	spoilt  atomic.Pointer[string] // why further findings of the check don't count; nil: they do
	stuck   atomic.Bool
	secrets secrets
}

// New returns a trial that reports its findings to t.
func New(t testing.TB, o Options) *Trial {
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	if o.Prompt <= 0 {
		o.Prompt = 5 * time.Second
	}
	o.Responsive = slices.Clone(o.Responsive)
	return &Trial{
		TB: t, Options: o, Ctx: t.Context(), Names: "drivertest-" + strings.ToLower(rand.Text()[:8]), memory: newMemory(),
	}
}

// NotRun ends the check without a verdict.
func (r *Trial) NotRun(format string, args ...any) {
	r.Helper()
	r.Left = fmt.Sprintf(format, args...)
	r.Skip("not run: " + r.Left)
}

// FailedBefore reports whether a check, by Group/Name, has failed in this run.
func (r *Trial) FailedBefore(check string) bool { return r.memory.failed[check] != "" }

// Errorf reports what the check has found. After a call that panicked or did not return, it only logs,
// because that call is the cause.
func (r *Trial) Errorf(format string, args ...any) {
	r.Helper()
	if r.spoilt.Load() != nil {
		r.Logf(format, args...)
		return
	}
	text := fmt.Sprintf(format, args...)
	if !r.broken.Swap(true) {
		text += r.coda
	}
	r.TB.Error(text)
}

// Fatalf is Errorf that ends the check.
func (r *Trial) Fatalf(format string, args ...any) {
	r.Helper()
	r.Errorf(format, args...)
	r.conclude()
	r.FailNow()
}

// conclude skips the check if its findings don't count.
func (r *Trial) conclude() {
	r.Helper()
	if why := r.spoilt.Load(); why != nil && !r.Failed() {
		r.NotRun("%s", *why)
	}
}

// Quiet makes calls in which no breach of a rule is reported, because other checks make the same calls.
func (r *Trial) Quiet(calls func()) {
	r.quiet.Add(1)
	defer r.quiet.Add(-1)
	calls()
}

// breach reports that a call broke a rule that holds for any call. A run reports each cause once. It
// returns where it was reported.
func (r *Trial) breach(cause, format string, args ...any) (where string) {
	r.Helper()
	if r.quiet.Load() > 0 {
		r.Logf(format, args...)
		return "the log"
	}
	where, isNew := r.memory.first(cause, r.check)
	if isNew {
		r.TB.Errorf(format, args...)
	}
	return where
}

// spoil reports a breach after which further findings of the check don't count.
func (r *Trial) spoil(what, cause, format string, args ...any) {
	r.Helper()
	where := r.breach(cause, format, args...)
	if r.quiet.Load() > 0 {
		return
	}
	if where == r.check {
		r.broken.Store(true)
	}
	why := what + ": see " + where
	r.spoilt.Store(&why)
}

// Stuck reports whether a call did not return. Then no other call is made.
func (r *Trial) Stuck() bool { return r.stuck.Load() }

// Settled waits until the effects of the calls are visible.
func (r *Trial) Settled() {
	if r.Settle != nil {
		ctx, cancel := context.WithTimeout(r.Ctx, r.Patience)
		defer cancel()
		r.Settle(ctx)
	}
}
