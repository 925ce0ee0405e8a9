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

// Trial is one check's time with a driver.
type Trial struct {
	testing.TB
	Options
	Ctx   context.Context //nolint:containedctx // as long as the test, like testing.T's own
	Names string          // begins every name of an object of this trial
	// Left is why the check was not run, or only in part. Empty: it was run.
	Left string

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
	return &Trial{TB: t, Options: o, Ctx: t.Context(), Names: "drivertest-" + strings.ToLower(rand.Text()[:8])}
}

// NotRun ends the check without a verdict.
func (r *Trial) NotRun(format string, args ...any) {
	r.Helper()
	r.Left = fmt.Sprintf(format, args...)
	r.Skip("not run: " + r.Left)
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
