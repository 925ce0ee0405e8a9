package machines

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/answer"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// askForToken reports whether the user data of a class has a place for a token.
func askForToken(ctx context.Context, s *secrets.Secrets, c *machine.Class) (bool, error) {
	var userData []byte
	err := s.Each(ctx, c, func(secret *machine.Secret) {
		if data, has := secret.Data[machine.UserData]; has {
			userData = data
		}
	})
	return secrets.AskForToken(userData), err
}

// tokenUse says whether the machine needs a token. User data is not looked at for one
// that has joined and stays.
func (p *pass) tokenUse(ctx context.Context) (machine.TokenUse, error) {
	switch m := p.o.Machine; m.Status.Phase {
	case machine.PhaseNew, machine.PhasePending, machine.PhaseCrashLoopBackOff:
	default:
		if !m.Deleted() {
			return machine.TokenUnused, nil
		}
	}
	asks, err := askForToken(ctx, &p.secrets, p.o.Class)
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

func (p *pass) tokenOwner() TokenOwner {
	return TokenOwner{Key: p.Key, UID: p.o.Machine.UID}
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

// renewToken is ensureToken for a token that exists.
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
// Where none was asked for, the placeholder stays. secret is the pass's own copy.
func (p *pass) placeToken(secret *machine.Secret) {
	if p.token != "" {
		secrets.PlaceToken(secret, string(p.token))
	}
}

// unplaced begins the pass again where a create would hand out a placeholder: the
// user data did not have it yet when the pass looked.
func unplaced(secret *machine.Secret) error {
	if secret == nil || !secrets.AskForToken(secret.Data[machine.UserData]) {
		return nil
	}
	return fmt.Errorf("the user data asks for a bootstrap token since a moment ago: %w", store.ErrConflict)
}

// hushed is the context of the pass's calls of the driver: the token is taken out
// of what they answer, which is stored.
func (p *pass) hushed(ctx context.Context) context.Context {
	return driver.WithConfidential(ctx, string(p.token), p.token.String())
}

// Tokens makes the bootstrap tokens with which nodes join the cluster, one for
// each machine whose user data asks for it, and one for all machines of a pool.
// Its methods may be called at the same time, also for the same owner by a
// process that is about to end and the one that comes after it.
//
// An error's code, as codes.Of reads it, says when the call is made again: as
// after a failed create. Its text is stored in the owner's status: no error
// holds any part of a token that is secret.
type Tokens interface {
	// Ensure returns the token of an owner, which is valid until then (whole
	// seconds) at least. There is one at a time: an owner that has one is given
	// the same again, with more time if it needs it. What is secret of a new one
	// is random.
	//
	// A pool is given the same token until Delete, also after the token's time was
	// up and the cluster has removed it: the group's user data hold it.
	Ensure(ctx context.Context, of TokenOwner, until time.Time) (Token, error)
	// Renew is Ensure for an owner that has a token: it makes none. Where there is
	// none, it returns an empty token and no error. A zero time only asks which
	// token that is, valid or not.
	Renew(ctx context.Context, of TokenOwner, until time.Time) (Token, error)
	// Delete makes the owner's token invalid, if it has one.
	Delete(ctx context.Context, of TokenOwner) error
}

// TokenOwner is the machine or the pool that a token is for.
type TokenOwner struct {
	Key object.Key
	// UID tells owners apart that have the same name, one after the other. It is
	// what a token is found by, after a crash as well. It may be empty where
	// the store gives none: then the key is all there is.
	UID string
	// Pool: it is a pool, and a machine otherwise.
	Pool bool
}

// String names the owner with its kind.
func (o TokenOwner) String() string {
	if o.Pool {
		return "pool " + o.Key.String()
	}
	return "machine " + o.Key.String()
}

// Token is what a node shows to join. No way of printing it shows it; what puts
// it into user data converts it to a string.
type Token string

// String says that it is a token and shows nothing of it.
func (t Token) String() string {
	if t == "" {
		return "no token"
	}
	return "a token"
}

// Format writes what String returns, for any verb.
func (t Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue implements slog.LogValuer.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText writes what String returns.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
