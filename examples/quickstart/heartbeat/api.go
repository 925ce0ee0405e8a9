package heartbeat

import (
	"context"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// api is the cluster's nodes as its clients reach them. While the cluster is down there are no live
// reads and no writes. Caches stay as they are.
type api struct {
	store.Collection[*machine.Node]
	c *Cluster
}

// errDown is the answer of a cluster that is down.
func (a api) errDown() error {
	if a.c.down.Load() {
		return codes.New(codes.Unavailable, "the cluster is down")
	}
	return nil
}

// Live implements store.Collection.
func (a api) Live() store.Reader[*machine.Node] { return live{a} }

// Create implements store.Collection.
func (a api) Create(ctx context.Context, n *machine.Node) (*machine.Node, error) {
	if err := a.errDown(); err != nil {
		return nil, err
	}
	return a.Collection.Create(ctx, n)
}

// Update implements store.Collection.
func (a api) Update(ctx context.Context, n *machine.Node) (*machine.Node, error) {
	if err := a.errDown(); err != nil {
		return nil, err
	}
	return a.Collection.Update(ctx, n)
}

// UpdateStatus implements store.Collection.
func (a api) UpdateStatus(ctx context.Context, n *machine.Node) (*machine.Node, error) {
	if err := a.errDown(); err != nil {
		return nil, err
	}
	return a.Collection.UpdateStatus(ctx, n)
}

// Delete implements store.Collection.
func (a api) Delete(ctx context.Context, k object.Key, uid string) error {
	if err := a.errDown(); err != nil {
		return err
	}
	return a.Collection.Delete(ctx, k, uid)
}

// live reads what the cluster itself says.
type live struct{ a api }

// Get implements store.Reader.
func (l live) Get(ctx context.Context, k object.Key) (*machine.Node, error) {
	if err := l.a.errDown(); err != nil {
		return nil, err
	}
	return l.a.Collection.Live().Get(ctx, k)
}

// List implements store.Reader.
func (l live) List(ctx context.Context, q store.Query) ([]*machine.Node, error) {
	if err := l.a.errDown(); err != nil {
		return nil, err
	}
	return l.a.Collection.Live().List(ctx, q)
}
