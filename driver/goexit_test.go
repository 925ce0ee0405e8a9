package driver_test

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
)

// A caller of a driver that ends its goroutine still gets an answer.
// Invariants: P11
func TestRecoverFromGoexit(t *testing.T) {
	returned := 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for call := range codes.Calls() {
			var told []driver.Panic
			d := driver.Intercept(&scripted{answer: func(context.Context, codes.Call, any) (any, error) {
				runtime.Goexit()
				return whole(call), nil
			}}, driver.Recover(func(p driver.Panic) { told = append(told, p) }))
			response, err := ask(t.Context(), d, call, aMachine, aClass, aSecret)
			if response != nil || codes.Of(err) != codes.Internal || !strings.Contains(err.Error(), "runtime.Goexit in "+call.String()) {
				t.Errorf("%s: %v, %v", call, response, err)
			}
			if len(told) != 1 || told[0].Value != nil || told[0].CallInfo != infoOf(call) || !bytes.Contains(told[0].Stack, []byte("TestRecoverFromGoexit")) {
				t.Errorf("%s: told %+v", call, told)
			}
			returned++
		}
	}()
	<-ended
	if returned == 0 {
		t.Fatal("no call returned")
	}
}

// A clock that panics keeps no slot of a limit: the next call is made.
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
