package driver

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
)

// Limits says how many calls may be made. The zero value limits nothing.
type Limits struct {
	// Calls are the limited calls. They share the limit; the others pass. Empty: every call is
	// limited. For limits of single calls beside one for all, use Limit several times, the narrow
	// limits outside.
	Calls []Method
	// Concurrency is how many calls may be under way at once. Zero or less: any number.
	Concurrency int
	// Interval is the time until one more call may begin. Zero or less: no time.
	Interval time.Duration
	// Burst is how many calls may begin at once after a quiet time: in any span of time, Burst and
	// one more for each Interval in it. Less than 1 counts as 1.
	Burst int
	// Now and After are the clock for Interval; time.Now and time.After serve. They are required
	// with an Interval: without them every limited call is INTERNAL.
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time
}

// Limit makes calls wait until the limits allow them, first come, first served. All drivers
// with the same Interceptor share its limits, such as those for machines and for other things in one
// account.
//
// A call whose context ends meanwhile is not made. Its error is CANCELED or DEADLINE_EXCEEDED and
// wraps the context's error. It does not count against the limits.
func Limit(l Limits) Interceptor {
	l.Calls = slices.Clone(l.Calls)
	g := newGate(l)
	return func(ctx context.Context, call CallInfo, next func(context.Context) error) error {
		if len(l.Calls) > 0 && !slices.Contains(l.Calls, call.Method) {
			return next(ctx)
		}
		if l.Interval > 0 && (l.Now == nil || l.After == nil) {
			return codes.Newf(codes.Internal, "%s was not called: its limit has an interval and no clock", call.Method)
		}
		if err := g.enter(ctx); err != nil {
			return codes.Wrap(codes.Of(err), err, call.Method.String()+" was not called: its turn did not come in time")
		}
		defer g.leave()
		return next(ctx)
	}
}

// gate lets calls through one after the other.
type gate struct {
	limits Limits
	turn   chan struct{} // holds one value while a call is next in line
	slots  chan struct{} // holds one value for each call under way; nil: not counted
	// due is when the bucket is full again. It holds Burst calls, and gets one each Interval. Guarded
	// by turn.
	due time.Time
}

func newGate(l Limits) *gate {
	l.Burst = max(1, l.Burst)
	if l.Interval > 0 { // a burst that lasts for centuries does not overflow
		l.Burst = int(min(int64(l.Burst), math.MaxInt64/4/int64(l.Interval)+1))
	}
	g := &gate{limits: l, turn: make(chan struct{}, 1)}
	if l.Concurrency > 0 {
		g.slots = make(chan struct{}, l.Concurrency)
	}
	return g
}

// enter waits for a turn, then for a slot, then for time to pass. So the call that has waited
// longest is next, and a call that is not made uses up nothing. Its error is the context's.
func (g *gate) enter(ctx context.Context) error {
	select {
	case g.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-g.turn }()
	if g.slots != nil {
		select {
		case g.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	paced := false
	defer func() {
		if !paced { // the clock may panic, too
			g.leave()
		}
	}()
	if err := g.pace(ctx); err != nil {
		return err
	}
	paced = true
	return nil
}

// leave gives the slot back.
func (g *gate) leave() {
	if g.slots != nil {
		<-g.slots
	}
}

// pace waits until the bucket holds a call, and takes it. It checks the context after every wait,
// also after those for a turn and a slot, because select takes any of several ready channels.
func (g *gate) pace(ctx context.Context) error {
	interval := g.limits.Interval
	if interval <= 0 {
		return ctx.Err()
	}
	now := g.limits.Now()
	full := time.Duration(g.limits.Burst) * interval
	if farthest := now.Add(full); g.due.After(farthest) {
		g.due = farthest // the clock was set back; don't wait for the lost time
	}
	if wait := g.due.Add(interval - full).Sub(now); wait > 0 {
		select {
		case <-g.limits.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
		now = g.limits.Now()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	g.due = latest(g.due, now).Add(interval)
	return nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
