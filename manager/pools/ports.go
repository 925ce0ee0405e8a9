package pools

import (
	"context"
	"errors"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Bootstrap makes the bootstrap data of pools. Calls are made
// again after a crash; errors are tried again by the recovery table of package
// codes. Times are the manager's clock's: where another clock judges a token, as
// that of an API server, an implementation moves them by as much as the clocks
// differ, in Look and in Renew. Else no instance joins while the manager's clock
// is behind by more than a token lives.
type Bootstrap interface {
	// Look says how the data stand that the pool's template names. It is asked
	// in each pass, so it should answer from a cache.
	Look(ctx context.Context, p *machinepool.Pool) (machinepool.BootstrapAnswer, error)
	// Data are the data that machines boot from. The copy is the caller's.
	Data(ctx context.Context, p *machinepool.Pool) (*machine.Secret, error)
	// Renew has the token in the data live until then; one that has lapsed may be
	// replaced, data and all.
	Renew(ctx context.Context, p *machinepool.Pool, until time.Time) error
	// Delete deletes what Template.Bootstrap.Config names and what it made for this
	// pool: a call may come late, when there is another pool of that name. What is gone
	// already is no error.
	Delete(ctx context.Context, p *machinepool.Pool) error
}

// Tokens makes the bootstrap token that all machines of a pool share. Errors and contexts are as for
// the manager's Tokens, of which this is the part that pools need.
type Tokens interface {
	// Ensure returns the pool's token, which is valid until then at least.
	Ensure(ctx context.Context, p *machinepool.Pool, until time.Time) (string, error)
	// Known returns the pool's token, valid or not. Empty: it has none.
	Known(ctx context.Context, p *machinepool.Pool) (string, error)
	// Delete makes the pool's token invalid, if it has one.
	Delete(ctx context.Context, p *machinepool.Pool) error
}

// NodeKeeper is a Drainer that can undo its drains: one that was begun might have to be undone.
type NodeKeeper interface {
	// Keep takes a node into service again that was being drained, as far as the
	// drain took it out. It does not wait; done: nothing of the drain is left.
	Keep(ctx context.Context, node *machine.Node) (done bool, err error)
}

// FromSecrets returns the Bootstrap for data that users bring as secrets.
func FromSecrets(c store.Collection[*machine.Secret]) Bootstrap { return secretsOfPools{c} }

// secretsOfPools is Bootstrap for data that users bring as secrets.
type secretsOfPools struct {
	collection store.Collection[*machine.Secret]
}

func (s secretsOfPools) Look(ctx context.Context, p *machinepool.Pool) (machinepool.BootstrapAnswer, error) {
	data, err := s.Data(ctx, p)
	return machinepool.BootstrapAnswer{Ready: true, Found: data != nil}, err
}

func (s secretsOfPools) Data(ctx context.Context, p *machinepool.Pool) (*machine.Secret, error) {
	name := p.Spec.Template.Bootstrap.DataSecret
	if name == nil || *name == "" || s.collection == nil {
		return nil, nil //nolint:nilnil // there is nothing to boot from
	}
	secret, err := s.collection.Get(ctx, object.Key{Namespace: p.Namespace, Name: *name})
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // it is waited for
	}
	if err != nil {
		return nil, err
	}
	return secret.Clone(), nil
}

func (s secretsOfPools) Renew(context.Context, *machinepool.Pool, time.Time) error {
	return codes.New(codes.Unimplemented, "nobody renews bootstrap tokens here")
}

// Delete deletes nothing: nothing here makes what a config names.
func (s secretsOfPools) Delete(context.Context, *machinepool.Pool) error { return nil }
