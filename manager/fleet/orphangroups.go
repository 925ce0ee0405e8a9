package fleet

import (
	"context"
	"sync"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/store"
)

// orphanGroups are groups without a pool. One is left if a create takes effect when its
// pool is gone already, or if a user removes the finalizer from a pool.
type orphanGroups struct {
	*orphanPass
	mu    sync.Mutex
	pools map[groupOf]object.Key // that listed groups were made for
}

// groupOf is a group as a class lists it.
type groupOf struct {
	class object.Key
	id    string
}

func (*orphanGroups) names() quarryNames {
	return quarryNames{
		list: "ListGroups", read: "ReadPools", delete: "DeleteOrphanGroup", failed: reasonGroupNotDeleted,
		change: "call DeletePool for pool ",
	}
}

func (p *orphanGroups) list(ctx context.Context, class *machine.Class, secret *machine.Secret) (map[string]string, map[string]bool, error) {
	lister, ok := pooldriver.As[pooldriver.Lister](p.PoolDriver)
	if !ok {
		return nil, nil, nil
	}
	got, err := lister.ListPools(ctx, &pooldriver.ListPoolsRequest{Class: class.Clone(), Secret: secret})
	if err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, pool := range got.Groups {
		p.pools[groupOf{class.Key, id}] = pool
	}
	return withDropped(texts(got.Groups), texts(got.Dropped)), nil, nil
}

func texts(keys map[string]object.Key) map[string]string {
	all := make(map[string]string, len(keys))
	for id, key := range keys {
		all[id] = key.String()
	}
	return all
}

func (*orphanGroups) spared(context.Context) (map[string]bool, error) { return nil, nil }

// readOwners reads the pools. If there are none, the rest of the store says whether
// that may be so.
func (p *orphanGroups) readOwners(ctx context.Context, live bool) error {
	reader := store.Reader[*machinepool.Pool](p.Pools)
	if live {
		reader = p.Pools.Live()
	}
	pools, err := reader.List(ctx, store.Query{})
	others := 0
	if err == nil && len(pools) == 0 && live {
		others, err = p.others(ctx)
	}
	if err == nil {
		p.o.Pools, p.o.Owners = pools, others
	}
	return err
}

// others counts all machines, sets and deployments, live.
func (p *orphanGroups) others(ctx context.Context) (int, error) {
	machines, err := p.Machines.Live().List(ctx, store.Query{})
	if err != nil || len(machines) > 0 {
		return len(machines), err
	}
	return p.owners(ctx)
}

// still asks for all pools: one may have recorded the group under another name.
func (p *orphanGroups) still(ctx context.Context, order *orphan.Delete) (bool, error) {
	pools, err := p.Pools.Live().List(ctx, store.Query{})
	if err != nil {
		return false, err
	}
	for _, pool := range pools {
		if !order.StillOrphanGroup(pool) {
			return false, nil
		}
	}
	return true, nil
}

func (p *orphanGroups) about(order *orphan.Delete) object.Key {
	return p.pools[groupOf{order.Class, order.ProviderID}]
}

// delete deletes a group by its ID, as that of a pool made up for it.
func (p *orphanGroups) delete(ctx context.Context, order *orphan.Delete, class *machine.Class, secret *machine.Secret) error {
	pool := &machinepool.Pool{Meta: object.Meta{Key: p.about(order)}}
	pool.Status.GroupID, pool.Spec.Template.Class.Name = order.ProviderID, order.Class.Name
	_, err := p.PoolDriver.DeletePool(ctx, &pooldriver.DeletePoolRequest{Request: pooldriver.Request{Pool: pool, Class: class.Clone(), Secret: secret}})
	return err
}
