package testkit

import (
	"context"
	"iter"
	"os"
	"strconv"
	"testing"
	"time"
)

// EveryCall yields the numbers of the calls that a process makes, 1 to total, so that a test can kill the
// process, or fail the call, once at each of them. With -short it yields only a part: every n-th, or
// what Shortened makes of n.
func EveryCall(total, n int) iter.Seq[int] { return EveryNthCall(total, Shortened(1, n)) }

// Shortened returns whole or, with -short, n. With -short under the race detector, which takes four times
// as long, it returns 7n.
func Shortened(whole, n int) int {
	switch {
	case !testing.Short():
		return whole
	case raceDetector:
		return 7 * n
	}
	return n
}

// EveryNthCall yields every n-th of the numbers 1 to total. The first depends on the seed of the property
// tests, so that each commit tries other calls.
func EveryNthCall(total, n int) iter.Seq[int] {
	seed, err := strconv.ParseUint(os.Getenv("RAPID_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	return func(yield func(int) bool) {
		for call := 1 + int(seed%uint64(n)); call <= total; call += n {
			if !yield(call) {
				return
			}
		}
	}
}

// InOrder calls do for 0 to n-1 one after the other, so that the calls of a test come in the same order
// each time.
func InOrder(_ context.Context, n int, do func(i int)) {
	for i := range n {
		do(i)
	}
}

// NoJitter returns a wait unchanged.
func NoJitter(d time.Duration) time.Duration { return d }
