package sim

import "time"

// chances are what the parts of a world that are packages of their own ask it for: a cluster, a provider.
type chances struct{ *ground }

// Chance returns a number from 0 to n-1.
func (c chances) Chance(n int) int { return c.chance(n) }

// UpTo returns a time from 0 to d, by chance.
func (c chances) UpTo(d time.Duration) time.Duration { return c.upTo(d) }

// Happens reports true with probability p, and false once faults have stopped.
func (c chances) Happens(p float64) bool { return c.happens(p) }

// Stopped reports whether faults have stopped.
func (c chances) Stopped() bool { return c.faultsStopped }

// Emit tells of an event.
func (c chances) Emit(e any) { c.emit(e) }
