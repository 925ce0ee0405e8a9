package sim

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/sim/internal/guest"
)

// ownCalls are the calls to a driver of the world's user, who sets Options.Driver. The faults of the
// provider are below such a driver: what it calls fails, so that its handling of errors is tested.
type ownCalls struct {
	now func() time.Time // Options.DriverNow
	// current is the call whose driver computes, while the world stands still; or nil.
	current atomic.Pointer[driverCall]
}

// driverCall is a call to the driver that has not returned. What the driver does to the world is done for
// it by the pass that makes the call, so a driver may use several goroutines for one call.
type driverCall struct {
	*guest.Guest
	p       *process
	of      *ownCalls
	info    driver.CallInfo
	ends    time.Time // the deadline; zero: there is none
	overdue time.Time // when its caller goes on without it
	cancel  context.CancelFunc
	seen    time.Time // when the driver went on, by ownCalls.now
}

type callKey struct{}

// through takes each call to the driver through what may happen to its caller.
func (d *ownCalls) through(p *process, to *machineCalls) driver.Interceptor {
	return func(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
		if p.dead {
			return errDead // no caller is alive
		}
		defer p.only(s)()
		p.emit(calling{s})
		p.calls++
		p.steps++
		to.arrived(s)
		outcome := p.outcome()
		if outcome == killedBefore || outcome == killedLate {
			p.kill()
			return errDead
		}
		p.emit(called{p, s})
		began, patience := p.Now(), p.patience
		err := d.makeAll(ctx, p, to, s, next)
		if outcome == killedAfter && !p.dead {
			p.kill()
		}
		if p.dead {
			return errDead
		}
		if p.limit <= 0 || p.Now().Sub(began) < patience { // otherwise its caller went on without it
			p.emit(answered{p, s, began, err}) // the manager read its clock when it began
		}
		p.clock.Pause(p.latency())
		if p.dead {
			return errDead
		}
		return err
	}
}

// makeAll makes a call, or the same call twice. The last answer counts.
func (d *ownCalls) makeAll(ctx context.Context, p *process, to *machineCalls, s driver.CallInfo, next func(context.Context) error) error {
	began := p.Now()
	once := func(ctx context.Context) error { return d.make(ctx, p, s, began, next) }
	err := to.provide(ctx, once)
	if s.ReadOnly || err != nil || p.dead || !p.happens(p.hazards.Repeat) {
		return err
	}
	p.tell("%s %s is called again", s.Method, s.Object.Name)
	return to.provide(ctx, once)
}

// make makes a call, and does what the driver asks for until it returns. The deadline is in the world's
// time, so that of ctx does not count.
func (d *ownCalls) make(ctx context.Context, p *process, s driver.CallInfo, began time.Time, next func(context.Context) error) error {
	c := &driverCall{Guest: guest.New(), p: p, of: d, info: s}
	ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer c.cancel()
	if p.limit > 0 {
		c.ends, c.overdue = began.Add(p.limit), began.Add(p.patience)
		p.After(c.ends.Sub(p.Now()), c.cancel)
	}
	c.goesOn()
	e := c.Run(func() error { return next(context.WithValue(ctx, callKey{}, c)) })
	d.current.Store(nil)
	c.catchUp()
	return c.result(e)
}

// result returns a call's error. A panic is a violation, unless the process died in the call: then
// nothing of the driver goes on.
func (c *driverCall) result(e guest.End) error {
	switch {
	case c.p.dead:
		return errDead
	case e.Returned:
		return e.Err
	case e.Panic == nil:
		c.p.violate(RuleDriverPanicked, "the driver called runtime.Goexit in %s", c)
		return codes.New(codes.Internal, "the driver called runtime.Goexit")
	}
	c.p.violate(RuleDriverPanicked, "the driver panicked in %s: %v\n%s", c, e.Panic, e.Stack)
	return codes.New(codes.Internal, "the driver panicked")
}

// String returns which call it is.
func (c *driverCall) String() string {
	text := c.info.Method.String()
	if c.info.Object.Name != "" {
		text += " of " + c.info.Kind + " " + c.info.Object.Name
	}
	return text
}

// goesOn notes that the driver goes on.
func (c *driverCall) goesOn() {
	if c.of.now != nil {
		c.seen = c.of.now()
	}
	c.of.current.Store(c)
}

// catchUp lets as much time pass in the world as the driver has used by its clock.
func (c *driverCall) catchUp() {
	if c.of.now == nil {
		return
	}
	if took := c.of.now().Sub(c.seen); took > 0 {
		c.pause(context.Background(), took)
	}
}

// pause lets time pass in the world, and returns before that if ctx ends. The call's context ends with
// its deadline.
func (c *driverCall) pause(ctx context.Context, d time.Duration) {
	if left := c.ends.Sub(c.p.Now()); !c.ends.IsZero() && left >= 0 && left <= d {
		c.p.clock.Pause(left)
		c.cancel()
		d -= left
		if ctx.Err() != nil {
			return
		}
	}
	c.p.clock.Pause(d)
}

// errCallOver is what is done for a call that has returned.
var errCallOver = errors.New("sim: the call of the driver that this belongs to has returned")

// do has the world do something for the driver, which waits for it. If the process has died, nothing of
// the driver goes on either: this does not return.
func (c *driverCall) do(work func()) error {
	done := c.Do(func() {
		c.of.current.Store(nil)
		c.catchUp()
		work()
		c.goesOn()
	})
	switch {
	case !done:
		return errCallOver
	case c.p.dead:
		runtime.Goexit()
	}
	return nil
}

// call returns the call that a context belongs to, or the one whose driver computes. Nil: there is none,
// or it must not be disturbed.
func (d *ownCalls) call(ctx context.Context) *driverCall {
	if ctx.Value(undisturbedKey{}) != nil {
		return nil
	}
	if c, ok := ctx.Value(callKey{}).(*driverCall); ok {
		return c
	}
	return d.current.Load()
}

type undisturbedKey struct{}

// Undisturbed returns a context with which a driver's requests are carried out at once, and never fail.
// It is for those who check what a driver answers by asking it again.
func Undisturbed(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), undisturbedKey{}, true)
}

// sleep is World.Sleep.
func (d *ownCalls) sleep(ctx context.Context, t time.Duration) error {
	if c := d.call(ctx); c != nil {
		if err := c.do(func() { c.pause(ctx, t) }); err != nil {
			return err
		}
	}
	return ctx.Err()
}
