package codes_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
)

var retryClasses = []struct {
	class         codes.RetryClass
	name          string
	period, limit time.Duration // without a quota period
}{
	{codes.None, "none", 0, 0},
	{codes.Requeue, "requeue", 0, 200 * time.Millisecond},
	{codes.Conflict, "conflict", 200 * time.Millisecond, 5 * time.Second},
	{codes.Short, "short", 5 * time.Second, 3 * time.Minute},
	{codes.Medium, "medium", 3 * time.Minute, 10 * time.Minute},
	{codes.Long, "long", 10 * time.Minute, 10 * time.Minute},
	{codes.Quota, "quota", 10 * time.Minute, 10 * time.Minute},
}

func TestRetryClasses(t *testing.T) {
	for _, c := range retryClasses {
		if got := c.class.String(); got != c.name {
			t.Errorf("String() = %q, want %q", got, c.name)
		}
		if got := c.class.Period(0); got != c.period {
			t.Errorf("%s: period %v, want %v", c.name, got, c.period)
		}
		if got := c.class.Backoff(math.MaxInt, 0); got != c.limit {
			t.Errorf("%s: backs off to %v, want %v", c.name, got, c.limit)
		}
	}
	beyond := codes.RetryClass(len(retryClasses))
	if got := beyond.String(); got != "RetryClass(7)" {
		t.Errorf("String() = %q", got)
	}
	if got := beyond.Period(time.Hour); got != 5*time.Second {
		t.Errorf("a number that is no class waits %v", got)
	}
	if got := beyond.Backoff(100, time.Hour); got != 3*time.Minute {
		t.Errorf("a number that is no class backs off to %v", got)
	}
}

func TestQuotaPeriod(t *testing.T) {
	for quota, want := range map[time.Duration]time.Duration{
		0: 10 * time.Minute, -time.Second: 10 * time.Minute, time.Second: time.Second, 24 * time.Hour: 24 * time.Hour,
		math.MaxInt64: math.MaxInt64,
	} {
		if got := codes.Quota.Period(quota); got != want {
			t.Errorf("Period(%v) = %v, want %v", quota, got, want)
		}
		if got := codes.Quota.Backoff(50, quota); got != want {
			t.Errorf("Backoff(50, %v) = %v, want %v", quota, got, want)
		}
	}
	if got := codes.Long.Period(time.Second); got != 10*time.Minute {
		t.Errorf("the quota's period changed that of Long to %v", got)
	}
}

func TestBackoffSteps(t *testing.T) {
	const ms, s, min = time.Millisecond, time.Second, time.Minute
	for class, want := range map[codes.RetryClass][]time.Duration{
		codes.None:     {0, 0, 0},
		codes.Requeue:  {0, 200 * ms, 200 * ms},
		codes.Conflict: {200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 5 * s, 5 * s},
		codes.Short:    {5 * s, 10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 3 * min, 3 * min},
		codes.Medium:   {3 * min, 6 * min, 10 * min, 10 * min},
		codes.Long:     {10 * min, 10 * min},
		codes.Quota:    {10 * min, 10 * min},
	} {
		for i, w := range want {
			if got := class.Backoff(i+1, 0); got != w {
				t.Errorf("%v after %d failures: %v, want %v", class, i+1, got, w)
			}
		}
		for _, lost := range []int{0, -1, math.MinInt} {
			if got := class.Backoff(lost, 0); got != want[0] {
				t.Errorf("%v after %d failures: %v, want the period", class, lost, got)
			}
		}
	}
}

func TestQuickRetries(t *testing.T) {
	const s, min = time.Second, time.Minute
	for call, want := range map[codes.Call][]time.Duration{
		codes.CreateMachine: {3 * min, 5 * s, 10 * s, 3 * min, 6 * min, 10 * min, 10 * min},
		codes.DeleteMachine: {10 * min, 5 * s, 10 * s, 10 * min, 10 * min},
		codes.ListMachines:  {3 * min, 3 * min, 6 * min, 10 * min},
	} {
		r := codes.RecoveryFor(call, codes.Internal)
		for failures, w := range want {
			if got := r.Backoff(failures, 0); got != w {
				t.Errorf("%v after %d failures: %v, want %v", call, failures, got, w)
			}
		}
		for failures, w := range map[int]time.Duration{math.MinInt: want[0], math.MaxInt: 10 * min} {
			if got := r.Backoff(failures, 0); got != w {
				t.Errorf("%v after %d failures: %v, want %v", call, failures, got, w)
			}
		}
	}
}

// Without quick retries the class alone decides how long to wait.
func TestPropertyBackoffIsThatOfTheClass(t *testing.T) {
	all := slices.Collect(codes.All())
	rapid.Check(t, func(t *rapid.T) {
		r := codes.RecoveryFor(rapid.SampledFrom(slices.Collect(codes.Calls())).Draw(t, "call"), rapid.SampledFrom(all).Draw(t, "code"))
		failures := rapid.IntRange(math.MinInt, math.MaxInt).Draw(t, "failures")
		quota := time.Duration(rapid.Int64().Draw(t, "quota"))
		if got, want := r.Backoff(failures, quota), r.Class.Backoff(failures, quota); r.Quick == 0 && got != want {
			t.Fatalf("%v after %d failures, want %v", got, failures, want)
		}
	})
}

// A wait is never negative, never shorter after one more failure, and stays within its class.
func TestPropertyBackoffGrowsWithinItsClass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(retryClasses).Draw(t, "class")
		failures := rapid.IntRange(math.MinInt, math.MaxInt-1).Draw(t, "failures")
		now, then := c.class.Backoff(failures, 0), c.class.Backoff(failures+1, 0)
		if now < c.period || then < now || then > c.limit {
			t.Fatalf("%s: %v after %d failures, then %v", c.name, now, failures, then)
		}
	})
}
