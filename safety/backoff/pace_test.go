package backoff_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/backoff"
)

// TestP56PaceLearnsTheLimit: whatever a provider's rate limit, many machines that need calls at once get them within
// a small multiple of the shortest possible time. Few calls are refused, and none is made before the provider's wait
// is over.
// Invariants: P56
func TestP56PaceLearnsTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		every := time.Duration(rapid.IntRange(100, 20_000).Draw(t, "every")) * time.Millisecond
		burst := float64(rapid.IntRange(1, 40).Draw(t, "burst"))
		left := map[object.Key]int{}
		for i := range rapid.IntRange(1, 40).Draw(t, "machines") {
			left[object.Key{Name: fmt.Sprint(i)}] = rapid.IntRange(1, 5).Draw(t, "calls")
		}
		var pace backoff.Pace
		begun := time.Unix(1_800_000_000, 0)
		now, filled, tokens, floor := begun, begun, burst, begun
		all, refused := 0, 0
		for len(left) > 0 {
			next := time.Time{}
			for i := range 40 {
				m := object.Key{Name: fmt.Sprint(i)}
				for left[m] > 0 {
					if at := pace.Ask(m, left[m], now); !at.IsZero() {
						require.True(t, at.After(now))
						if next.IsZero() || at.Before(next) {
							next = at
						}
						break
					}
					require.False(t, now.Before(floor), "a call was made before the provider's wait was over")
					tokens, filled = min(burst, tokens+float64(now.Sub(filled))/float64(every)), now
					if tokens < 1 {
						refused++
						wait := time.Duration((1-tokens)*float64(every)) + time.Millisecond
						floor = now.Add(wait)
						pace.Slow(wait, now, now)
						continue
					}
					tokens--
					all++
					pace.Called(now)
					if left[m]--; left[m] == 0 {
						delete(left, m)
					}
				}
			}
			if len(left) == 0 {
				break
			}
			now = next
			require.Less(t, now.Sub(begun), 24*time.Hour, "not all calls were made in a day")
		}
		require.LessOrEqual(t, now.Sub(begun), 2*time.Duration(all)*every+5*time.Minute)
		require.LessOrEqual(t, refused, 20+all/2)
	})
}

// TestPaceIsForgotten: nobody waits before the provider has first asked to wait, nor long after it last asked.
func TestPaceIsForgotten(t *testing.T) {
	var pace backoff.Pace
	now := time.Unix(1_800_000_000, 0)
	m := object.Key{Name: "m"}
	require.Zero(t, pace.Ask(m, 3, now))
	pace.Slow(time.Minute, now, now)
	require.Equal(t, now.Add(time.Minute), pace.Ask(m, 3, now))
	require.Zero(t, pace.Ask(m, 3, now.Add(11*time.Minute)))
	pace.Slow(-1, now, now)
	require.False(t, pace.Ask(m, 3, now).IsZero())
}
