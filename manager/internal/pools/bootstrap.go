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

// heldToken is what this process knows of the token of a pool by its UID. To lose it costs a call.
type heldToken struct {
	uid, token string    // an empty token: the pool has none
	until      time.Time // it is valid at least until then; zero: not known
}

// lapsed is when a token expired of which this process does not know when it does.
var lapsed = time.Unix(0, 0).UTC()

func (p *pass) held() (heldToken, bool) {
	have, ok := p.tokens.Load(p.Key)
	if !ok || have.(heldToken).uid != p.o.Pool.UID {
		return heldToken{}, false
	}
	return have.(heldToken), true
}

// lookAtBootstrap says how the data stand that machines boot from.
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

// readTokenState says how the token stands that bootstrap data ask for: data whose own maker says when
// their token expires ask for none.
func (p *pass) readTokenState(ctx context.Context, a *machinepool.BootstrapAnswer) error {
	if !a.Found || !a.TokenExpires.IsZero() {
		return nil
	}
	data, err := p.Bootstrap.Data(ctx, p.o.Pool)
	if err != nil || data == nil || !secrets.HasTokenPlaceholder(data.Data[machine.UserData]) {
		return err
	}
	a.OwnToken, a.TokenExpires = true, lapsed
	if have, ok := p.held(); ok && !have.until.IsZero() {
		a.TokenExpires = have.until
	}
	return nil
}

// lookAtLastToken says whether a pool that is being deleted may have a token. It may if its data can't
// be read any more: they often go with it.
func (p *pass) lookAtLastToken(ctx context.Context) {
	if p.Tokens == nil {
		return
	}
	data, err := p.Bootstrap.Data(ctx, p.o.Pool)
	p.unsure = err != nil || data == nil
	ownToken := p.unsure || secrets.HasTokenPlaceholder(data.Data[machine.UserData])
	p.o.Bootstrap = &machinepool.BootstrapAnswer{OwnToken: ownToken}
}

// renewToken makes or renews the token that bootstrap data ask for, or has their own maker renew theirs.
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
			p.tokens.Store(p.Key, heldToken{p.o.Pool.UID, string(token), until})
		}
		return err
	})
	if p.o.Renewed, err = p.bootstrap(ctx, err); err != nil || p.o.Renewed.Code != codes.OK {
		return err
	}
	return p.lookAtBootstrap(ctx)
}

// removeToken deletes the pool's token. Who may not delete tokens has made none: where it is not known
// whether the pool has one, that is no failure.
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
	if have, ok := p.held(); ok {
		return have.token, nil
	}
	var token string
	err := p.tokenCall(ctx, func(limited context.Context) error {
		known, err := p.Tokens.Renew(limited, p.owner(), time.Time{}) // only asks
		token = string(known)
		return err
	})
	if err == nil {
		p.tokens.Store(p.Key, heldToken{uid: p.o.Pool.UID, token: token})
	}
	return token, err
}

// data is what machines boot from, with the pool's token in its place.
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

// call is the context of a call about the pool: the driver may repeat what machines boot
// from in any of them, also where the request does not hold it. Data that can't be read
// hold up no call.
func (p *pass) call(ctx context.Context) context.Context {
	if name := p.o.Pool.Spec.Template.Bootstrap.DataSecret; name == nil || *name == "" {
		return ctx
	}
	data, err := p.data(ctx)
	if err != nil { // then at least what holds no token yet
		if data, err = p.Bootstrap.Data(ctx, p.o.Pool); err != nil {
			return ctx
		}
	}
	if have, ok := p.held(); ok {
		ctx = driver.WithConfidential(ctx, have.token, "a token")
	}
	return driver.WithConfidentialSecret(ctx, data)
}

// bootstrap returns the answer of what makes bootstrap data and tokens.
func (p *pass) bootstrap(ctx context.Context, err error) (*machine.Outcome, error) {
	if err := engine.Interrupted(ctx, err); err != nil {
		return nil, err
	}
	outcome := answer.Of(err)
	return &outcome, nil
}
