package driver

import (
	"cmp"
	"context"
	"maps"
	"time"
)

// Timeouts says how long calls may take. The zero value sets no limit.
type Timeouts struct {
	// Default is for calls that are not in By, or with zero. Zero or less: no bound.
	Default time.Duration
	// By is for single calls. Zero: Default. object.Off, or any negative one: no bound for this one.
	By map[Method]time.Duration
}

func (t Timeouts) of(call Method) time.Duration {
	return cmp.Or(t.By[call], t.Default)
}

// Deadline gives each call a deadline. An earlier one in the caller's context
// stays.
//
// It sets the deadline and does not enforce it: a call returns when the driver does, even if that
// is late. Ending a call early would lose its answer, and with it the ID of a VM. The driver itself
// must stop when its context does; package drivertest checks that. A late success is a success. Calls
// gives a caller its goroutine back from a driver that does not stop, and keeps the answer of a create.
func Deadline(t Timeouts) Interceptor {
	t.By = maps.Clone(t.By)
	return func(ctx context.Context, call CallInfo, next func(context.Context) error) error {
		limit := t.of(call.Method)
		if limit <= 0 {
			return next(ctx)
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return next(ctx)
	}
}
