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
// panic's value. The effects of the call are then unknown. The calling goroutine calls the function
// report first; report may be nil.
//
// A call of runtime.Goexit is reported too, and ends the calling goroutine; with Track outside, the
// answer is INTERNAL even so. A panic in a goroutine that the driver started can't be caught.
func Recover(report func(Panic)) Interceptor {
	return func(ctx context.Context, call CallInfo, next func(context.Context) error) (err error) {
		returned := false
		defer func() {
			if returned {
				return
			}
			value := recover()
			if report != nil {
				report(Panic{CallInfo: call, Value: value, Stack: debug.Stack()})
			}
			err = codes.New(codes.Internal, "the driver panicked in "+call.Method.String())
		}()
		err = next(ctx)
		returned = true
		return err
	}
}
