// Package guest runs code that the simulation does not know, such as a driver under test, in a goroutine
// of its own. The simulation is not safe for concurrent use, so it waits meanwhile, and does what the
// guest asks for.
package guest

import (
	"fmt"
	"runtime"
	"strings"
)

// Guest is a call of such code. New makes it.
type Guest struct {
	asked chan func()
	over  chan struct{} // closed when the code has returned
}

// New returns a guest that does not run yet.
func New() *Guest { return &Guest{asked: make(chan func()), over: make(chan struct{})} }

// End is how a guest has ended.
type End struct {
	Err      error
	Returned bool   // otherwise it panicked, or called runtime.Goexit
	Panic    any    // nil: it called runtime.Goexit
	Stack    string // of the panic, without what differs from run to run
}

// Run runs code, does what it asks for, and returns when the code has ended.
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
		case do := <-g.asked:
			do()
		case e := <-ended:
			close(g.over)
			return e
		}
	}
}

// Do has the goroutine of Run do something, and waits for it. It may be called from any goroutine of the
// guest. It returns false if the code has returned: then nothing is done.
func (g *Guest) Do(what func()) bool {
	done := make(chan struct{})
	select {
	case g.asked <- func() {
		defer close(done)
		what()
	}:
		<-done
		return true
	case <-g.over:
		return false
	}
}

// stack returns the functions that a goroutine which panics is in.
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
