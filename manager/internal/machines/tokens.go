package machines

import (
	"context"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/answer"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/manager/port"
	"github.com/millwright-go/millwright/store"
)

// wantsToken reports whether the user data of a class has a place for a token.
func wantsToken(ctx context.Context, s *secrets.Secrets, c *machine.Class) (bool, error) {
	var userData []byte
	err := s.Each(ctx, c, func(secret *machine.Secret) {
		if data, has := secret.Data[machine.UserData]; has {
			userData = data
		}
	})
	return secrets.HasTokenPlaceholder(userData), err
}

// tokenUse returns whether the machine needs a token. It does not look at the user data of a
// machine that has joined and stays.
func (p *pass) tokenUse(ctx context.Context) (machine.TokenUse, error) {
	switch m := p.o.Machine; m.Status.Phase {
	case machine.PhaseNew, machine.PhasePending, machine.PhaseCrashLoopBackOff:
	default:
		if !m.Deleted() {
			return machine.TokenUnused, nil
		}
	}
	asks, err := wantsToken(ctx, &p.secrets, p.o.Class)
	switch {
	case !asks || err != nil:
		return machine.TokenUnused, err
	case p.Tokens == nil:
		return machine.TokenUnavailable, nil
	}
	return machine.TokenNeeded, nil
}

// callTokens carries out an effect on the machine's token.
func (p *pass) callTokens(ctx context.Context, e machine.Effect) (err error) {
	switch e := any(e).(type) { // of all effects, only these are about tokens
	case machine.EnsureToken:
		p.o.TokenEnsured, err = p.ensureToken(ctx, e.Until)
	case machine.RenewToken:
		p.o.TokenEnsured, err = p.renewToken(ctx, e.Until)
	case machine.RemoveToken:
		p.o.TokenRemoved, err = p.removeToken(ctx)
	}
	return err
}

func (p *pass) tokenOwner() port.TokenOwner {
	return port.TokenOwner{Key: p.Key, UID: p.o.Machine.UID}
}

// ensureToken makes sure of the machine's token and keeps it for the pass.
func (p *pass) ensureToken(ctx context.Context, until time.Time) (*machine.Outcome, error) {
	return p.tokenCall(ctx, func(limited context.Context) error {
		token, err := p.Tokens.Ensure(limited, p.tokenOwner(), until)
		if err == nil && token == "" {
			return codes.New(codes.Internal, "an empty token was made")
		}
		if err == nil {
			p.token = token
		}
		return err
	})
}

// renewToken extends the life of the machine's token, which exists, and keeps it for the pass.
func (p *pass) renewToken(ctx context.Context, until time.Time) (*machine.Outcome, error) {
	return p.tokenCall(ctx, func(limited context.Context) error {
		token, err := p.Tokens.Renew(limited, p.tokenOwner(), until)
		if err == nil && token == "" {
			return codes.New(codes.NotFound, "the machine has no bootstrap token")
		}
		if err == nil {
			p.token = token
		}
		return err
	})
}

func (p *pass) removeToken(ctx context.Context) (*machine.Outcome, error) {
	return p.tokenCall(ctx, func(limited context.Context) error { return p.Tokens.Delete(limited, p.tokenOwner()) })
}

// tokenCall makes a call to Tokens. When the pass's own context has ended, nothing
// is concluded from a failure.
func (p *pass) tokenCall(ctx context.Context, call func(context.Context) error) (*machine.Outcome, error) {
	limited, cancel := context.WithTimeout(ctx, p.CallTimeout)
	defer cancel()
	err := call(limited)
	if err := engine.Interrupted(ctx, err); err != nil {
		return nil, err
	}
	out := answer.Of(err)
	return &out, nil
}

// placeToken puts the pass's token into the user data, as it is and URL-encoded.
// Without a token, the placeholder stays. secret is the pass's own copy.
func (p *pass) placeToken(secret *machine.Secret) {
	if p.token != "" {
		secrets.PlaceToken(secret, string(p.token))
	}
}

// checkTokenPlaced returns a conflict if a create would pass a placeholder on, which the
// user data did not have yet when the pass looked.
func checkTokenPlaced(secret *machine.Secret) error {
	if secret == nil || !secrets.HasTokenPlaceholder(secret.Data[machine.UserData]) {
		return nil
	}
	return fmt.Errorf("the user data asks for a bootstrap token since a moment ago: %w", store.ErrConflict)
}

// confidential returns the context of the pass's calls of the driver: the token is taken out
// of their answers, which are stored.
func (p *pass) confidential(ctx context.Context) context.Context {
	return driver.WithConfidential(ctx, string(p.token), p.token.String())
}
