package driver

import (
	"context"
	"maps"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
)

// PoolTimeouts says how long calls may take. The zero value bounds none.
type PoolTimeouts struct {
	// Default is for calls that are not in By. Zero or less: no bound.
	Default time.Duration
	// By is for single calls. Zero or less: no bound for this one.
	By map[machinepool.Call]time.Duration
}

// DeadlinePool returns a pool driver that gives each call of d a deadline, as
// Deadline does.
func DeadlinePool(d PoolDriver, t PoolTimeouts) PoolDriver {
	by := maps.Clone(t.By)
	return AroundPool(d, func(ctx context.Context, s PoolSubject, next func(context.Context) error) error {
		limit, single := by[s.Method]
		if !single {
			limit = t.Default
		}
		if limit <= 0 {
			return next(ctx)
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return next(ctx)
	})
}

// PoolPanic is what went wrong inside a pool driver; see Panic.
type PoolPanic struct {
	PoolSubject
	Value any
	Stack []byte
}

// RecoverPool returns a pool driver in which a panic of d becomes an INTERNAL
// error, as Recover does.
func RecoverPool(d PoolDriver, report func(PoolPanic)) PoolDriver {
	return AroundPool(d, func(ctx context.Context, s PoolSubject, next func(context.Context) error) error {
		return recovered(s.Method.String(), func() error { return next(ctx) }, func(value any, stack []byte) {
			if report != nil {
				report(PoolPanic{PoolSubject: s, Value: value, Stack: stack})
			}
		})
	})
}

// PoolCall is a call that has ended.
type PoolCall struct {
	PoolSubject
	Took time.Duration // never negative
	Code codes.Code    // of Err
	Err  error         // as the driver answered it; nil: OK
}

// HookPool returns a pool driver that tells after about each call of d, as Hook
// does. now may be nil: Took is zero then.
func HookPool(d PoolDriver, now func() time.Time, after func(ctx context.Context, c PoolCall)) PoolDriver {
	if now == nil {
		now = func() time.Time { return time.Time{} }
	}
	return AroundPool(d, func(ctx context.Context, s PoolSubject, next func(context.Context) error) error {
		began := now()
		err := next(ctx)
		after(ctx, PoolCall{PoolSubject: s, Took: max(0, now().Sub(began)), Code: codes.Of(err), Err: err})
		return err
	})
}
