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

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
)

// poolInfo is what interceptors are told about a call of askPool.
func poolInfo(call machinepool.Call) driver.CallInfo {
	info := driver.CallInfo{Method: call, Kind: "pool", Object: aPool.Key, Class: aClass.Key}
	if call == machinepool.ListPools {
		info.Object, info.ReadOnly = object.Key{}, true
	}
	info.ReadOnly = info.ReadOnly || call == machinepool.GetPoolStatus
	return info
}

// aboutAPool are the calls that name a pool.
func aboutAPool() []machinepool.Call {
	return slices.DeleteFunc(machinepool.Calls(), func(c machinepool.Call) bool { return c == machinepool.ListPools })
}

// An interceptor sees what a call is about, and decides about its error only.
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

// What a driver declares is found through every decorator.
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

// Deadlines as each call gets them, in virtual time.
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
		timeouts.By[machinepool.CreatePool] = time.Second // without effect
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
		t.Errorf("%v, %v: told of %+v", a, err, seen)
	}
	back := pooldriver.Intercept(&scriptedPool{answer: func(context.Context, machinepool.Call, any) (any, error) {
		clock = clock.Add(-time.Hour)
		return nil, nil
	}}, driver.Hook(func() time.Time { return clock }, func(_ context.Context, c driver.Call) { seen = c }))
	if _, err := askPool(t.Context(), back, machinepool.DeletePool, &wholeAsk); err != nil || seen.Took != 0 || seen.Code != codes.OK {
		t.Errorf("a clock that was set back: %+v", seen)
	}
}

// Invalid requests are not made.
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

// Answers that can't be acted upon are INTERNAL. Optional fields may be missing.
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

// Instances come out sorted, each once, and the driver's own answer is left alone.
func TestValidatePoolInstances(t *testing.T) {
	mixed := []machinepool.Instance{{ProviderID: "c"}, {ProviderID: ""}, {ProviderID: "a", Going: true}, {ProviderID: "c", Going: true}, {ProviderID: " "}}
	given := &pooldriver.GetPoolStatusResponse{GroupID: "g", Instances: mixed, Failure: "f"}
	d := pooldriver.Validate(answeringPool(func(machinepool.Call) any { return given }, nil), nil)
	a, err := d.GetPoolStatus(t.Context(), &pooldriver.GetPoolStatusRequest{Request: wholeAsk.Request})
	want := []machinepool.Instance{{ProviderID: "a", Going: true}, {ProviderID: "c"}}
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

// The secret of a request is in no error of the decorators.
func TestPoolDecoratorsShowNoSecret(t *testing.T) {
	ask := wholeAsk
	ask.Secret = &machine.Secret{Data: map[string][]byte{"token": []byte("hunter2")}}
	ask.Pool = &machinepool.Pool{}
	_, err := askPool(t.Context(), pooldriver.Validate(pooldriver.UnimplementedPools{}, nil), machinepool.CreatePool, &ask)
	if err == nil || strings.Contains(fmt.Sprintf("%+v", err), "hunter2") {
		t.Error(err)
	}
}
