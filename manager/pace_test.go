package manager_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/object"
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
			p := w.until(w.start(&testkit.Fuse{}, false), w.full("web", n), unexpected(t))
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

// TestP56WaitsLoseNoAnswer: of a provider that takes one call at a time, a machine asks each thing once,
// though it waits between two calls for its turn: here, which node a VM has that was made without an
// answer, and then for the VM's deletion.
func TestP56WaitsLoseNoAnswer(t *testing.T) {
	const n = 5
	w := limited(t, codes.Unavailable, 1)
	limit := w.refuse
	unanswered := 0
	w.refuse = func(c driver.CallInfo) error {
		err := limit(c)
		if err == nil && c.Method == codes.CreateMachine {
			unanswered++
			return codes.New(codes.DeadlineExceeded, "no answer")
		}
		return err
	}
	w.fleetOf("web", "small", n)
	p := w.until(w.start(&testkit.Fuse{}, false), func() bool { return unanswered >= n }, unexpected(t))
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	w.taken = 0
	w.until(p, w.empty, unexpected(t))
	require.LessOrEqual(t, w.taken, 4*n)
}

// TestP56WaitsLoseNoStatus: nor does it ask again whether a VM is initialized, after that has failed once,
// instead of initializing it.
func TestP56WaitsLoseNoStatus(t *testing.T) {
	const n = 5
	w := limited(t, codes.Unavailable, 1)
	w.provider = drivertest.NewMemory(drivertest.MemoryOptions{NeedsInitialization: true})
	limit, failed := w.refuse, map[object.Key]bool{}
	w.refuse = func(c driver.CallInfo) error {
		err := limit(c)
		if err == nil && c.Method == codes.InitializeMachine && !failed[c.Object] {
			failed[c.Object] = true
			return codes.New(codes.Internal, "not yet")
		}
		return err
	}
	w.fleetOf("web", "small", n)
	w.until(w.start(&testkit.Fuse{}, false), w.full("web", n), unexpected(t))
	require.Len(t, failed, n)
	require.LessOrEqual(t, w.taken, 7*n)
}

// TestP56ListsAndOrphansWait: a list of VMs, and the deletion of an orphan, hear that the provider limits
// calls, and so do all other calls with those credentials; and they hear of it from others. To wait is no
// failure: nothing is warned of.
func TestP56ListsAndOrphansWait(t *testing.T) {
	for _, method := range []codes.Call{codes.ListMachines, codes.DeleteMachine, codes.CreateMachine} {
		t.Run(method.String(), func(t *testing.T) {
			w := guardedWorld(t)
			w.safety.CheckPeriod = time.Hour // another test's subject
			stray := w.stray("blue", "web-lost")
			s := &testkit.SlowedOnce{Method: method}
			w.refuse = func(c driver.CallInfo) error { return s.Refuse(c.Method, w.at) }
			w.fleetOf("web", "small", 1)
			p := w.until(w.start(&testkit.Fuse{}, false), func() bool { return !s.Until.IsZero() }, unexpected(t))
			if method == codes.DeleteMachine {
				require.True(t, w.there(stray))
			}
			w.fleetOf("more", "small", 3)
			p = w.until(p, func() bool { return w.full("web", 1)() && w.full("more", 3)() && !w.there(stray) }, unexpected(t))
			w.until(p, func() bool { return w.at.After(s.Until.Add(10 * time.Minute)) }, unexpected(t))
			require.Zero(t, s.Early, "calls that do not wait")
			require.Zero(t, w.heard("ListVMsFailed")+w.heard("OrphanDeleteFailed"))
			require.Zero(t, w.lost)
		})
	}
}
