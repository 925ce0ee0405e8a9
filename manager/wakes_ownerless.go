package manager

import (
	"context"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// ownerlessWakes have owners looked for when something is seen first whose owner
// the cache does not know.
func (o *Options) ownerlessWakes() []Wake {
	if o.Store.Sets == nil {
		return nil
	}
	wakes := []Wake{{From: KindMachine, To: KindOwnerless, Settle: o.Tuning.Settle, Keys: func(ctx context.Context, old, new any) []object.Key {
		a, b := both[*machine.Machine](old, new)
		if a != nil || b == nil {
			return nil
		}
		return strayed(ctx, &b.Meta, machineset.OwnerKind, o.Store.Sets)
	}}}
	if o.Store.Deployments == nil {
		return wakes
	}
	return append(wakes, Wake{From: KindSet, To: KindOwnerless, Settle: o.Tuning.Settle, Keys: func(ctx context.Context, old, new any) []object.Key {
		a, b := both[*machineset.Set](old, new)
		if a != nil || b == nil {
			return nil
		}
		return strayed(ctx, &b.Meta, deployment.OwnerKind, o.Store.Deployments)
	}})
}

// strayed is the fleet's key if the cache does not know an object's owner.
func strayed[O object.Object[O]](ctx context.Context, m *object.Meta, kind string, owners store.Reader[O]) []object.Key {
	if m.Owner == nil || m.Owner.Kind != kind {
		return nil
	}
	owner, err := index.MetaOf(owners.Get(ctx, object.Key{Namespace: m.Namespace, Name: m.Owner.Name}))
	if err == nil && owner != nil && owner.UID == m.Owner.UID {
		return nil
	}
	return []object.Key{Fleet}
}
