package machines

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/millwright-go/millwright/object"
)

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
