package manager

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/port"
	"github.com/millwright-go/millwright/object"
)

// calls tracks the calls of the drivers, and reports those that are overdue.
type calls struct {
	*driver.Calls
	options  *Options
	engine   *engine.Engine
	reported engine.Memory // events about overdue calls, by the object that they are about
}

// newCalls returns a set without calls. The hooks of the options must be those that contain returns.
func newCalls(o *Options, e *engine.Engine) *calls {
	c := &calls{options: o, engine: e}
	c.Calls = driver.NewCalls(driver.CallsOptions{
		Timeouts: driver.Timeouts{Default: o.Tuning.CallTimeout}, Grace: o.Tuning.CallGrace, Most: o.Tuning.OverdueCalls,
		Now: o.Runtime.Now, After: time.After, Await: o.Runtime.Await, Notify: c.report,
	})
	return c
}

// report emits events about a call that is overdue, or has returned, and calls Hooks.Overdue.
func (c *calls) report(call driver.OverdueCall, overdue int) {
	ctx, kind, about := context.Background(), call.Kind, call.Object
	if about == (object.Key{}) {
		kind, about = string(KindClass), call.Class
	}
	why := decision.Why{Name: call.Method.String(), For: c.options.Runtime.Now().Sub(call.Began).Round(time.Second)}
	if call.Returned {
		why.Reason, why.Code = reasonReturned, call.Code
		c.reported.Forget(about)
		c.engine.Emit(ctx, &c.reported, kind, about, Normal, why)
		c.reported.Forget(about)
	} else {
		why.Reason = reasonOverdue
		c.engine.Emit(ctx, &c.reported, kind, about, Warning, why)
	}
	switch refused := slices.Contains(c.Refused(), call.Class); {
	case !refused:
		c.reported.Forget(call.Class)
	case !call.Returned:
		c.engine.Emit(ctx, &c.reported, string(KindClass), call.Class, Warning,
			decision.Why{Reason: reasonRefused, Name: call.Class.Name})
	}
	if hook := c.options.Hooks.Overdue; hook != nil {
		hook(call.Method.String(), overdue)
	}
}

var (
	reasonOverdue = decision.NewReason("CallOverdue",
		"{name} has not returned after {for}: the driver does not end when its context does; until it returns, no other call about this is made")
	reasonReturned = decision.NewReason("OverdueCallReturned", "{name} has returned after {for}: {code}")
	reasonRefused  = decision.NewReason("TooManyOverdueCalls",
		"so many calls of the driver have not returned that none is made for class {name}, until some do")
)

// Drainer empties nodes before their VMs are deleted or updated in place.
type Drainer = port.Drainer

// WorkloadWatcher is a Drainer that knows when the workload of a node has
// changed, so that no pass has to ask for it.
type WorkloadWatcher interface {
	// Watch yields the name of a node whenever its workload has changed. It may
	// repeat and merge; it ends with an error, or when ctx does.
	Watch(ctx context.Context) iter.Seq2[string, error]
}

// abandoner is a Drainer that limits drains.
type abandoner interface {
	// Abandon sets aside the permit of a machine or pool, or of a node, because its pass panicked: a
	// few objects whose passes always panic must not keep others waiting, and yet not be drained all at
	// once. Such an object asks for a permit again in its next pass.
	Abandon(of object.Key, node string)
}

// NodeKeeper is a Drainer that can undo its drains: an instance of a pool that is being drained may have
// to stay after all. If there are pools to manage, New refuses a Drainer that is not a NodeKeeper.
type NodeKeeper = port.NodeKeeper
