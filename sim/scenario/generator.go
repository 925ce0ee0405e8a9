package scenario

import "time"

// generator draws a number from 0 to n-1.
type generator func(n int) int

func (g generator) oneIn(n int) bool { return g(n) == n-1 }

// upTo draws a duration from 0 to d, in a hundred steps.
func (g generator) upTo(d time.Duration) time.Duration { return d / 100 * time.Duration(g(101)) }

// rare draws a probability from 0 to most, in a hundred steps. One time in four it is zero.
func (g generator) rare(most float64) float64 {
	if g(4) == 0 {
		return 0
	}
	return most / 100 * float64(g(101))
}
