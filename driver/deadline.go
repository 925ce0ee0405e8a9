package driver

import (
	"context"
	"maps"
	"time"
)

// Timeouts says how long calls may take. The zero value bounds none.
type Timeouts struct {
	// Default is for calls that are not in By. Zero or less: no bound.
	Default time.Duration
	// By is for single calls. Zero or less: no bound for this one.
	By map[Method]time.Duration
}

func (t Timeouts) of(call Method) time.Duration {
	if limit, ok := t.By[call]; ok {
		return limit
	}
	return t.Default
}

// Deadline gives each call a deadline. An earlier one in the caller's context
// stays.
//
// It sets the deadline and does not enforce it: a call returns when the driver
// does, however late. To end one early would be to lose its answer, and the ID
// of a VM with it; that a driver stops when its context does is its own duty,
// which package drivertest checks. A success that comes late is a success.
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
