// Package port declares what a program may give to a manager besides stores, drivers and a cluster: what
// drains nodes, makes bootstrap tokens and data, and reads classes of older kinds. Package manager
// has all of these names too, so that a program needs only that.
package port

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// Drainer empties nodes before their VMs are deleted or updated in place. It is
// optional: without one, deletions and updates do not wait for pods and volumes.
//
// A call does what can be done now and answers; it does not wait for pods.
// While the answer is not Done, the machine asks again at the answer's At, when
// its node changes, and when its time is up. Both calls are made again after a
// crash, so what must survive is the implementation's to record on the node.
//
// After an error, the drain counts as failed and is tried again by the recovery table of package codes.
// After store.ErrConflict the pass begins again.
type Drainer interface {
	// Drain empties order.Node, which is m's.
	Drain(ctx context.Context, m *machine.Machine, order *machine.DrainNode) (machine.DrainAnswer, error)
	// Detach detaches the volumes that are still attached to order.Node after a drain by force.
	Detach(ctx context.Context, m *machine.Machine, order *machine.DetachVolumes) (machine.DrainAnswer, error)
}

// NodeKeeper is a Drainer that can undo its drains.
type NodeKeeper interface {
	// Keep takes a node into service again that was being drained, as far as the
	// drain took it out. It does not wait. done says that the drain is undone completely.
	Keep(ctx context.Context, node *machine.Node) (done bool, err error)
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
	// the same again, with more time if it needs it. The secret part of a new token
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

// PoolBootstrap makes the bootstrap data of pools. Calls are repeated after a crash, and after errors by
// the recovery table of package codes.
//
// Times are those of the manager's clock. If another clock decides whether a token is valid, such as that
// of an API server, State and Renew must convert them. Otherwise no instance joins while the manager's
// clock is behind by more than the lifetime of a token.
type PoolBootstrap interface {
	// State returns the state of the data that the template of the pool names. It is called
	// in each pass, so it should answer from a cache.
	State(ctx context.Context, p *machinepool.Pool) (machinepool.BootstrapAnswer, error)
	// Data are the data that machines boot from. The copy is the caller's.
	Data(ctx context.Context, p *machinepool.Pool) (*machine.Secret, error)
	// Renew extends the lifetime of the token in the data. A token that has expired may be replaced,
	// with new data.
	Renew(ctx context.Context, p *machinepool.Pool, until time.Time) error
	// Delete deletes what Template.Bootstrap.Config names, and what that made, for this pool only: a
	// call may come late, when there is another pool of the same name. If they are gone already, that
	// is no error.
	Delete(ctx context.Context, p *machinepool.Pool) error
}

// ForeignClasses holds classes of the provider's own, older kinds. They are
// read, and marked once ours have taken their place, never deleted.
type ForeignClasses interface {
	// Get reads a class, live. It answers store.ErrNotFound if there is none of
	// that kind and name, even if the kind itself is not known.
	Get(ctx context.Context, kind machine.ClassRef, key object.Key) (*ForeignClass, error)
	// MarkMigrated marks a class for good, so that Get answers Migrated from then
	// on, in every process. It answers store.ErrConflict if the class has
	// another version now. Marking a class twice is no error.
	MarkMigrated(ctx context.Context, kind machine.ClassRef, key object.Key, version string) error
}

// ForeignClass is a class of an older kind.
type ForeignClass struct {
	// Object is handed to the driver: of the Go type that it documents.
	Object any
	// Version is opaque and changes with the class.
	Version  string
	Migrated bool
}

// Span is a part of a machine's life. A hook gets its length.
type Span string

// The spans. If the beginning of a span is not known, such as after a restart, the time of the last
// recorded step before it counts.
const (
	SpanCreation       Span = "creation"       // from the machine's creation until its VM is recorded
	SpanInitialization Span = "initialization" // from then until the VM is initialized, if the driver does that
	SpanJoin           Span = "join"           // from then until its node is healthy for the first time
	SpanDrain          Span = "drain"          // from when nothing holds its drain back until its node is drained, or drained by force
	SpanDeletion       Span = "deletion"       // from the request to delete it until VM, node and record are gone
)
