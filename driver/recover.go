package driver

import (
	"context"
	"runtime/debug"

	"github.com/millwright-go/millwright/codes"
)

// Panic is what went wrong inside a driver. Value and Stack come from the driver and the runtime,
// and may contain secrets. They are for the developer of the driver, not for status or events.
type Panic struct {
	CallInfo
	Value any    // nil: the driver called runtime.Goexit
	Stack []byte // as runtime/debug.Stack gives it, from inside the panic
}

// Recover turns a panic of the driver into an INTERNAL error that names the call, without the
// panic's value. The effects of the call are then unknown. A call of runtime.Goexit becomes such an
// error too: each call runs in a goroutine of its own, and Goexit ends only that one. The calling
// goroutine calls report first; report may be nil.
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

// recovered makes a call in a goroutine of its own and waits for its end. A call that does not
// return is INTERNAL, and reported with the value of its panic.
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
