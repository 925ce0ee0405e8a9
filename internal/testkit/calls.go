package testkit

import (
	"context"
	"iter"
	"os"
	"strconv"
	"testing"
	"time"
)

// EveryCall are the calls of a life, 1 to total, at each of which a test kills, or fails,
// once. With -short they are only every n-th of them, or as Shortened says.
func EveryCall(total, n int) iter.Seq[int] { return CallsApart(total, Shortened(1, n)) }

// Shortened returns whole, and n with -short. Under the race detector, which takes four times as
// long, it returns 7n instead of n.
func Shortened(whole, n int) int {
	switch {
	case !testing.Short():
		return whole
	case raceDetector:
		return 7 * n
	}
	return n
}

// CallsApart are every n-th of the calls 1 to total. The seed of the property tests says
// which is the first, so that each commit tries others.
func CallsApart(total, n int) iter.Seq[int] {
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

// InOrder carries out n orders one after the other, so that a fuse counts the same calls each time.
func InOrder(_ context.Context, n int, do func(i int)) {
	for i := range n {
		do(i)
	}
}

// NoJitter returns a wait as it is.
func NoJitter(d time.Duration) time.Duration { return d }
