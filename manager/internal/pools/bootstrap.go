package pools

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/answer"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/manager/port"
)

// knownToken is what this process knows of the token of a pool by its UID. Losing it costs a call.
type knownToken struct {
	uid, token string    // an empty token: the pool has none
	until      time.Time // the token is valid at least until then; zero: not known
}

// longExpired stands for an expiry that this process does not know, so that the token is renewed.
var longExpired = time.Unix(0, 0).UTC()

func (p *pass) knownToken() (knownToken, bool) {
	have, ok := p.tokens.Load(p.Key)
	if !ok || have.(knownToken).uid != p.o.Pool.UID {
		return knownToken{}, false
	}
	return have.(knownToken), true
}

// lookAtBootstrap observes the state of the data that machines boot from.
func (p *pass) lookAtBootstrap(ctx context.Context) error {
	if name := p.o.Pool.Spec.Template.Bootstrap.DataSecret; name == nil || *name == "" {
		return nil
	}
	if p.o.Pool.Deleted() {
		p.lookAtLastToken(ctx)
		return nil
	}
	answer, err := p.Bootstrap.State(ctx, p.o.Pool)
	if err == nil {
		err = p.readTokenState(ctx, &answer)
	}
	if err == nil {
		p.o.Bootstrap = &answer
	}
	return err
}

// readTokenState observes the token that bootstrap data ask for. Data whose own maker says when
// their token expires ask for none.
func (p *pass) readTokenState(ctx context.Context, a *machinepool.BootstrapAnswer) error {
	if !a.Found || !a.TokenExpires.IsZero() {
		return nil
	}
	data, err := p.Bootstrap.Data(ctx, p.o.Pool)
	if err != nil || data == nil || !secrets.HasTokenPlaceholder(data.Data[machine.UserData]) {
		return err
	}
	a.OwnToken, a.TokenExpires = true, longExpired
	if have, ok := p.knownToken(); ok && !have.until.IsZero() {
		a.TokenExpires = have.until
	}
	return nil
}

// lookAtLastToken observes whether a pool that is being deleted may have a token. It may if its data can't
// be read any more: they are often deleted with the pool.
func (p *pass) lookAtLastToken(ctx context.Context) {
	if p.Tokens == nil {
		return
	}
	data, err := p.Bootstrap.Data(ctx, p.o.Pool)
	p.unsure = err != nil || data == nil
	ownToken := p.unsure || secrets.HasTokenPlaceholder(data.Data[machine.UserData])
	p.o.Bootstrap = &machinepool.BootstrapAnswer{OwnToken: ownToken}
}

// renewToken makes or renews the token that bootstrap data ask for. If they ask for none, their own maker
// renews its token.
func (p *pass) renewToken(ctx context.Context, until time.Time) error {
	own := p.o.Bootstrap != nil && p.o.Bootstrap.OwnToken
	err := p.tokenCall(ctx, func(limited context.Context) error {
		switch {
		case !own:
			return p.Bootstrap.Renew(ctx, p.o.Pool, until)
		case p.Tokens == nil:
			return codes.New(codes.Unimplemented, "the user data ask for a bootstrap token, and the manager has no maker of tokens")
		}
		token, err := p.Tokens.Ensure(limited, p.owner(), until)
		if err == nil && token == "" {
			return codes.New(codes.Internal, "an empty token was made")
		}
		if err == nil {
			p.tokens.Store(p.Key, knownToken{p.o.Pool.UID, string(token), until})
		}
		return err
	})
	if p.o.Renewed, err = p.bootstrap(ctx, err); err != nil || p.o.Renewed.Code != codes.OK {
		return err
	}
	return p.lookAtBootstrap(ctx)
}

// removeToken deletes the pool's token. If it is not known whether the pool has a token, a denied permission
// is no failure: a manager that may not delete tokens has made none.
func (p *pass) removeToken(ctx context.Context) error {
	err := p.tokenCall(ctx, func(limited context.Context) error { return p.Tokens.Delete(limited, p.owner()) })
	if p.unsure && codes.Of(err) == codes.PermissionDenied {
		err = nil
	}
	p.tokens.Delete(p.Key)
	p.o.TokenRemoved, err = p.bootstrap(ctx, err)
	return err
}

func (p *pass) tokenCall(ctx context.Context, call func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, p.CallTimeout)
	defer cancel()
	return call(limited)
}

func (p *pass) owner() port.TokenOwner {
	return port.TokenOwner{Key: p.Key, UID: p.o.Pool.UID, Pool: true}
}

// token returns the token of the pool. Empty: it has none.
func (p *pass) token(ctx context.Context) (string, error) {
	if have, ok := p.knownToken(); ok {
		return have.token, nil
	}
	var token string
	err := p.tokenCall(ctx, func(limited context.Context) error {
		known, err := p.Tokens.Renew(limited, p.owner(), time.Time{}) // only asks
		token = string(known)
		return err
	})
	if err == nil {
		p.tokens.Store(p.Key, knownToken{uid: p.o.Pool.UID, token: token})
	}
	return token, err
}

// data returns what machines boot from, with the pool's token filled in.
func (p *pass) data(ctx context.Context) (*machine.Secret, error) {
	data, err := p.Bootstrap.Data(ctx, p.o.Pool)
	if err != nil || data == nil || p.Tokens == nil || !secrets.HasTokenPlaceholder(data.Data[machine.UserData]) {
		return data, err
	}
	token, err := p.token(ctx)
	if err == nil && token == "" {
		err = codes.New(codes.Aborted, "the user data ask for a bootstrap token since a moment ago")
	}
	if err != nil {
		return nil, err
	}
	secrets.PlaceToken(data, token)
	return data, nil
}

// callContext returns the context of a call about the pool. It makes the bootstrap data
// confidential in every call, because the driver may repeat them in any answer. A call is
// made even if the data can't be read.
func (p *pass) callContext(ctx context.Context) context.Context {
	if name := p.o.Pool.Spec.Template.Bootstrap.DataSecret; name == nil || *name == "" {
		return ctx
	}
	data, err := p.data(ctx)
	if err != nil { // then at least the data without the token
		if data, err = p.Bootstrap.Data(ctx, p.o.Pool); err != nil {
			return ctx
		}
	}
	if have, ok := p.knownToken(); ok {
		ctx = driver.WithConfidential(ctx, have.token, "a token")
	}
	return driver.WithConfidentialSecret(ctx, data)
}

// bootstrap returns the answer of the maker of bootstrap data or tokens.
func (p *pass) bootstrap(ctx context.Context, err error) (*machine.Outcome, error) {
	if err := engine.Interrupted(ctx, err); err != nil {
		return nil, err
	}
	outcome := answer.Of(err)
	return &outcome, nil
}
