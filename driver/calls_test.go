package driver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// hangingDriver is a driver that ignores its context: each call takes the time in takes.
type hangingDriver struct {
	takes atomic.Int64 // a time.Duration
	calls atomic.Int64
}

func newHangingDriver(takes time.Duration) *hangingDriver {
	d := &hangingDriver{}
	d.takes.Store(int64(takes))
	return d
}

func (d *hangingDriver) driver() driver.Driver {
	return &scripted{answer: func(_ context.Context, call codes.Call, _ any) (any, error) {
		d.calls.Add(1)
		<-time.After(time.Duration(d.takes.Load()))
		return whole(call), nil
	}}
}

func named(name string) *machine.Machine {
	return &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}, UID: "uid-of-" + name}}
}

// Every kind of call returns to its caller after its deadline and the grace, and goes on. Until it
// has returned, no other call is made about its object.
// Invariants: P52
func TestOverdueCallsReturnToTheirCaller(t *testing.T) {
	for call := range codes.Calls() {
		synctest.Test(t, func(t *testing.T) {
			provider := newHangingDriver(time.Hour)
			var reported []driver.OverdueCall
			calls := driver.NewCalls(driver.CallsOptions{
				Timeouts: driver.Timeouts{Default: time.Minute}, Grace: 10 * time.Second, Now: time.Now, After: time.After,
				Notify: func(c driver.OverdueCall, n int) {
					reported = append(reported, c)
					assert.Equal(t, 2-len(reported), n)
				},
			})
			d := driver.Track(provider.driver(), calls)
			began := time.Now()
			response, err := ask(t.Context(), d, call, named("a"), aClass, aSecret)
			require.Nil(t, response)
			require.Equal(t, codes.DeadlineExceeded, codes.Of(err), call)
			require.ErrorIs(t, err, driver.ErrOverdue)
			require.Equal(t, time.Minute+10*time.Second, time.Since(began))
			require.Len(t, reported, 1)
			require.Equal(t, call, reported[0].Method)
			require.Equal(t, reported, calls.Overdue())

			provider.takes.Store(0)
			_, err = ask(t.Context(), d, call, named("a"), aClass, aSecret)
			if call == codes.GetVolumeIDs { // it is about no single object
				require.NoError(t, err)
			} else {
				require.Equal(t, codes.Aborted, codes.Of(err), call)
				require.ErrorIs(t, err, driver.ErrUnderWay)
				require.EqualValues(t, 1, provider.calls.Load())
			}
			_, err = ask(t.Context(), d, codes.UpdateMachine, named("b"), aClass, aSecret)
			require.NoError(t, err, "another machine")

			<-time.After(time.Hour)
			synctest.Wait()
			require.Len(t, reported, 2)
			require.True(t, reported[1].Returned)
			require.Empty(t, calls.Overdue())
			_, err = ask(t.Context(), d, call, named("a"), aClass, aSecret)
			require.NoError(t, err)
		})
	}
}

// The answer of a driver that returns within the grace after the end of its context is passed on.
func TestAnswerWithinGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := driver.NewCalls(driver.CallsOptions{
			Timeouts: driver.Timeouts{Default: time.Minute}, Grace: 10 * time.Second, Now: time.Now, After: time.After,
			Notify: func(c driver.OverdueCall, _ int) { t.Errorf("%+v is overdue", c) },
		})
		d := driver.Track(&scripted{answer: func(ctx context.Context, call codes.Call, _ any) (any, error) {
			<-ctx.Done()
			<-time.After(9 * time.Second)
			return whole(call), fmt.Errorf("half way: %w", ctx.Err())
		}}, calls)
		for call := range codes.Calls() {
			response, err := ask(t.Context(), d, call, named("a"), aClass, aSecret)
			require.Equal(t, whole(call), response)
			require.Equal(t, codes.DeadlineExceeded, codes.Of(err))
			require.NotErrorIs(t, err, driver.ErrOverdue)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := ask(ctx, d, codes.CreateMachine, named("a"), aClass, aSecret)
		require.Equal(t, codes.Canceled, codes.Of(err))
	})
}

// The late answer to a create is the answer to the next create for the same machine, unless another
// call has changed the machine in between, or the UID differs. A reading call in between drops nothing.
// Invariants: P52
func TestLateCreate(t *testing.T) {
	again := named("a")
	again.UID = "another"
	for name, c := range map[string]struct {
		between []codes.Call
		then    *machine.Machine
		forget  bool
		made    int // further creates
	}{
		"the next":       {then: named("a")},
		"after a look":   {between: []codes.Call{codes.GetMachineStatus, codes.ListMachines}, then: named("a")},
		"after a delete": {between: []codes.Call{codes.DeleteMachine}, then: named("a"), made: 1},
		"another UID":    {then: again, made: 1},
		"forgotten":      {then: named("a"), forget: true, made: 1},
	} {
		for _, early := range []bool{true, false} { // Forget is called before the late answer comes, or after
			synctest.Test(t, func(t *testing.T) {
				made := 0
				first := time.Hour
				calls := driver.NewCalls(driver.CallsOptions{Timeouts: driver.Timeouts{Default: time.Minute}})
				d := driver.Track(&scripted{answer: func(_ context.Context, call codes.Call, _ any) (any, error) {
					if call != codes.CreateMachine {
						return whole(call), nil
					}
					made++
					response := &driver.CreateMachineResponse{ProviderID: fmt.Sprint("vm-", made)}
					wait := first
					first = 0
					<-time.After(wait)
					return response, nil
				}}, calls)
				_, err := ask(t.Context(), d, codes.CreateMachine, named("a"), aClass, nil)
				require.ErrorIs(t, err, driver.ErrOverdue)
				if c.forget && early {
					calls.Forget()
				}
				<-time.After(time.Hour)
				synctest.Wait()
				if c.forget && !early {
					calls.Forget()
				}
				for _, call := range c.between {
					_, err := ask(t.Context(), d, call, named("a"), aClass, nil)
					require.NoError(t, err)
				}
				response, err := ask(t.Context(), d, codes.CreateMachine, c.then, aClass, nil)
				require.NoError(t, err)
				require.Equal(t, 1+c.made, made, name)
				require.Equal(t, fmt.Sprint("vm-", made), response.(*driver.CreateMachineResponse).ProviderID, name)
				_, err = ask(t.Context(), d, codes.CreateMachine, c.then, aClass, nil)
				require.NoError(t, err)
				require.Equal(t, 2+c.made, made, "an answer is given once")
			})
		}
	}
}

// The number of overdue calls is bounded, in all and for each class. At the bound, calls are refused at
// once.
// Invariants: P52
func TestOverdueCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newHangingDriver(time.Hour)
		calls := driver.NewCalls(driver.CallsOptions{Timeouts: driver.Timeouts{Default: time.Second}, Most: 8})
		d := driver.Track(provider.driver(), calls)
		classes := make([]*machine.Class, 6)
		for i := range classes {
			classes[i] = &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: fmt.Sprint("class-", i)}}}
		}
		n := 0
		for i, class := range classes {
			for j := range 4 {
				_, err := ask(t.Context(), d, codes.DeleteMachine, named(fmt.Sprint(i, "-", j)), class, nil)
				if errors.Is(err, driver.ErrTooManyOverdue) {
					require.Equal(t, codes.Unavailable, codes.Of(err))
					continue
				}
				require.ErrorIs(t, err, driver.ErrOverdue)
				require.Less(t, i, 4, "eight are overdue")
				require.Less(t, j, 2, "a fourth of them are of a class")
				n++
			}
		}
		require.Equal(t, 8, n)
		require.EqualValues(t, 8, provider.calls.Load())
		require.Len(t, calls.Overdue(), 8)
		require.Len(t, calls.Refused(), 4)
		<-time.After(time.Hour)
		synctest.Wait()
		require.Empty(t, calls.Refused())
		provider.takes.Store(0)
		_, err := ask(t.Context(), d, codes.DeleteMachine, named("0-0"), classes[0], nil)
		require.NoError(t, err)
	})
}

// P52: of any calls by any number of callers, none holds its caller past deadline and grace, and the
// driver has one about a machine at a time. Callers that repeat a create until it succeeds get one
// VM each, from a driver that makes one at every call: no late answer is lost.
// Invariants: P52
func TestP52OneCallAtATime(t *testing.T) {
	const timeout, grace = 10 * time.Second, 3 * time.Second
	type plan struct{ waits, takes []time.Duration }
	rapid.Check(t, func(rt *rapid.T) {
		plans := make([]plan, rapid.IntRange(1, 6).Draw(rt, "machines"))
		for i := range plans {
			for range rapid.IntRange(1, 5).Draw(rt, "calls") {
				plans[i].takes = append(plans[i].takes, time.Duration(rapid.IntRange(0, 40).Draw(rt, "takes"))*time.Second)
				plans[i].waits = append(plans[i].waits, time.Duration(rapid.IntRange(1, 20).Draw(rt, "waits"))*time.Second)
			}
		}
		problem := ""
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			under, made, next := map[string]int{}, map[string]int{}, map[string]int{}
			calls := driver.NewCalls(driver.CallsOptions{Timeouts: driver.Timeouts{Default: timeout}, Grace: grace, Now: time.Now, After: time.After})
			d := driver.Track(&scripted{answer: func(_ context.Context, call codes.Call, req any) (any, error) {
				q := req.(*driver.CreateMachineRequest)
				mu.Lock()
				name := q.Machine.Name
				if under[name]++; under[name] > 1 {
					problem = "two calls about one machine"
				}
				var i int
				_, _ = fmt.Sscan(name, &i)
				takes := time.Duration(0)
				if n := next[name]; n < len(plans[i].takes) {
					takes = plans[i].takes[n]
				}
				next[name]++
				made[name]++
				id := fmt.Sprint(name, "/", made[name])
				mu.Unlock()
				<-time.After(takes)
				mu.Lock()
				defer mu.Unlock()
				under[name]--
				return &driver.CreateMachineResponse{ProviderID: id}, nil
			}}, calls)
			var all sync.WaitGroup
			for i := range plans {
				all.Go(func() {
					for try := 0; ; try++ {
						began := time.Now()
						_, err := ask(t.Context(), d, codes.CreateMachine, named(fmt.Sprint(i)), aClass, nil)
						if time.Since(began) > timeout+grace {
							mu.Lock()
							problem = "a caller was held"
							mu.Unlock()
						}
						if err == nil {
							return
						}
						<-time.After(plans[i].waits[try%len(plans[i].waits)])
					}
				})
			}
			all.Wait()
			for i := range plans {
				if n := made[fmt.Sprint(i)]; n != 1 {
					problem = fmt.Sprintf("machine %d has %d VMs", i, n)
				}
			}
		})
		if problem != "" {
			rt.Fatalf("%+v: %s", plans, problem)
		}
	})
}

// If the driver calls runtime.Goexit, the caller still gets an answer, since Track calls the driver in a
// goroutine of its own.
// Invariants: P11
func TestRecoverFromGoexit(t *testing.T) {
	returned := 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for call := range codes.Calls() {
			var reported []driver.Panic
			d := driver.Track(driver.Intercept(&scripted{answer: func(context.Context, codes.Call, any) (any, error) {
				runtime.Goexit()
				return whole(call), nil
			}}, driver.Recover(func(p driver.Panic) { reported = append(reported, p) })), driver.NewCalls(driver.CallsOptions{}))
			response, err := ask(t.Context(), d, call, aMachine, aClass, aSecret)
			if response != nil || codes.Of(err) != codes.Internal || !strings.Contains(err.Error(), "runtime.Goexit in "+call.String()) {
				t.Errorf("%s: %v, %v", call, response, err)
			}
			if len(reported) != 1 || reported[0].Value != nil || reported[0].CallInfo != infoOf(call) || !bytes.Contains(reported[0].Stack, []byte("TestRecoverFromGoexit")) {
				t.Errorf("%s: reported %+v", call, reported)
			}
			returned++
		}
	}()
	<-ended
	if returned == 0 {
		t.Fatal("no call returned")
	}
}

// If the clock of a limit panics, the call's slot is released: the next call is made.
func TestLimitOutlivesItsClock(t *testing.T) {
	fails := true
	d := driver.Intercept(&scripted{answer: func(context.Context, codes.Call, any) (any, error) {
		return whole(codes.DeleteMachine), nil
	}}, driver.Recover(nil), driver.Limit(driver.Limits{Concurrency: 1, Interval: time.Second, After: time.After, Now: func() time.Time {
		if fails {
			fails = false
			panic("no clock")
		}
		return time.Unix(1, 0)
	}}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := ask(ctx, d, codes.DeleteMachine, aMachine, aClass, aSecret); codes.Of(err) != codes.Internal {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := ask(ctx, d, codes.DeleteMachine, aMachine, aClass, aSecret)
		answered <- err
	}()
	select {
	case err := <-answered:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the slot is still taken")
	}
}
