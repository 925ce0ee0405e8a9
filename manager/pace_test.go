package manager_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
)

// bucket is a provider's limit of calls: one in every, and some more after a quiet time. A call that is
// refused costs nothing.
type bucket struct {
	*world
	every          time.Duration
	most           float64 // calls after a quiet time
	tokens         float64
	last           time.Time
	taken, refused int
}

func limited(t tb, code codes.Code, burst float64) *bucket {
	b := &bucket{world: guardedWorld(t), every: 2 * time.Second, most: burst, tokens: burst}
	b.safety.CheckPeriod = time.Hour // another test's subject
	b.last = b.at
	b.refuse = func(driver.CallInfo) error {
		b.tokens = min(b.most, b.tokens+b.at.Sub(b.last).Seconds()/b.every.Seconds())
		if b.last = b.at; b.tokens < 1 {
			b.refused++
			err := codes.New(code, "too many requests")
			err.RetryAfter = time.Duration((1-b.tokens)*float64(b.every)) + 1
			return err
		}
		b.tokens--
		b.taken++
		return nil
	}
	return b
}

// TestP56LimitedProvider: a provider that takes 30 calls a minute, and says so, is called about as
// often as it allows. No machine fails for waiting, and none is held as if there were no quota.
func TestP56LimitedProvider(t *testing.T) {
	const n = 40
	for _, code := range []codes.Code{codes.Unavailable, codes.ResourceExhausted} {
		for _, burst := range []float64{1, 2, 10, 40} {
			w := limited(t, code, burst)
			w.fleetOf("web", "small", n)
			begun := w.at
			p := w.until(w.start(&fuse{}, false), w.full("web", n), unexpected(t))
			took, least := w.at.Sub(begun), time.Duration(w.taken)*w.every
			t.Logf("burst %v: %d machines run after %s, %s at least; %d calls were refused of %d", burst, n, took, least, w.refused, w.taken+w.refused)
			require.LessOrEqual(t, took, least*5/4+time.Minute)
			require.LessOrEqual(t, w.taken, 3*n+n/4)
			require.Zero(t, w.lost, "machines that failed")
			require.Len(t, w.made, n)
			require.Nil(t, w.condition("web", "CreationSlowed"))

			require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
			begun, w.taken = w.at, 0
			w.until(p, w.empty, unexpected(t))
			require.LessOrEqual(t, w.at.Sub(begun), time.Duration(w.taken)*w.every*5/4+time.Minute)
		}
	}
}
