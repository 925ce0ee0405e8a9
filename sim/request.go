package sim

import (
	"context"
	"errors"
)

// These are the errors of World.Request when the provider fails.
var (
	// ErrRefused: the request was not carried out.
	ErrRefused = errors.New("sim: the provider does not answer")
	// ErrAnswerLost: it was carried out.
	ErrAnswerLost = errors.New("sim: the provider's answer was lost")
)

// request is one request of a driver to its provider.
type request struct {
	what     string
	carryOut func() error
	refusal  func() error // an error instead; nil: it is carried out
	lost     func() error // what the driver gets in place of the answer
	late     func()       // carries it out some time after the driver has died; nil: it never is
}

// request makes a request. Outside of a call of the driver it is carried out at once.
func (d *ownCalls) request(ctx context.Context, r *request) error {
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

// request takes a request through everything that may happen to it.
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

// answer takes the answer of a request to the driver.
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

// hang makes a request take longer than the call may, by chance. A driver that keeps to the call's
// context gives it up then.
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
		p.violate(RuleContext, "%s goes on %s after its context has ended, because a request of it has another context", c, p.Now().Sub(c.ends))
	}
	return ctx.Err()
}
