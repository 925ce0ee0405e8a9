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
	Subject
	Value any
	Stack []byte // as runtime/debug.Stack gives it, from inside the panic
}

// Recover returns a driver in which a panic of d becomes an INTERNAL error that
// names the call, without the panic's value. What it took effect on is not
// known then. report is told first, in the same goroutine; nil: nobody is.
//
// A panic in a goroutine that d started can't be caught.
func Recover(d Driver, report func(Panic)) Driver {
	return Around(d, func(ctx context.Context, s Subject, next func(context.Context) error) (err error) {
		defer func() {
			value := recover()
			if value == nil {
				return
			}
			err = codes.New(codes.Internal, "the driver panicked in "+s.Method.String())
			if report != nil {
				report(Panic{Subject: s, Value: value, Stack: debug.Stack()})
			}
		}()
		return next(ctx)
	})
}
