// Package times has helpers for times that several packages below safety use.
package times

import "time"

// Stamp returns a time in whole seconds, as stores keep times.
func Stamp(t time.Time) time.Time { return t.Truncate(time.Second) }

// Earlier returns the earlier of two times. A zero time does not count.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
