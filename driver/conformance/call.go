package conformance

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
)

// answer is how a call ended.
type answer[R any] struct {
	response *R
	err      error
	value    any // of a panic
	stack    []byte
	place    string // where it panicked
}

// errStuck is the answer of calls that did not return in time.
var errStuck = errors.New("the driver is stuck")

// Call makes one call and checks how the driver behaves in it. request makes the same request each
// time.
func Call[Q, R any](
	ctx context.Context, r *Trial, method driver.Method, call func(context.Context, *Q) (*R, error), request func() *Q,
) (*R, error) {
	r.Helper()
	if r.stuck.Load() {
		return nil, errStuck
	}
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	given := request()
	ended := make(chan answer[R], 1)
	go func() {
		var a answer[R]
		defer func() {
			if a.value = recover(); a.value != nil {
				a.stack, a.place = debug.Stack(), panickedAt()
				a.err = errors.New("the driver panicked")
			}
			ended <- a
		}()
		a.response, a.err = call(ctx, given)
	}()
	a, ok := await(ctx, ended, r.Prompt)
	if !ok {
		r.stuck.Store(true)
		r.spoil(method.String()+" does not return", method.String()+" is stuck",
			"%s did not return within %v after its context had ended; a call stops when its context does", method, r.Prompt)
		return nil, errStuck
	}
	r.inspect(method, a.err, a.response != nil)
	if a.value != nil {
		r.spoil(method.String()+" panics", a.place, "%s panicked: %v\n%s", method, a.value, a.stack)
	}
	if !reflect.DeepEqual(given, request()) {
		r.breach(method.String()+" changed its request",
			"%s changed its request; requests are shared and must be left as they are", method)
	}
	if a.response != nil {
		r.secrets.search(r, method.String()+"'s response", *a.response)
	}
	return a.response, a.err
}

// panickedAt returns the line that panicked. A deferred function calls it.
func panickedAt() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
	for panicking := false; ; {
		f, more := frames.Next()
		inRuntime := strings.HasPrefix(f.Function, "runtime.")
		if panicking && !inRuntime || !more {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		panicking = panicking || f.Function == "runtime.gopanic"
	}
}

// await waits for an answer until the context has ended, and for prompt after that.
func await[A any](ctx context.Context, ended <-chan A, prompt time.Duration) (a A, ok bool) {
	select {
	case a = <-ended:
		return a, true
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), prompt)
	defer cancel()
	select {
	case a = <-ended:
		return a, true
	case <-late.Done():
		return a, false
	}
}

// inspect checks the rules for any answer.
func (r *Trial) inspect(method driver.Method, err error, response bool) {
	r.Helper()
	if err == nil {
		if !response && slices.Contains(r.Responsive, method) {
			r.breach(method.String()+" answered nothing", "%s answered OK and no response", method)
		}
		return
	}
	text := fmt.Sprint(err) // unlike err.Error(), it recovers from a panic of the method
	r.secrets.search(r, method.String()+"'s error", text, codes.Message(err))
	var typed *codes.Error
	if errors.As(err, &typed) && (typed == nil || typed.Message == "" && typed.Cause == nil) || text == "" {
		r.breach(method.String()+" failed without a message",
			"%s failed with %s and no message; say what a person can do about it", method, codes.Of(err))
	}
}
