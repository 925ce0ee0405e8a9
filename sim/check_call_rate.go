package sim

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/object"
)

// p63: the provider is not flooded: a process makes each call about a machine at most floodCalls times in
// floodTime, however calls are answered, and however often others change machines and classes.
type p63 struct {
	*World
	by    *process
	calls map[repeated][]time.Time // the times of that process's calls in the last floodTime
}

// repeated identifies the calls that are counted together.
type repeated struct {
	method  driver.Method
	machine object.Key
}

// More than floodCalls calls in floodTime are a violation.
const (
	floodTime  = 10 * time.Minute
	floodCalls = 30
)

func newP63(w *World) *p63 { return &p63{World: w} }

func (w *p63) see(e event) {
	if e, ok := e.(callArrived); ok && e.call.Kind == "machine" && e.call.Object.Name != "" {
		if e.by != w.by {
			w.by, w.calls = e.by, map[repeated][]time.Time{}
		}
		w.checkCalls(repeated{e.call.Method, e.call.Object})
	}
}

func (w *p63) checkCalls(r repeated) {
	began := w.Now().Add(-floodTime)
	w.calls[r] = append(slices.DeleteFunc(w.calls[r], func(at time.Time) bool { return at.Before(began) }), w.Now())
	if n := len(w.calls[r]); n > floodCalls && w.faults[ClockJump] == 0 {
		w.violate("P63", "%s was called %d times for machine %s within %s", r.method, n, r.machine.Name, floodTime)
	}
}
