package driver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/object"
)

// An interceptor sees what a call is about, and can replace its error, but not its response.
func TestIntercept(t *testing.T) {
	for call := range codes.Calls() {
		mine := errors.New("mine")
		var seen driver.CallInfo
		d := driver.Intercept(answering(whole, errors.New("theirs")),
			func(ctx context.Context, info driver.CallInfo, next func(context.Context) error) error {
				seen = info
				if err := next(ctx); err == nil || err.Error() != "theirs" {
					t.Errorf("%s: next returns %v", call, err)
				}
				return mine
			})
		response, err := ask(t.Context(), d, call, aMachine, aClass, aSecret)
		if response == nil || err != mine || seen != infoOf(call) {
			t.Errorf("%s: %v, %v, about %+v", call, response, err, seen)
		}
	}
}

// The first interceptor is the outermost. Each gives the next one its context.
func TestInterceptInOrder(t *testing.T) {
	var order []string
	named := func(name string) driver.Interceptor {
		return func(ctx context.Context, _ driver.CallInfo, next func(context.Context) error) error {
			path, _ := ctx.Value(t).(string)
			err := next(context.WithValue(ctx, t, path+name))
			order = append(order, name)
			return err
		}
	}
	with := []driver.Interceptor{named("a"), named("b"), named("c")}
	d := driver.Intercept(&scripted{answer: func(ctx context.Context, call codes.Call, _ any) (any, error) {
		order = append(order, fmt.Sprint(ctx.Value(t)))
		return whole(call), nil
	}}, with...)
	with[0] = nil // has no effect: Intercept has copied the list
	if _, err := ask(t.Context(), d, codes.DeleteMachine, aMachine, aClass, aSecret); err != nil || strings.Join(order, " ") != "abc c b a" {
		t.Errorf("%v: %q", err, order)
	}
}

// TestDeadline checks which deadline each call gets, in virtual time.
func TestDeadline(t *testing.T) {
	by := map[driver.Method]time.Duration{
		codes.CreateMachine: 10 * time.Minute, codes.DeleteMachine: object.Off, codes.ListMachines: -time.Second,
		codes.UpdateMachine: 0,
	}
	for _, c := range []struct {
		name     string
		timeouts driver.Timeouts
		callers  time.Duration // the caller's own; zero: none
		want     map[codes.Call]time.Duration
	}{
		{"none", driver.Timeouts{}, 0, nil},
		{"by call", driver.Timeouts{Default: time.Minute, By: by}, 0, map[codes.Call]time.Duration{
			codes.CreateMachine: 10 * time.Minute, codes.DeleteMachine: 0, codes.ListMachines: 0,
			codes.GetMachineStatus: time.Minute, codes.UpdateMachine: time.Minute,
		}},
		{"callers'", driver.Timeouts{Default: time.Minute, By: by}, time.Second, map[codes.Call]time.Duration{
			codes.CreateMachine: time.Second, codes.DeleteMachine: time.Second, codes.GetMachineStatus: time.Second,
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var left time.Duration
			d := driver.Intercept(&scripted{answer: func(ctx context.Context, call codes.Call, _ any) (any, error) {
				left = 0
				if at, ok := ctx.Deadline(); ok {
					left = time.Until(at)
				}
				return whole(call), nil
			}}, driver.Deadline(c.timeouts))
			ctx := t.Context()
			if c.callers > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.callers)
				defer cancel()
			}
			for call, want := range c.want {
				if _, err := ask(ctx, d, call, aMachine, aClass, nil); err != nil || left != want {
					t.Errorf("%s: %s has %v, not %v (%v)", c.name, call, left, want, err)
				}
			}
		})
	}
}

// A later change of the caller's map has no effect.
func TestDeadlineKeepsItsOwnTimeouts(t *testing.T) {
	by := map[driver.Method]time.Duration{codes.CreateMachine: time.Hour}
	d := driver.Intercept(&scripted{answer: func(ctx context.Context, call codes.Call, _ any) (any, error) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("there is no deadline any more")
		}
		return whole(call), nil
	}}, driver.Deadline(driver.Timeouts{By: by}))
	delete(by, codes.CreateMachine)
	if _, err := ask(t.Context(), d, codes.CreateMachine, aMachine, aClass, nil); err != nil {
		t.Error(err)
	}
}

// The driver decides when a call ends. A late success is not lost, and a driver that keeps to its
// deadline says so by the code.
func TestDeadlineWaitsForTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := driver.Intercept(&scripted{answer: func(_ context.Context, call codes.Call, _ any) (any, error) {
			<-time.After(time.Hour)
			return whole(call), nil
		}}, driver.Deadline(driver.Timeouts{Default: time.Minute}))
		if response, err := ask(t.Context(), late, codes.CreateMachine, aMachine, aClass, nil); response == nil || err != nil {
			t.Errorf("late: %v, %v", response, err)
		}
		began := time.Now()
		prompt := driver.Intercept(&scripted{answer: func(ctx context.Context, _ codes.Call, _ any) (any, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("waiting for the VM: %w", ctx.Err())
		}}, driver.Deadline(driver.Timeouts{Default: time.Minute}))
		_, err := ask(t.Context(), prompt, codes.CreateMachine, aMachine, aClass, nil)
		if took := time.Since(began); codes.Of(err) != codes.DeadlineExceeded || took != time.Minute {
			t.Errorf("prompt: %v after %v", err, took)
		}
	})
}

// A panic becomes an error that names the call and shows nothing of its value.
func TestRecover(t *testing.T) {
	for call := range codes.Calls() {
		for _, value := range []any{"hush-hush", errors.New("hush-hush"), aSecret.Data, nil} {
			var reported []driver.Panic
			d := driver.Intercept(&scripted{answer: func(context.Context, codes.Call, any) (any, error) {
				panic(value)
			}}, driver.Recover(func(p driver.Panic) { reported = append(reported, p) }))
			response, err := ask(t.Context(), d, call, aMachine, aClass, aSecret)
			if response != nil || codes.Of(err) != codes.Internal || !strings.Contains(err.Error(), call.String()) {
				t.Fatalf("%s: %v, %v", call, response, err)
			}
			if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, "hush") || strings.Contains(text, "goroutine") {
				t.Errorf("%s says too much: %s", call, text)
			}
			if len(reported) != 1 || reported[0].CallInfo != infoOf(call) || value != nil && fmt.Sprint(reported[0].Value) != fmt.Sprint(value) {
				t.Fatalf("%s: reported %+v", call, reported)
			}
			if !bytes.Contains(reported[0].Stack, []byte("TestRecover")) {
				t.Errorf("%s: the stack does not show where:\n%s", call, reported[0].Stack)
			}
			if _, err := ask(t.Context(), driver.Intercept(d, driver.Recover(nil)), call, aMachine, aClass, aSecret); err == nil {
				t.Errorf("%s: no error without a report", call)
			}
		}
	}
}

// TestHook checks what a hook learns about each call, in virtual time.
func TestHook(t *testing.T) {
	for _, answer := range []error{nil, codes.New(codes.ResourceExhausted, "full"), context.Canceled} {
		for call := range codes.Calls() {
			synctest.Test(t, func(t *testing.T) {
				type mark struct{}
				ended := false
				var reported []driver.Call
				d := driver.Intercept(&scripted{answer: func(_ context.Context, call codes.Call, _ any) (any, error) {
					<-time.After(3 * time.Second)
					ended = true
					return whole(call), answer
				}}, driver.Hook(time.Now, func(ctx context.Context, c driver.Call) {
					if !ended || ctx.Value(mark{}) != call {
						t.Errorf("%s: reported before the end, or with another context", call)
					}
					reported = append(reported, c)
				}))
				response, err := ask(context.WithValue(t.Context(), mark{}, call), d, call, aMachine, aClass, aSecret)
				if response == nil || err != answer {
					t.Errorf("%s: %v, %v", call, response, err)
				}
				want := driver.Call{CallInfo: infoOf(call), Took: 3 * time.Second, Code: codes.Of(answer), Err: answer}
				if len(reported) != 1 || reported[0] != want {
					t.Errorf("%s: reported %+v, not %+v", call, reported, want)
				}
			})
		}
	}
}

// With a clock that is missing or goes backwards, Took is zero.
func TestHookWithOddClocks(t *testing.T) {
	at := time.Unix(1000, 0)
	for name, now := range map[string]func() time.Time{
		"none": nil,
		"backwards": func() time.Time {
			at = at.Add(-time.Second)
			return at
		},
	} {
		calls := 0
		d := driver.Intercept(plain(), driver.Hook(now, func(_ context.Context, c driver.Call) {
			calls++
			if c.Took != 0 {
				t.Errorf("%s: took %v", name, c.Took)
			}
		}))
		if _, err := ask(t.Context(), d, codes.CreateMachine, aMachine, aClass, nil); err != nil || calls != 1 {
			t.Errorf("%s: %v, reported %d times", name, err, calls)
		}
	}
}

// With faulty drivers, and the decorators in several orders, no message contains a value of a secret.
func TestDecoratorsShowNoSecret(t *testing.T) {
	var shown []string
	hook := func(d driver.Driver) driver.Driver {
		return driver.Intercept(d, driver.Hook(nil, func(_ context.Context, c driver.Call) {
			shown = append(shown, fmt.Sprintf("%v %+v %#v", c, c, c))
		}))
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	faulty := map[string]driver.Driver{
		"panics": &scripted{answer: func(_ context.Context, _ codes.Call, req any) (any, error) {
			panic(fmt.Sprintf("%v %s", req, aSecret.Data["token"]))
		}},
		"answers nothing": answering(nothing, nil),
		"lists nonsense": answering(func(codes.Call) any {
			return &driver.ListMachinesResponse{Machines: map[string]string{"": "m-1"}}
		}, nil),
	}
	for name, d := range faulty {
		for _, order := range [][]string{{"recover", "validate", "limit"}, {"limit", "recover", "validate"}, {"recover", "limit", "validate"}} {
			for call := range codes.Calls() {
				for _, ctx := range []context.Context{t.Context(), canceled} {
					_, err := ask(ctx, hook(stackOf(order, d)), call, aMachine, aClass, aSecret)
					shown = append(shown, fmt.Sprintf("%s: %v %+v %s", name, err, err, codes.Message(err)))
					_, err = ask(ctx, hook(stackOf(order, d)), call, aMachine, nil, aSecret)
					shown = append(shown, fmt.Sprintf("%s: %v %+v %s", name, err, err, codes.Message(err)))
				}
			}
		}
	}
	decimals := strings.Trim(fmt.Sprint([]byte("hush-hush")), "[]")
	for _, text := range shown {
		if strings.Contains(text, "hush") || strings.Contains(text, decimals) {
			t.Errorf("shown: %s", text)
		}
	}
	if len(shown) < 100 {
		t.Errorf("only %d texts were looked at", len(shown))
	}
}
