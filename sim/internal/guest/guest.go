// Package guest runs code that the simulation does not know, such as a driver under test, in a goroutine
// of its own. The simulation is not safe for concurrent use. So it waits until the code has returned, and
// meanwhile runs the functions that the code passes to Do.
package guest

import (
	"fmt"
	"runtime"
	"strings"
)

// Guest is one run of such code. New makes it.
type Guest struct {
	requests chan func()   // the functions passed to Do
	over     chan struct{} // closed when the code has returned
}

// New returns a guest that does not run yet.
func New() *Guest { return &Guest{requests: make(chan func()), over: make(chan struct{})} }

// End says how a guest has ended.
type End struct {
	Err      error
	Returned bool   // if false, it panicked or called runtime.Goexit
	Panic    any    // the value of the panic; nil: it called runtime.Goexit
	Stack    string // of the panic, without what differs from run to run
}

// Run runs code in another goroutine, runs the functions that it passes to Do, and returns when the code
// has ended.
func (g *Guest) Run(code func() error) End {
	ended := make(chan End, 1)
	go func() {
		var e End
		defer func() {
			if !e.Returned {
				e.Panic, e.Stack = recover(), stack()
			}
			ended <- e
		}()
		e.Err = code()
		e.Returned = true
	}()
	for {
		select {
		case do := <-g.requests:
			do()
		case e := <-ended:
			close(g.over)
			return e
		}
	}
}

// Do makes the goroutine of Run call a function, and waits until it returns. It may be called from any
// goroutine of the guest. If the code has returned already, Do returns false and calls nothing.
func (g *Guest) Do(what func()) bool {
	done := make(chan struct{})
	select {
	case g.requests <- func() {
		defer close(done)
		what()
	}:
		<-done
		return true
	case <-g.over:
		return false
	}
}

// stack returns the stack of a goroutine that panics, without addresses.
func stack() string {
	var b strings.Builder
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.Contains(f.Function, "guest.(*Guest).Run") {
			break
		}
		fmt.Fprintf(&b, "\t%s\n\t\t%s:%d\n", f.Function, f.File, f.Line)
	}
	return b.String()
}
