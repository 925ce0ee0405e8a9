package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/object"
)

// service is one kind of calls to the simulated provider: about machines, or about groups.
type service interface {
	// arrived counts a call.
	arrived(s driver.CallInfo)
	// refusal is an error instead of the call; nil: it is carried out.
	refusal(s driver.CallInfo) error
	// provide carries a call out. late does so some time after its caller has died.
	provide(ctx context.Context, next func(context.Context) error) error
	late(ctx context.Context, s driver.CallInfo, next func(context.Context) error)
}

// These tell of calls to the provider.
type (
	// calling: a process has begun a call, which is on its way.
	calling struct{ call driver.CallInfo }
	// called: a process calls the driver. answered: the call has ended, with err or without.
	called struct {
		by   *process
		call driver.CallInfo
	}
	answered struct {
		by   *process
		call driver.CallInfo
		at   time.Time // from when on the time until the next attempt counts
		err  error
	}
)

// through returns what takes each call to a driver through what may happen to it.
func (p *process) through(to service) driver.Interceptor {
	return func(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
		if p.dead {
			return errDead // no caller is alive
		}
		defer p.only(s)()
		p.emit(calling{s})
		p.clock.Pause(p.hazards.CallTime/2 + p.upTo(p.hazards.CallTime/2))
		if p.dead {
			if p.happens(p.hazards.Late) {
				to.late(ctx, s, next)
			}
			return errDead
		}
		p.calls++
		p.steps++
		to.arrived(s)
		outcome := p.outcome()
		switch outcome {
		case killedLate:
			to.late(ctx, s, next)
			fallthrough
		case killedBefore:
			p.kill()
			return errDead
		}
		p.emit(called{p, s})
		if err := to.refusal(s); err != nil {
			p.emit(answered{p, s, p.Now(), err})
			return err
		}
		early := p.hang(0.5)
		if p.dead {
			if p.happens(p.hazards.Late) {
				to.late(ctx, s, next)
			}
			return errDead
		}
		err := to.provide(ctx, next)
		if outcome == killedAfter {
			p.kill()
			return errDead
		}
		if err == nil && p.happens(p.hazards.LostCall) {
			p.count(CallAnswerLost)
			err = codes.New(codes.DeadlineExceeded, "the answer was lost")
		}
		p.emit(answered{p, s, p.Now(), err})
		p.clock.Pause(p.latency())
		if !early {
			p.hang(1)
		}
		if p.dead {
			return errDead
		}
		return err
	}
}

// only notes a call that has begun, and returns what notes its end.
//
// P52: one call about an object is under way at a time.
func (p *process) only(s driver.CallInfo) (ended func()) {
	if s.Object == (object.Key{}) {
		return func() {}
	}
	about := callee{s.Kind, s.Object}
	if before, busy := p.under[about]; busy {
		p.violate("P52", "%s is called for %s %s while %s is under way", s.Method, s.Kind, s.Object, before)
	}
	p.under[about] = s.Method
	return func() { delete(p.under, about) }
}

// hang makes a call take longer than its caller waits for it, by chance, and reports whether it did.
func (p *process) hang(share float64) bool {
	if !p.happens(p.hazards.Hang * share) {
		return false
	}
	p.count(CallHung)
	p.clock.Pause(p.patience + p.upTo(p.hazards.HangFor))
	return true
}

// await is manager.Runtime.Await. Without calls that hang, each is part of its pass. A user's driver may
// take any time.
func (p *process) await(_ context.Context, limit, grace time.Duration, do func()) bool {
	p.limit, p.patience = max(limit, 0), limit+grace
	if p.hazards.Hang <= 0 && (!p.own || limit <= 0) {
		do()
		return true
	}
	return p.clock.Await(p.patience, do)
}

// commonCodes are those that a healthy provider may answer now and then.
var commonCodes = []codes.Code{
	codes.Canceled, codes.Unknown, codes.DeadlineExceeded, codes.Aborted, codes.Internal, codes.Unavailable,
	codes.ResourceExhausted, codes.PermissionDenied, codes.Unauthenticated,
}

// AllCodes returns every code but OK.
func AllCodes() (all []codes.Code) {
	for code := codes.Canceled; code <= codes.Uninitialized; code++ {
		all = append(all, code)
	}
	return all
}

// refused returns the code with which a call is refused; OK: it is not. lie reports whether a code
// would be a false answer with consequences: the manager believes that something is gone.
func (g *ground) refused(lie func(codes.Code) bool) codes.Code {
	if !g.happens(g.hazards.Call) {
		return codes.OK
	}
	g.count(CallFailed)
	all := g.hazards.Codes
	if all == nil {
		all = commonCodes
	}
	code := all[g.chance(len(all))]
	if lie(code) {
		return codes.Unavailable
	}
	return code
}
