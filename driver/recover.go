package driver

import (
	"context"
	"runtime/debug"

	"github.com/millwright-go/millwright/codes"
)

// Panic is what went wrong inside a driver. Value and Stack are whatever the
// driver and the runtime put there, secrets perhaps among it: they are for
// whoever repairs the driver, not for status or events.
type Panic struct {
	CallInfo
	Value any    // nil: the driver called runtime.Goexit
	Stack []byte // as runtime/debug.Stack gives it, from inside the panic
}

// Recover turns a panic of the driver into an INTERNAL error that names the
// call, without the panic's value. What it took effect on is not known then. A
// call of runtime.Goexit becomes one too: each call is made in a goroutine of
// its own, which is all that it ends. report is told first, by the goroutine
// that called; nil: nobody is.
//
// A panic in a goroutine that the driver started can't be caught.
func Recover(report func(Panic)) Interceptor {
	return func(ctx context.Context, call CallInfo, next func(context.Context) error) error {
		return recovered(call.Method.String(), func() error { return next(ctx) }, func(value any, stack []byte) {
			if report != nil {
				report(Panic{CallInfo: call, Value: value, Stack: stack})
			}
		})
	}
}

// recovered makes a call in a goroutine of its own and waits for its end. One
// that does not return is INTERNAL, and reported with the value of its panic.
func recovered(method string, call func() error, report func(value any, stack []byte)) error {
	type end struct {
		err      error
		returned bool
		value    any
		stack    []byte
	}
	ended := make(chan end, 1)
	go func() {
		var e end
		defer func() {
			if !e.returned {
				e.value, e.stack = recover(), debug.Stack()
			}
			ended <- e
		}()
		e.err = call()
		e.returned = true
	}()
	e := <-ended
	if e.returned {
		return e.err
	}
	report(e.value, e.stack)
	if e.value == nil {
		return codes.New(codes.Internal, "the driver called runtime.Goexit in "+method)
	}
	return codes.New(codes.Internal, "the driver panicked in "+method)
}
