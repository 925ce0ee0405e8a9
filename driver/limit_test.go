package driver_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
)

// limitedCall is one call that has to pass a limit. Times are since the start.
type limitedCall struct {
	arrives time.Duration
	lasts   time.Duration // how long it is in the driver
	givesUp time.Duration // when its context ends; zero: never
}

// result is the result of a call.
type result struct {
	began time.Duration // when it reached the driver; negative: never
	ended time.Duration // when it returned to its caller
	code  codes.Code
}

// expected computes the expected results of calls, in the order of their arrival. It follows the
// words of Limits: first come, first served; the bucket holds Burst calls and fills by one in each
// Interval, continuously.
func expected(calls []limitedCall, l driver.Limits) []result {
	capacity := time.Duration(max(1, l.Burst)) * l.Interval
	filled, at := capacity, time.Duration(0) // the bucket's content at that time
	var line time.Duration                   // when the call before was no longer next
	var ends []time.Duration                 // when calls end in the driver
	var all []result
	for _, v := range calls {
		over := v.givesUp
		if over == 0 {
			over = math.MaxInt64
		}
		start := max(v.arrives, line)
		if n := len(ends) - l.Concurrency; l.Concurrency > 0 && n >= 0 {
			slices.Sort(ends)
			start = max(start, ends[n])
		}
		if have := min(capacity, filled+start-at); l.Interval > 0 && have < l.Interval {
			start += l.Interval - have
		}
		if over < start {
			line = max(line, min(over, start))
			all = append(all, result{-1, over, codes.DeadlineExceeded})
			continue
		}
		line = start
		if l.Interval > 0 {
			filled, at = min(capacity, filled+start-at)-l.Interval, start
		}
		ends = append(ends, start+v.lasts)
		all = append(all, result{start, start + v.lasts, codes.OK})
	}
	return all
}

// run makes the calls, in virtual time. It returns their results, and how many at most were in the
// driver at once.
func run(t *testing.T, calls []limitedCall, l driver.Limits) (results []result, most int) {
	results = make([]result, len(calls))
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		l.Now, l.After = time.Now, time.After
		type number struct{}
		var mu sync.Mutex
		inside := 0
		d := driver.Intercept(&scripted{answer: func(ctx context.Context, call codes.Call, _ any) (any, error) {
			i, _ := ctx.Value(number{}).(int)
			mu.Lock()
			inside++
			most = max(most, inside)
			results[i].began = time.Since(start)
			mu.Unlock()
			<-time.After(calls[i].lasts)
			mu.Lock()
			inside--
			mu.Unlock()
			return whole(call), nil
		}}, driver.Limit(l))
		var all sync.WaitGroup
		for i, v := range calls {
			results[i].began = -1
			all.Go(func() {
				<-time.After(v.arrives)
				ctx := context.WithValue(context.Background(), number{}, i)
				if v.givesUp > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithDeadline(ctx, start.Add(v.givesUp))
					defer cancel()
				}
				_, err := ask(ctx, d, codes.CreateMachine, aMachine, aClass, nil)
				results[i].ended, results[i].code = time.Since(start), codes.Of(err)
			})
		}
		all.Wait()
	})
	return results, most
}

func drawCalls(t *rapid.T) []limitedCall {
	n := rapid.IntRange(1, 25).Draw(t, "calls")
	calls := make([]limitedCall, n)
	var at time.Duration
	for i := range calls {
		// Nothing coincides: arrivals, ends and deadlines differ in their last digits.
		at += time.Duration(rapid.IntRange(0, 3).Draw(t, "gap"))*10*time.Millisecond + time.Microsecond
		calls[i] = limitedCall{arrives: at, lasts: time.Duration(rapid.IntRange(1, 60).Draw(t, "lasts")) * time.Millisecond}
		if rapid.IntRange(0, 3).Draw(t, "givesUp") == 0 {
			calls[i].givesUp = at + time.Duration(rapid.IntRange(1, 90).Draw(t, "patience"))*time.Millisecond + 3*time.Nanosecond
		}
	}
	return calls
}

// Every call begins at exactly the moment that the words of Limits give. A call whose context ends
// is not made and returns at once. There are never more at once than allowed.
func TestPropertyLimit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := driver.Limits{
			Concurrency: rapid.IntRange(0, 4).Draw(rt, "concurrency"),
			Interval:    time.Duration(rapid.IntRange(0, 30).Draw(rt, "interval")) * time.Millisecond,
			Burst:       rapid.IntRange(-1, 5).Draw(rt, "burst"),
		}
		calls := drawCalls(rt)
		want := expected(calls, l)
		got, most := run(t, calls, l)
		if !slices.Equal(got, want) {
			rt.Fatalf("limits %+v, calls %v:\ngot  %v\nwant %v", l, calls, got, want)
		}
		if l.Concurrency > 0 && most > l.Concurrency {
			rt.Fatalf("%d calls at once, with limits %+v", most, l)
		}
		var begun []time.Duration
		for _, s := range got {
			if s.began >= 0 {
				begun = append(begun, s.began)
			}
		}
		for i := range begun {
			for j := i + 1; l.Interval > 0 && j < len(begun); j++ {
				allowed := max(1, l.Burst) + int((begun[j]-begun[i])/l.Interval)
				if j-i+1 > allowed {
					rt.Fatalf("%d calls begin within %v, with limits %+v", j-i+1, begun[j]-begun[i], l)
				}
			}
		}
	})
}

// TestLimitOverTime has the expected times of a sequence of calls, worked out by hand.
func TestLimitOverTime(t *testing.T) {
	second := time.Second
	l := driver.Limits{Concurrency: 2, Interval: 10 * second, Burst: 3}
	calls := []limitedCall{
		{arrives: 1 * second, lasts: 5 * second},
		{arrives: 2 * second, lasts: 60 * second},
		{arrives: 3 * second, lasts: 60 * second},                     // waits for a slot until 6
		{arrives: 4 * second, lasts: second, givesUp: 30 * second},    // gives up: no slot before 62
		{arrives: 5 * second, lasts: second},                          // 62: the bucket is full again
		{arrives: 70 * second, lasts: second},                         // and holds three
		{arrives: 71 * second, lasts: second},                         //
		{arrives: 73 * second, lasts: second},                         // empty now: one call per 10 s
		{arrives: 74 * second, lasts: second},                         //
		{arrives: 75 * second, lasts: second, givesUp: 80 * second},   // waits for time, and gives up
		{arrives: 76 * second, lasts: second, givesUp: 3600 * second}, //
	}
	want := []result{
		{1 * second, 6 * second, codes.OK},
		{2 * second, 62 * second, codes.OK},
		{6 * second, 66 * second, codes.OK},
		{-1, 30 * second, codes.DeadlineExceeded},
		{62 * second, 63 * second, codes.OK},
		{70 * second, 71 * second, codes.OK},
		{71 * second, 72 * second, codes.OK},
		{73 * second, 74 * second, codes.OK},
		{82 * second, 83 * second, codes.OK},
		{-1, 80 * second, codes.DeadlineExceeded},
		{92 * second, 93 * second, codes.OK},
	}
	got, most := run(t, calls, l)
	if !slices.Equal(got, want) || most != 2 {
		t.Errorf("at once %d, got\n%v, want\n%v", most, got, want)
	}
	if predicted := expected(calls, l); !slices.Equal(predicted, want) {
		t.Errorf("expected returns\n%v, want\n%v", predicted, want)
	}
}

// A call whose context is over is not made, although there is room for it.
func TestLimitRefusesTheCanceled(t *testing.T) {
	for name, l := range map[string]driver.Limits{
		"no limit":    {},
		"concurrency": {Concurrency: 1},
		"rate":        {Interval: time.Second, Now: time.Now, After: time.After},
	} {
		asked := 0
		d := driver.Intercept(&scripted{answer: func(_ context.Context, call codes.Call, _ any) (any, error) {
			asked++
			return whole(call), nil
		}}, driver.Limit(l))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 50 { // select takes any ready case, so one attempt could pass by luck
			response, err := ask(ctx, d, codes.CreateMachine, aMachine, aClass, nil)
			if response != nil || codes.Of(err) != codes.Canceled || !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: %v, %v", name, response, err)
			}
		}
		if asked > 0 {
			t.Errorf("%s: the driver was asked %d times", name, asked)
		}
		if _, err := ask(t.Context(), d, codes.CreateMachine, aMachine, aClass, nil); err != nil || asked != 1 {
			t.Errorf("%s: canceled calls have used up the limit: %v", name, err)
		}
	}
}

// If the context ends at the same moment as the wait, the call is not made.
func TestLimitWhenWaitAndContextEndTogether(t *testing.T) {
	for range 50 { // select may see either first
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		fired := make(chan time.Time)
		close(fired)
		d := driver.Intercept(&scripted{answer: func(_ context.Context, call codes.Call, _ any) (any, error) {
			asked++
			return whole(call), nil
		}}, driver.Limit(driver.Limits{
			Concurrency: 1, Interval: time.Hour, Now: time.Now,
			After: func(time.Duration) <-chan time.Time {
				cancel()
				return fired
			},
		}))
		_, _ = ask(ctx, d, codes.CreateMachine, aMachine, aClass, nil)
		_, err := ask(ctx, d, codes.CreateMachine, aMachine, aClass, nil)
		if asked != 1 || codes.Of(err) != codes.Canceled {
			t.Fatalf("asked %d times: %v", asked, err)
		}
	}
}

// Limited calls share one limit; the others pass.
func TestLimitOfSomeCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := []driver.Method{codes.CreateMachine, codes.DeleteMachine}
		d := driver.Intercept(plain(), driver.Limit(driver.Limits{Calls: calls, Interval: time.Minute, Now: time.Now, After: time.After}))
		calls[0] = codes.ListMachines // has no effect: Limit has copied the list
		start := time.Now()
		for _, c := range []struct {
			call codes.Call
			at   time.Duration
		}{
			{codes.CreateMachine, 0}, {codes.ListMachines, 0}, {codes.ListMachines, 0}, {codes.GetMachineStatus, 0},
			{codes.DeleteMachine, time.Minute}, {codes.ListMachines, time.Minute}, {codes.CreateMachine, 2 * time.Minute},
		} {
			_, err := ask(t.Context(), d, c.call, aMachine, aClass, nil)
			if at := time.Since(start); err != nil || at != c.at {
				t.Errorf("%s at %v, not %v: %v", c.call, at, c.at, err)
			}
		}
	})
}

// A call that panics gives its slot back.
func TestLimitSurvivesPanics(t *testing.T) {
	d := driver.Intercept(&scripted{answer: func(context.Context, codes.Call, any) (any, error) {
		panic("broken")
	}}, driver.Recover(nil), driver.Limit(driver.Limits{Concurrency: 1}))
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if _, err := ask(ctx, d, codes.CreateMachine, aMachine, aClass, nil); codes.Of(err) != codes.Internal {
			t.Errorf("%v", err)
		}
		cancel()
	}
}

func TestLimitNeedsAClockForARate(t *testing.T) {
	for name, l := range map[string]driver.Limits{
		"none":     {Interval: time.Second},
		"no After": {Interval: time.Second, Now: time.Now},
		"no Now":   {Interval: time.Second, After: time.After},
	} {
		if _, err := ask(t.Context(), driver.Intercept(plain(), driver.Limit(l)), codes.ListMachines, nil, aClass, nil); codes.Of(err) != codes.Internal {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ask(t.Context(), driver.Intercept(plain(), driver.Limit(driver.Limits{Concurrency: 1})), codes.ListMachines, nil, aClass, nil); err != nil {
		t.Errorf("without a rate: %v", err)
	}
}

// handClock shows the time that it is set to. Its timers are on time at once.
type handClock struct {
	at    time.Time
	waits []time.Duration
}

func (c *handClock) now() time.Time { return c.at }

func (c *handClock) after(d time.Duration) <-chan time.Time {
	c.waits = append(c.waits, d)
	c.at = c.at.Add(d)
	fired := make(chan time.Time, 1)
	fired <- c.at
	return fired
}

// A clock that is set back makes no call wait for longer than a whole bucket.
func TestLimitWithAClockSetBack(t *testing.T) {
	clock := &handClock{at: time.Unix(1_000_000, 0)}
	d := driver.Intercept(plain(), driver.Limit(driver.Limits{Interval: time.Second, Burst: 3, Now: clock.now, After: clock.after}))
	for range 3 {
		_, _ = ask(t.Context(), d, codes.ListMachines, nil, aClass, nil)
	}
	clock.at = clock.at.Add(-24 * time.Hour)
	for range 2 {
		_, _ = ask(t.Context(), d, codes.ListMachines, nil, aClass, nil)
	}
	if want := []time.Duration{time.Second, time.Second}; !slices.Equal(clock.waits, want) {
		t.Errorf("waits %v, not %v", clock.waits, want)
	}
}

// A clock whose timers fire early, or that stands still, causes no endless loop.
func TestLimitWithAStoppedClock(t *testing.T) {
	fired := make(chan time.Time)
	close(fired)
	d := driver.Intercept(plain(), driver.Limit(driver.Limits{
		Interval: time.Second,
		Now:      func() time.Time { return time.Unix(0, 0) },
		After:    func(time.Duration) <-chan time.Time { return fired },
	}))
	for range 10 {
		if _, err := ask(t.Context(), d, codes.ListMachines, nil, aClass, nil); err != nil {
			t.Error(err)
		}
	}
}

// Extreme values of the limits do not overflow.
func TestLimitWithExtremes(t *testing.T) {
	for _, l := range []driver.Limits{
		{Interval: math.MaxInt64, Burst: math.MaxInt},
		{Interval: 1, Burst: math.MaxInt},
		{Interval: time.Hour, Burst: math.MaxInt, Concurrency: 1},
		{Interval: math.MinInt64, Burst: math.MinInt, Concurrency: math.MinInt},
	} {
		clock := &handClock{at: time.Unix(1_000_000, 0)}
		l.Now, l.After = clock.now, clock.after
		d := driver.Intercept(plain(), driver.Limit(l))
		for range 1 + min(2, max(0, int(math.MaxInt64/4/max(1, l.Interval)))) {
			if _, err := ask(t.Context(), d, codes.ListMachines, nil, aClass, nil); err != nil || len(clock.waits) > 0 {
				t.Errorf("%+v: waits %v, %v", l, clock.waits, err)
			}
		}
	}
}
