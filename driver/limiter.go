package driver

import (
	"context"
	"slices"

	"github.com/millwright-go/millwright/codes"
)

// Limiter is limits that several drivers share, of machines and of pools: those
// of one account. It is made by NewLimiter.
type Limiter struct {
	limits Limits
	gate   *gate
}

// NewLimiter returns a Limiter.
func NewLimiter(l Limits) *Limiter {
	l.Calls = slices.Clone(l.Calls)
	return &Limiter{limits: l, gate: newGate(l)}
}

// Driver returns a driver that makes calls of d wait, as Limit does.
func (l *Limiter) Driver(d Driver) Driver {
	return Around(d, func(ctx context.Context, s Subject, next func(context.Context) error) error {
		if len(l.limits.Calls) > 0 && !slices.Contains(l.limits.Calls, s.Method) {
			return next(ctx)
		}
		return l.pass(ctx, s.Method.String(), next)
	})
}

// PoolDriver returns a pool driver that makes calls of d wait, as Limit does. Limits
// of single calls are about those of a Driver: they let all of these pass.
func (l *Limiter) PoolDriver(d PoolDriver) PoolDriver {
	return AroundPool(d, func(ctx context.Context, s PoolSubject, next func(context.Context) error) error {
		if len(l.limits.Calls) > 0 {
			return next(ctx)
		}
		return l.pass(ctx, s.Method.String(), next)
	})
}

// pass makes a call when the limits allow it.
func (l *Limiter) pass(ctx context.Context, call string, next func(context.Context) error) error {
	if l.limits.Interval > 0 && (l.limits.Now == nil || l.limits.After == nil) {
		return codes.Newf(codes.Internal, "%s was not called: its limit has an interval and no clock", call)
	}
	if err := l.gate.enter(ctx); err != nil {
		return codes.Wrap(codes.Of(err), err, call+" was not called: its turn did not come in time")
	}
	defer l.gate.leave()
	return next(ctx)
}
