package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// probe asks each collection for each index that is needed, so that a missing
// one is an error at the start and not a change that wakes nothing.
func (o *Options) probe(ctx context.Context) error {
	err := probeAll(ctx, o.Store.Machines, "Store.Machines", IndexOwner, IndexClass, IndexNode, IndexVM)
	if o.Store.Secrets != nil {
		err = errors.Join(err, probeAll(ctx, o.Store.Classes, "Store.Classes", IndexSecret))
	}
	if o.Store.Sets != nil {
		err = errors.Join(err, probeAll(ctx, o.Store.Sets, "Store.Sets", IndexOwner, IndexNamespace))
	}
	if o.Store.Deployments != nil {
		err = errors.Join(err, probeAll(ctx, o.Store.Deployments, "Store.Deployments", IndexNamespace))
	}
	if o.Cluster != nil {
		err = errors.Join(err, probeAll(ctx, o.Cluster.Nodes(), "Cluster.Nodes", IndexMachine))
	}
	return errors.Join(err, o.probePools(ctx), o.probeClasses(ctx))
}

// probePools asks for the indexes that pools are reconciled by.
func (o *Options) probePools(ctx context.Context) error {
	if !o.managesPools() {
		return nil
	}
	err := probeAll(ctx, o.Store.Pools, "Store.Pools", IndexClass, IndexVM)
	if o.Cluster != nil {
		err = errors.Join(err, probeAll(ctx, o.Cluster.Nodes(), "Cluster.Nodes", IndexVM))
	}
	return err
}

// probeClasses asks for the indexes that classes are kept and migrated by.
func (o *Options) probeClasses(ctx context.Context) error {
	if !o.managesClasses() {
		return nil
	}
	if o.Store.Sets != nil {
		if err := probeAll(ctx, o.Store.Sets, "Store.Sets", IndexClass); err != nil {
			return err
		}
	}
	if o.Store.Deployments != nil {
		return probeAll(ctx, o.Store.Deployments, "Store.Deployments", IndexClass)
	}
	return nil
}

func probeAll[T object.Object[T]](ctx context.Context, c store.Collection[T], collection string, indexes ...store.Index) error {
	for _, name := range indexes {
		if _, err := c.List(ctx, store.Query{Index: name, Value: "-"}); err != nil {
			return fmt.Errorf("%w: %s, index %s: %w", ErrOptions, collection, name, err)
		}
	}
	return nil
}
