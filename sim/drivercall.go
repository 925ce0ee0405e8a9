package sim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/sim/internal/guest"
)

// userDriverCalls makes the calls to a driver of Options.Driver. The faults of the provider are below
// such a driver: its requests fail, so that its handling of errors is tested.
type userDriverCalls struct {
	now func() time.Time // Options.DriverNow
	// current is the call in which the driver computes now, so that nothing else runs in the world; or nil.
	current atomic.Pointer[driverCall]
}

// driverCall is a call to the driver that has not returned. All that the driver does to the world is done
// by the goroutine of the pass that makes the call, so a driver may use several goroutines in one call.
type driverCall struct {
	*guest.Guest
	p       *process
	of      *userDriverCalls
	info    driver.CallInfo
	ends    time.Time // the deadline; zero: no deadline
	overdue time.Time // when the caller stops waiting for the call
	cancel  context.CancelFunc
	seen    time.Time // when the driver began to compute, by userDriverCalls.now
}

type callKey struct{}

// interceptor makes each call to the driver, and simulates what may happen to its caller.
func (d *userDriverCalls) interceptor(p *process, to *machineCalls) driver.Interceptor {
	return func(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
		if p.dead {
			return errDead // no caller is alive
		}
		defer p.noteUnderway(s)()
		p.emit(callBegun{s})
		p.calls++
		p.steps++
		to.arrived(s)
		outcome := p.outcome()
		if outcome == killedBefore || outcome == killedLate {
			p.kill()
			return errDead
		}
		p.emit(callArrived{p, s})
		began, patience := p.Now(), p.patience
		err := d.makeAll(ctx, p, to, s, next)
		if outcome == killedAfter && !p.dead {
			p.kill()
		}
		if p.dead {
			return errDead
		}
		if p.limit <= 0 || p.Now().Sub(began) < patience { // otherwise the caller did not wait for it
			p.emit(callAnswered{p, s, began, err}) // the manager read its clock when it began
		}
		p.clock.Pause(p.latency())
		if p.dead {
			return errDead
		}
		return err
	}
}

// makeAll makes a call, or the same call twice, as Faults.Repeat says. The last answer counts.
func (d *userDriverCalls) makeAll(ctx context.Context, p *process, to *machineCalls, s driver.CallInfo, next func(context.Context) error) error {
	began := p.Now()
	once := func(ctx context.Context) error { return d.make(ctx, p, s, began, next) }
	err := to.provide(ctx, once)
	if s.ReadOnly || err != nil || p.dead || !p.happens(p.hazards.Repeat) {
		return err
	}
	p.tell("%s %s is called again", s.Method, s.Object.Name)
	return to.provide(ctx, once)
}

// make makes a call, and carries out the driver's requests until it returns. The deadline is in virtual
// time, so that of ctx is ignored.
func (d *userDriverCalls) make(ctx context.Context, p *process, s driver.CallInfo, began time.Time, next func(context.Context) error) error {
	c := &driverCall{Guest: guest.New(), p: p, of: d, info: s}
	ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer c.cancel()
	if p.limit > 0 {
		c.ends, c.overdue = began.Add(p.limit), began.Add(p.patience)
		p.After(c.ends.Sub(p.Now()), c.cancel)
	}
	c.startsComputing()
	e := c.Run(func() error { return next(context.WithValue(ctx, callKey{}, c)) })
	d.current.Store(nil)
	c.catchUp()
	return c.result(e)
}

// result returns a call's error. A panic is a violation, unless the process died in the call: then
// the driver ran no further.
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

// String returns the method and the object of the call.
func (c *driverCall) String() string {
	text := c.info.Method.String()
	if c.info.Object.Name != "" {
		text += " of " + c.info.Kind + " " + c.info.Object.Name
	}
	return text
}

// startsComputing notes that the driver computes again.
func (c *driverCall) startsComputing() {
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

// pause lets so much time pass in the world, or less if ctx ends. It ends the call's context at its
// deadline.
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

// errCallOver is the error of a request for a call that has returned.
var errCallOver = errors.New("sim: the call of the driver that this belongs to has returned")

// do runs work in the world while the driver waits for it. If the process has died, do ends the driver's
// goroutine, and does not return.
func (c *driverCall) do(work func()) error {
	done := c.Do(func() {
		c.of.current.Store(nil)
		c.catchUp()
		work()
		c.startsComputing()
	})
	switch {
	case !done:
		return errCallOver
	case c.p.dead:
		runtime.Goexit()
	}
	return nil
}

// call returns the call that a context belongs to, or else the current one. It returns nil if there is
// none, or for a context of Undisturbed.
func (d *userDriverCalls) call(ctx context.Context) *driverCall {
	if ctx.Value(undisturbedKey{}) != nil {
		return nil
	}
	if c, ok := ctx.Value(callKey{}).(*driverCall); ok {
		return c
	}
	return d.current.Load()
}

type undisturbedKey struct{}

// Undisturbed returns a context with which a driver's requests are carried out at once, without faults.
// It is for checks that call the driver again to compare the answers.
func Undisturbed(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), undisturbedKey{}, true)
}

// sleep implements World.Sleep.
func (d *userDriverCalls) sleep(ctx context.Context, t time.Duration) error {
	if c := d.call(ctx); c != nil {
		if err := c.do(func() { c.pause(ctx, t) }); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// These are the errors of World.Request when the provider fails.
var (
	// ErrRefused: the request was not carried out.
	ErrRefused = errors.New("sim: the provider does not answer")
	// ErrAnswerLost: the request was carried out.
	ErrAnswerLost = errors.New("sim: the provider's answer was lost")
)

// request is one request of a driver to its provider.
type request struct {
	what     string
	carryOut func() error
	refusal  func() error // returns an error if the request is not carried out
	lost     func() error // returns what the driver gets in place of a lost answer
	late     func()       // carries the request out some time after the manager has died; nil: it can't be
}

// request makes a request with the faults of the world, or without them outside of a call of the driver.
func (d *userDriverCalls) request(ctx context.Context, r *request) error {
	c := d.call(ctx)
	if c == nil {
		return r.carryOut()
	}
	var err error
	if over := c.do(func() { err = c.request(ctx, r) }); over != nil {
		return over
	}
	return err
}

// request makes a request, and simulates what may happen to it.
func (c *driverCall) request(ctx context.Context, r *request) error {
	p := c.p
	c.pause(ctx, p.hazards.CallTime/2+p.upTo(p.hazards.CallTime/2))
	switch {
	case p.dead:
		if r.late != nil && p.happens(p.hazards.Late) {
			r.late()
		}
		return errDead
	case ctx.Err() != nil:
		return ctx.Err()
	}
	p.calls++
	p.steps++
	outcome := p.outcome()
	switch outcome {
	case killedLate:
		if r.late != nil {
			r.late()
		}
		fallthrough
	case killedBefore:
		p.kill()
		return errDead
	}
	if err := r.refusal(); err != nil {
		p.tell("%s: %s fails and is not carried out: %v", c, r.what, err)
		return err
	}
	if err := c.hang(ctx); err != nil {
		return err
	}
	err := r.carryOut()
	if outcome == killedAfter {
		p.kill()
		return errDead
	}
	return c.answer(ctx, r, err)
}

// answer returns what the driver gets as the answer of a request, after the time that it takes.
func (c *driverCall) answer(ctx context.Context, r *request, err error) error {
	p := c.p
	if err == nil && p.happens(p.hazards.LostCall) {
		p.count(CallAnswerLost)
		err = r.lost()
		p.tell("%s: %s is carried out and its answer lost: %v", c, r.what, err)
	}
	c.pause(ctx, p.latency())
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// hang makes a request, by chance, take longer than the deadline of its call. A driver that passes the
// call's context on gives the request up then.
func (c *driverCall) hang(ctx context.Context) error {
	p := c.p
	if c.ends.IsZero() || !p.Now().Before(c.ends) || !p.happens(p.hazards.Hang) {
		return nil
	}
	p.count(CallHung)
	c.pause(ctx, c.overdue.Sub(p.Now())+p.upTo(p.hazards.HangFor))
	switch {
	case p.dead:
		return errDead
	case ctx.Err() == nil:
		p.violate(RuleContext, "%s still runs %s after its context has ended, because a request of it has another context", c, p.Now().Sub(c.ends))
	}
	return ctx.Err()
}

// Transport is an http.RoundTripper for the HTTP client of a driver under test. Through it requests fail
// as often as Faults.Call and LostCall say, with an error of the connection or an answer of 429, 500 or
// 503; see World.Request. When the faults of the world stop, all requests are carried out and answered.
//
//	options.Driver = func(w *sim.World) driver.Driver {
//		return mine.New(&http.Client{Transport: &sim.Transport{World: w, Handler: fakeCloud}})
//	}
type Transport struct {
	// World is the one that the driver was made for.
	World *World
	// Handler is a provider in this process. It serves one request at a time.
	Handler http.Handler
	// Next makes the requests if there is no Handler. Nil: http.DefaultTransport.
	Next http.RoundTripper
}

// These are the errors of a failing connection.
var (
	errRefusedHTTP = errors.New("sim: the connection was refused")
	errBrokenHTTP  = errors.New("sim: the connection broke before the answer came")
)

// statusError stands for an answer with this HTTP status.
type statusError int

// Error implements error.
func (e statusError) Error() string { return fmt.Sprintf("%d %s", int(e), http.StatusText(int(e))) }

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(q *http.Request) (*http.Response, error) {
	var a *http.Response
	used := false
	w := t.World
	err := w.userDriverCalls.request(q.Context(), &request{
		what: q.Method + " " + q.URL.Path,
		carryOut: func() (err error) {
			used = true
			a, err = t.carryOut(q)
			return err
		},
		refusal: func() error {
			if !w.fails() {
				return nil
			}
			return [...]error{
				errRefusedHTTP, statusError(http.StatusServiceUnavailable), statusError(http.StatusInternalServerError), statusError(http.StatusTooManyRequests),
			}[w.chance(4)]
		},
		lost: func() error {
			return [...]error{errBrokenHTTP, statusError(http.StatusServiceUnavailable), statusError(http.StatusInternalServerError)}[w.chance(3)]
		},
	})
	if err == nil {
		return a, nil
	}
	if a != nil {
		_ = a.Body.Close()
	}
	if q.Body != nil && !used {
		_ = q.Body.Close()
	}
	var status statusError
	if errors.As(err, &status) {
		return &http.Response{
			Status: status.Error(), StatusCode: int(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: http.NoBody, Request: q,
		}, nil
	}
	return nil, err
}

// carryOut returns the provider's answer to a request.
func (t *Transport) carryOut(q *http.Request) (*http.Response, error) {
	switch {
	case t.Handler != nil:
	case t.Next != nil:
		return t.Next.RoundTrip(q)
	default:
		return http.DefaultTransport.RoundTrip(q)
	}
	served := q.Clone(context.WithoutCancel(q.Context()))
	served.RequestURI = q.URL.RequestURI()
	if served.Body == nil {
		served.Body = http.NoBody
	}
	defer func() { _ = served.Body.Close() }()
	if served.Host == "" {
		served.Host = strings.ToLower(q.URL.Host)
	}
	out := httptest.NewRecorder()
	t.Handler.ServeHTTP(out, served)
	a := out.Result()
	a.Request = q
	return a, nil
}
