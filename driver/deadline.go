package driver

import (
	"context"
	"maps"
	"time"

	"github.com/millwright-go/millwright/codes"
)

// Timeouts says how long calls may take. The zero value bounds none.
type Timeouts struct {
	// Default is for calls that are not in By. Zero or less: no bound.
	Default time.Duration
	// By is for single calls. Zero or less: no bound for this one.
	By map[codes.Call]time.Duration
}

func (t Timeouts) of(call codes.Call) time.Duration {
	if limit, ok := t.By[call]; ok {
		return limit
	}
	return t.Default
}

// Deadline returns a driver that gives each call of d a deadline. An earlier
// one in the caller's context stays.
//
// It sets the deadline and does not enforce it: a call returns when d does,
// however late. To end one early would be to lose its answer, and the ID of a
// VM with it; that a driver stops when its context does is its own duty, which
// package drivertest checks. A success that comes late is a success.
func Deadline(d Driver, t Timeouts) Driver {
	t.By = maps.Clone(t.By)
	return Around(d, func(ctx context.Context, s Subject, next func(context.Context) error) error {
		limit := t.of(s.Method)
		if limit <= 0 {
			return next(ctx)
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return next(ctx)
	})
}
