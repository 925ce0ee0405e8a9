package sim

import (
	"context"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
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
	// called: a process calls the driver. answered: the call has ended, with err or without.
	called struct {
		by   *process
		call driver.CallInfo
	}
	answered struct {
		by   *process
		call driver.CallInfo
		err  error
	}
)

// through returns what takes each call to a driver through what may happen to it.
func (p *process) through(to service) driver.Interceptor {
	return func(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
		if p.dead {
			return errDead // no caller is alive
		}
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
			p.emit(answered{p, s, err})
			return err
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
		p.emit(answered{p, s, err})
		p.clock.Pause(p.latency())
		if p.dead {
			return errDead
		}
		return err
	}
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
