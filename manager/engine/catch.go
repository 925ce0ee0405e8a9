package engine

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
)

// ErrPanicked is the error of a pass in which something panicked or called runtime.Goexit: a decision,
// a port, an order of a batch. Call Reconcile again after a pause, as after any error.
var ErrPanicked = errors.New("the pass panicked")

// Caught is the end of code that did not return: it panicked, or called runtime.Goexit.
type Caught struct {
	// What says how it ended, and where. It holds no value of a panic but the runtime's own
	// errors, which consist of numbers and type names: any other may be a secret.
	What  string
	Stack []byte
}

// NewCaught describes a panic with a value that was caught elsewhere, in what prefix says.
func NewCaught(prefix string, value any, stack []byte) *Caught {
	return &Caught{bounded(prefix + ": " + describe(value)), stack}
}

// longestWhat bounds Caught.What, in bytes.
const longestWhat = 300

// Error says everything, for a panic that is not caught again.
func (c *Caught) Error() string { return c.What + "\n" + string(c.Stack) }

// Catch calls do in a goroutine of its own, waits for its end, and returns nil if do returned. A
// panic or a runtime.Goexit ends that goroutine only, after its deferred calls: what do held with a
// defer is free again.
func Catch(do func()) *Caught {
	ended := make(chan *Caught, 1)
	go func() {
		returned := false
		defer func() {
			if returned {
				ended <- nil
				return
			}
			ended <- caughtNow(recover())
		}()
		do()
		returned = true
	}()
	return <-ended
}

// growStack gives the stack of a new goroutine room for a pass at once: 16 KiB. A stack begins with
// 2 KiB and doubles when it is full, and each time all that is on it is copied. For passes, which are
// short and deep, this took a sixth of their time.
//
//go:noinline
func growStack() {
	var room [8 << 10]byte
	runtime.KeepAlive(&room)
}

// caughtNow describes the panic, or the runtime.Goexit if value is nil, under whose deferred calls
// it is called. What was caught before, in another goroutine, stays as it is.
func caughtNow(value any) *Caught {
	if before, again := value.(*Caught); again {
		return before
	}
	what := describe(value)
	if at := origin(); at != "" {
		what += " in " + at
	}
	return &Caught{What: bounded(what), Stack: debug.Stack()}
}

// describe says what was panicked with, as far as it may be told.
func describe(value any) string {
	if value == nil {
		return "runtime.Goexit was called"
	}
	t := reflect.TypeOf(value)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if err, ok := value.(runtime.Error); ok && t.PkgPath() == "runtime" {
		return err.Error()
	}
	return "panic with a value of type " + reflect.TypeOf(value).String()
}

// bounded is a text of at most longestWhat bytes.
func bounded(text string) string {
	if len(text) <= longestWhat {
		return text
	}
	return strings.ToValidUTF8(text[:longestWhat], "") + "…"
}

// origin names the function that panicked or called runtime.Goexit; empty: unknown.
func origin() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	began := false
	for {
		frame, more := frames.Next()
		name := frame.Function
		switch {
		case name == "runtime.gopanic" || name == "runtime.Goexit":
			began = true
		case began && !strings.HasPrefix(name, "runtime."):
			return name[strings.LastIndex(name, "/")+1:]
		}
		if !more {
			return ""
		}
	}
}

// Contain returns an Each whose orders can't end the process: when all have ended, the first panic
// is raised again in the goroutine that gave the orders, whose pass it ends.
func Contain(each func(context.Context, int, func(int))) func(context.Context, int, func(int)) {
	return func(ctx context.Context, n int, do func(int)) {
		var first atomic.Pointer[Caught]
		each(ctx, n, func(i int) {
			if c := Catch(func() { do(i) }); c != nil {
				first.CompareAndSwap(nil, c)
			}
		})
		if c := first.Load(); c != nil {
			panic(c)
		}
	}
}
