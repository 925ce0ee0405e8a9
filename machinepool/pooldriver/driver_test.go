package pooldriver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

// poolInfo returns what interceptors learn about a call of askPool.
func poolInfo(call machinepool.Call) driver.CallInfo {
	info := driver.CallInfo{Method: call, Kind: "pool", Object: aPool.Key, Class: aClass.Key}
	if call == machinepool.ListPools {
		info.Object, info.ReadOnly = object.Key{}, true
	}
	info.ReadOnly = info.ReadOnly || call == machinepool.GetPoolStatus
	return info
}

// aboutAPool returns the calls that name a pool.
func aboutAPool() []machinepool.Call {
	return slices.DeleteFunc(machinepool.Calls(), func(c machinepool.Call) bool { return c == machinepool.ListPools })
}

// TestInterceptPool: an interceptor sees what a call is about, and decides only about its error.
func TestInterceptPool(t *testing.T) {
	for _, call := range machinepool.Calls() {
		mine := errors.New("mine")
		var seen driver.CallInfo
		inner := answeringPool(wholePool, errors.New("theirs"))
		var made machinepool.Call
		answer := inner.answer
		inner.answer = func(ctx context.Context, c machinepool.Call, req any) (any, error) {
			made = c
			return answer(ctx, c, req)
		}
		d := pooldriver.Intercept(inner, func(ctx context.Context, info driver.CallInfo, next func(context.Context) error) error {
			seen = info
			if err := next(ctx); err == nil || err.Error() != "theirs" {
				t.Errorf("%s: next returns %v", call, err)
			}
			return mine
		})
		response, err := askPool(t.Context(), d, call, &wholeAsk)
		if response == nil || !errors.Is(err, mine) || seen != poolInfo(call) || made != call {
			t.Errorf("%s: %v, %v, about %+v; %s was made", call, response, err, seen, made)
		}
		if _, err := askPool(t.Context(), d, call, nil); !errors.Is(err, mine) || seen != (driver.CallInfo{Method: call, Kind: "pool", ReadOnly: poolInfo(call).ReadOnly}) {
			t.Errorf("%s without a request: %v, about %+v", call, err, seen)
		}
	}
}

func TestUnimplementedPool(t *testing.T) {
	for _, call := range machinepool.Calls() {
		response, err := askPool(t.Context(), pooldriver.UnimplementedPools{}, call, &wholeAsk)
		if response != nil || codes.Of(err) != codes.Unimplemented || !strings.Contains(codes.Message(err), call.String()) {
			t.Errorf("%s: %v, %v", call, response, err)
		}
	}
	if f := pooldriver.FeaturesOf(pooldriver.UnimplementedPools{}); f != (machinepool.Features{}) {
		t.Errorf("it declares %+v", f)
	}
}

// TestAsPool: what a driver declares is found through every decorator.
func TestAsPool(t *testing.T) {
	inner := answeringPool(wholePool, nil)
	d := pooldriver.Intercept(pooldriver.Validate(pooldriver.Intercept(inner, driver.Recover(nil), driver.Deadline(driver.Timeouts{})), nil), driver.Hook(nil,
		func(context.Context, driver.Call) {}))
	if f := pooldriver.FeaturesOf(d); !f.DeleteInstances || f.ReplaceInstance {
		t.Errorf("found %+v", f)
	}
	if found, ok := pooldriver.As[*scriptedPool](d); !ok || found != inner {
		t.Errorf("found %v, %t", found, ok)
	}
	if _, ok := pooldriver.As[*testing.T](d); ok {
		t.Error("found what is not there")
	}
}

// TestDeadlinePool: each call gets its deadline, in virtual time.
func TestDeadlinePool(t *testing.T) {
	timeouts := driver.Timeouts{Default: time.Minute, By: map[driver.Method]time.Duration{
		machinepool.CreatePool: 10 * time.Minute, machinepool.DeletePool: object.Off,
	}}
	synctest.Test(t, func(t *testing.T) {
		var left time.Duration
		d := pooldriver.Intercept(&scriptedPool{answer: func(ctx context.Context, call machinepool.Call, _ any) (any, error) {
			left = 0
			if at, ok := ctx.Deadline(); ok {
				left = time.Until(at)
			}
			return wholePool(call), nil
		}}, driver.Deadline(timeouts))
		timeouts.By[machinepool.CreatePool] = time.Second // has no effect
		for call, want := range map[machinepool.Call]time.Duration{
			machinepool.CreatePool: 10 * time.Minute, machinepool.DeletePool: 0, machinepool.ScalePool: time.Minute,
		} {
			if _, err := askPool(t.Context(), d, call, &wholeAsk); err != nil || left != want {
				t.Errorf("%s has %v, not %v (%v)", call, left, want, err)
			}
		}
		if _, err := askPool(t.Context(), pooldriver.Intercept(d, driver.Deadline(driver.Timeouts{})), machinepool.ScalePool, &wholeAsk); err != nil || left != time.Minute {
			t.Errorf("no timeout bounds by %v (%v)", left, err)
		}
	})
}

func TestRecoverPool(t *testing.T) {
	for _, call := range machinepool.Calls() {
		var seen driver.Panic
		d := pooldriver.Intercept(&scriptedPool{answer: func(context.Context, machinepool.Call, any) (any, error) {
			panic("the password is hunter2")
		}}, driver.Recover(func(p driver.Panic) { seen = p }))
		response, err := askPool(t.Context(), d, call, &wholeAsk)
		if response != nil || codes.Of(err) != codes.Internal || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), call.String()) {
			t.Errorf("%s: %v, %v", call, response, err)
		}
		if seen.CallInfo != poolInfo(call) || fmt.Sprint(seen.Value) != "the password is hunter2" || len(seen.Stack) == 0 {
			t.Errorf("%s: reported %+v", call, seen.CallInfo)
		}
	}
	quiet := pooldriver.Intercept(&scriptedPool{answer: func(context.Context, machinepool.Call, any) (any, error) { panic(1) }}, driver.Recover(nil))
	if _, err := askPool(t.Context(), quiet, machinepool.ScalePool, &wholeAsk); codes.Of(err) != codes.Internal {
		t.Error(err)
	}
	fine := pooldriver.Intercept(answeringPool(wholePool, nil), driver.Recover(nil))
	if a, err := askPool(t.Context(), fine, machinepool.ScalePool, &wholeAsk); a == nil || err != nil {
		t.Errorf("%v, %v", a, err)
	}
}

func TestHookPool(t *testing.T) {
	clock := time.Unix(0, 0)
	var seen driver.Call
	failure := codes.New(codes.Aborted, "later")
	d := pooldriver.Intercept(&scriptedPool{answer: func(_ context.Context, call machinepool.Call, _ any) (any, error) {
		clock = clock.Add(3 * time.Second)
		return wholePool(call), failure
	}}, driver.Hook(func() time.Time { return clock }, func(_ context.Context, c driver.Call) { seen = c }))
	a, err := askPool(t.Context(), d, machinepool.DeletePool, &wholeAsk)
	want := driver.Call{CallInfo: poolInfo(machinepool.DeletePool), Took: 3 * time.Second, Code: codes.Aborted, Err: failure}
	if a == nil || !errors.Is(err, failure) || seen != want {
		t.Errorf("%v, %v: reported of %+v", a, err, seen)
	}
	back := pooldriver.Intercept(&scriptedPool{answer: func(context.Context, machinepool.Call, any) (any, error) {
		clock = clock.Add(-time.Hour)
		return nil, nil
	}}, driver.Hook(func() time.Time { return clock }, func(_ context.Context, c driver.Call) { seen = c }))
	if _, err := askPool(t.Context(), back, machinepool.DeletePool, &wholeAsk); err != nil || seen.Took != 0 || seen.Code != codes.OK {
		t.Errorf("a clock that was set back: %+v", seen)
	}
}

// TestValidatePoolRequests: no call is made with an invalid request.
func TestValidatePoolRequests(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*asked) // nil: no request
		says  string
		calls []machinepool.Call
	}{
		"no request":    {nil, "no request", machinepool.Calls()},
		"no pool":       {func(a *asked) { a.Pool = nil }, "has no pool", aboutAPool()},
		"no name":       {func(a *asked) { a.Pool = &machinepool.Pool{} }, "has no name", aboutAPool()},
		"no class":      {func(a *asked) { a.Class = nil }, "class is missing", machinepool.Calls()},
		"negative size": {func(a *asked) { a.n = -1 }, "negative", []machinepool.Call{machinepool.CreatePool, machinepool.ScalePool}},
		"blank ID": {func(a *asked) { a.ids = []string{" "} }, "blank", []machinepool.Call{
			machinepool.DeleteInstances, machinepool.ReplaceInstance, machinepool.InstancesDrained,
		}},
	} {
		for _, call := range c.calls {
			made := false
			d := pooldriver.Validate(&scriptedPool{answer: func(context.Context, machinepool.Call, any) (any, error) {
				made = true
				return wholePool(call), nil
			}}, nil)
			with := &asked{}
			if c.spoil == nil {
				with = nil
			} else {
				*with = wholeAsk
				c.spoil(with)
			}
			_, err := askPool(t.Context(), d, call, with)
			if made || codes.Of(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s: made %t, %v", name, call, made, err)
			}
		}
	}
}

// TestValidatePoolAnswers: answers that can't be acted upon are INTERNAL. Optional fields may be missing.
func TestValidatePoolAnswers(t *testing.T) {
	for _, call := range machinepool.Calls() {
		d := pooldriver.Validate(answeringPool(wholePool, nil), nil)
		if a, err := askPool(t.Context(), d, call, &wholeAsk); err != nil || fmt.Sprint(a) != fmt.Sprint(wholePool(call)) {
			t.Errorf("%s: %v, %v", call, a, err)
		}
		d = pooldriver.Validate(answeringPool(func(machinepool.Call) any { return nil }, nil), nil)
		a, err := askPool(t.Context(), d, call, &wholeAsk)
		switch call {
		case machinepool.CreatePool, machinepool.GetPoolStatus, machinepool.ListPools:
			if codes.Of(err) != codes.Internal {
				t.Errorf("%s answers nothing: %v, %v", call, a, err)
			}
		default:
			if a == nil || err != nil {
				t.Errorf("%s answers nothing: %v, %v", call, a, err)
			}
		}
		theirs := codes.New(codes.Aborted, "later")
		d = pooldriver.Validate(answeringPool(wholePool, theirs), nil)
		if a, err := askPool(t.Context(), d, call, &wholeAsk); a == nil || !errors.Is(err, theirs) {
			t.Errorf("%s fails: %v, %v", call, a, err)
		}
	}
	bad := map[machinepool.Call]any{machinepool.CreatePool: &pooldriver.Response{}, machinepool.GetPoolStatus: &pooldriver.GetPoolStatusResponse{}}
	for call, answer := range bad {
		d := pooldriver.Validate(answeringPool(func(machinepool.Call) any { return answer }, nil), nil)
		if a, err := askPool(t.Context(), d, call, &wholeAsk); a == nil || codes.Of(err) != codes.Internal {
			t.Errorf("%s has no group ID: %v, %v", call, a, err)
		}
	}
	negative := pooldriver.Validate(answeringPool(func(machinepool.Call) any { return &pooldriver.GetPoolStatusResponse{GroupID: "g", Target: -1} }, nil), nil)
	if _, err := askPool(t.Context(), negative, machinepool.GetPoolStatus, &wholeAsk); codes.Of(err) != codes.Internal {
		t.Errorf("a negative target: %v", err)
	}
}

// TestValidatePoolInstances: instances are returned sorted and without duplicates, and the driver's own answer
// does not change.
func TestValidatePoolInstances(t *testing.T) {
	mixed := []machinepool.Instance{{ProviderID: "c"}, {ProviderID: ""}, {ProviderID: "a", Terminating: true}, {ProviderID: "c", Terminating: true}, {ProviderID: " "}}
	given := &pooldriver.GetPoolStatusResponse{GroupID: "g", Instances: mixed, Failure: "f"}
	d := pooldriver.Validate(answeringPool(func(machinepool.Call) any { return given }, nil), nil)
	a, err := d.GetPoolStatus(t.Context(), &pooldriver.GetPoolStatusRequest{Request: wholeAsk.Request})
	want := []machinepool.Instance{{ProviderID: "a", Terminating: true}, {ProviderID: "c"}}
	if err != nil || fmt.Sprint(a.Instances) != fmt.Sprint(want) || a.Failure != "f" {
		t.Errorf("%+v, %v", a, err)
	}
	if mixed[0].ProviderID != "c" || len(given.Instances) != 5 {
		t.Error("the driver's answer was changed")
	}
	for _, wrong := range [][]machinepool.Instance{{{ProviderID: " "}}, {{ProviderID: "b"}, {ProviderID: "a"}}, {{ProviderID: "a"}, {ProviderID: "a"}}} {
		given.Instances = wrong
		a, err := d.GetPoolStatus(t.Context(), &pooldriver.GetPoolStatusRequest{Request: wholeAsk.Request})
		if err != nil || fmt.Sprint(a.Instances) == fmt.Sprint(wrong) {
			t.Errorf("%v, %v", a.Instances, err)
		}
	}
}

// TestPoolDecoratorsShowNoSecret: no error of a decorator reveals the secret of a request.
func TestPoolDecoratorsShowNoSecret(t *testing.T) {
	ask := wholeAsk
	ask.Secret = &machine.Secret{Data: map[string][]byte{"token": []byte("hunter2")}}
	ask.Pool = &machinepool.Pool{}
	_, err := askPool(t.Context(), pooldriver.Validate(pooldriver.UnimplementedPools{}, nil), machinepool.CreatePool, &ask)
	if err == nil || strings.Contains(fmt.Sprintf("%+v", err), "hunter2") {
		t.Error(err)
	}
}

// TestOverduePoolCalls: each kind of call returns to its caller when it hangs, and lets no other call about its
// pool, or its class, begin until it has returned. The late answer to a create answers the next create for the
// same pool.
func TestOverduePoolCalls(t *testing.T) {
	pool := *aPool
	pool.UID = "uid"
	ask := wholeAsk
	ask.Pool = &pool
	for _, call := range machinepool.Calls() {
		synctest.Test(t, func(t *testing.T) {
			takes, made := time.Hour, 0
			calls := driver.NewCalls(driver.CallsOptions{
				Timeouts: driver.Timeouts{Default: time.Minute}, Grace: time.Second, Now: time.Now, After: time.After,
			})
			d := pooldriver.Track(&scriptedPool{answer: func(context.Context, machinepool.Call, any) (any, error) {
				made++
				wait := takes
				takes = 0
				<-time.After(wait)
				return wholePool(call), nil
			}}, calls)
			began := time.Now()
			_, err := askPool(t.Context(), d, call, &ask)
			if !errors.Is(err, driver.ErrOverdue) || codes.Of(err) != codes.DeadlineExceeded || time.Since(began) != time.Minute+time.Second {
				t.Fatalf("%s: %v after %s", call, err, time.Since(began))
			}
			if _, err := askPool(t.Context(), d, call, &ask); !errors.Is(err, driver.ErrUnderWay) || codes.Of(err) != codes.Aborted {
				t.Errorf("%s beside one that hangs: %v", call, err)
			}
			<-time.After(time.Hour)
			synctest.Wait()
			response, err := askPool(t.Context(), d, call, &ask)
			if err != nil || response == nil {
				t.Errorf("%s again: %v, %v", call, response, err)
			}
			want := 2
			if call == machinepool.CreatePool {
				want = 1
			}
			if made != want {
				t.Errorf("%s was made %d times, not %d", call, made, want)
			}
		})
	}
}

// TestLimitIsShared: calls for machines and for pools wait for each other if they share a limit.
func TestLimitIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := driver.Limit(driver.Limits{Concurrency: 1})
		under, most := 0, 0
		counted := func(ctx context.Context, _ driver.CallInfo, next func(context.Context) error) error {
			under++
			most = max(most, under)
			<-time.After(time.Second)
			under--
			return next(ctx)
		}
		machines := driver.Intercept(driver.Unimplemented{}, shared, counted)
		pools := pooldriver.Intercept(pooldriver.UnimplementedPools{}, shared, counted)
		began := time.Now()
		for range 2 {
			go func() { _, _ = machines.ListMachines(t.Context(), &driver.ListMachinesRequest{}) }()
			go func() { _, _ = askPool(t.Context(), pools, machinepool.ScalePool, &wholeAsk) }()
		}
		synctest.Wait()
		if _, err := askPool(t.Context(), pools, machinepool.GetPoolStatus, &wholeAsk); codes.Of(err) != codes.Unimplemented {
			t.Errorf("the last in line is answered %v", err)
		}
		if took := time.Since(began); most != 1 || took != 5*time.Second {
			t.Errorf("%d calls at once, five took %s", most, took)
		}
	})
}

// TestLimitedPoolsGiveUp: a call whose turn does not come in time is not made, and the error says so.
func TestLimitedPoolsGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := pooldriver.Intercept(pooldriver.UnimplementedPools{}, driver.Limit(driver.Limits{Interval: time.Minute, Now: time.Now, After: time.After}))
		if _, err := askPool(t.Context(), d, machinepool.ScalePool, &wholeAsk); codes.Of(err) != codes.Unimplemented {
			t.Errorf("the first call is answered %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := askPool(ctx, d, machinepool.ScalePool, &wholeAsk)
		if codes.Of(err) != codes.DeadlineExceeded || codes.Message(err) == "" {
			t.Errorf("the second is answered %v", err)
		}
	})
	clockless := pooldriver.Intercept(pooldriver.UnimplementedPools{}, driver.Limit(driver.Limits{Interval: time.Minute}))
	if _, err := askPool(t.Context(), clockless, machinepool.ScalePool, &wholeAsk); codes.Of(err) != codes.Internal {
		t.Errorf("an interval without a clock is answered %v", err)
	}
	single := pooldriver.Intercept(pooldriver.UnimplementedPools{}, driver.Limit(driver.Limits{Calls: []driver.Method{codes.CreateMachine}, Interval: time.Minute}))
	if _, err := askPool(t.Context(), single, machinepool.ScalePool, &wholeAsk); codes.Of(err) != codes.Unimplemented {
		t.Errorf("a limit of another call is answered %v", err)
	}
}

// unlisted is a pool driver that can't list groups.
type unlisted struct{ pooldriver.UnimplementedPools }

// TestListsPools: decorators always have ListPools. The driver decides whether groups can be listed.
func TestListsPools(t *testing.T) {
	wrapped := func(d pooldriver.Driver) pooldriver.Driver {
		return pooldriver.Validate(pooldriver.Intercept(pooldriver.Intercept(d, driver.Recover(nil)), driver.Limit(driver.Limits{})), nil)
	}
	listing := answeringPool(wholePool, nil)
	require.True(t, pooldriver.ListsPools(listing))
	require.True(t, pooldriver.ListsPools(wrapped(listing)))
	require.False(t, pooldriver.ListsPools(unlisted{}))
	require.False(t, pooldriver.ListsPools(wrapped(unlisted{})))
	_, err := askPool(t.Context(), wrapped(unlisted{}), machinepool.ListPools, &wholeAsk)
	require.Equal(t, codes.Unimplemented, codes.Of(err), "%v", err)
}

// TestListedGroupsAreBounded: entries that can't be acted upon are listed separately, and cut if they are too
// long. The driver's own answer does not change.
func TestListedGroupsAreBounded(t *testing.T) {
	long, pool := strings.Repeat("x", driver.MaxID+1), object.Key{Namespace: "fleet", Name: "web"}
	given := &pooldriver.ListPoolsResponse{Groups: map[string]object.Key{
		"fine": pool, "": {Name: "no-id"}, " ": {Name: "blank-id"}, "nameless": {Namespace: "fleet"}, long: pool,
		"long-name": {Name: long}, "long-namespace": {Namespace: long, Name: "web"},
	}}
	var cut []string
	d := pooldriver.Validate(answeringPool(func(machinepool.Call) any { return given }, nil), func(_ context.Context, s driver.CallInfo, whole string) {
		cut = append(cut, s.Method.String()+" "+whole)
	})
	a, err := askPool(t.Context(), d, machinepool.ListPools, &wholeAsk)
	require.NoError(t, err)
	got := a.(*pooldriver.ListPoolsResponse)
	require.Equal(t, map[string]object.Key{"fine": pool}, got.Groups)
	require.Len(t, got.Dropped, 6)
	for id, key := range got.Dropped {
		require.LessOrEqual(t, len(id), driver.MaxID)
		require.LessOrEqual(t, max(len(key.Name), len(key.Namespace)), driver.MaxName)
	}
	require.Len(t, cut, 2)
	require.Contains(t, strings.Join(cut, " "), "ListPools the answer has a group ID of size 1025")
	require.Len(t, given.Groups, 7, "the driver's own answer")
	require.Nil(t, given.Dropped)
}
