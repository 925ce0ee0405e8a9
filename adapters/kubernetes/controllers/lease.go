package controllers

import (
	"context"
	"log/slog"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// LeaseFinalizer is on a manager's leader election lease while objects of its fleet in the lease's
// namespace need a manager. It keeps the lease when the namespace is deleted: without its lease the
// manager would end before the fleet is gone, and a namespace that is being deleted accepts no new
// lease.
const LeaseFinalizer = "millwright-go/fleet"

const (
	leaseCheckPeriod  = 2 * time.Second
	leaseCheckTimeout = 10 * time.Second
)

// leaseKeeper keeps LeaseFinalizer on the manager's lease while the fleet needs a manager.
type leaseKeeper struct {
	lease  Lease
	client coordinationclient.CoordinationV1Interface
	stores *stores
	log    *slog.Logger
	logged string // the last error, so that it is logged once
}

// keepsLease reports whether there is a lease to keep: one in a namespace of the fleet, which may be
// deleted with it. A dry run keeps none.
func (o *Options) keepsLease() bool {
	return !o.DryRun && o.Lease.Name != "" && o.Lease.Namespace != "" && (o.Namespace == "" || o.Namespace == o.Lease.Namespace)
}

// run checks the lease periodically until ctx ends. It then leaves the finalizer, because the next
// manager needs the lease.
func (k *leaseKeeper) run(ctx context.Context) {
	for ; ctx.Err() == nil; wait(ctx, leaseCheckPeriod) {
		if !k.stores.synced() {
			continue
		}
		limited, done := context.WithTimeout(ctx, leaseCheckTimeout)
		err := k.check(limited)
		done()
		switch {
		case err == nil:
			k.logged = ""
		case ctx.Err() == nil && err.Error() != k.logged:
			k.logged = err.Error()
			k.log.Warn("the lease has no finalizer: it may be deleted before the fleet", slog.String("error", k.logged))
		}
	}
}

// check adds the finalizer to the lease if it is needed, and removes it if not. Leader election writes
// the lease, too: after a conflict, the next check tries again.
func (k *leaseKeeper) check(ctx context.Context) error {
	leases := k.client.Leases(k.lease.Namespace)
	stored, err := leases.Get(ctx, k.lease.Name, metav1.GetOptions{})
	if err != nil {
		return ignoreTransient(err)
	}
	needed, err := k.needed(ctx, false)
	has := slices.Contains(stored.Finalizers, LeaseFinalizer)
	if err != nil || has == needed || needed && stored.DeletionTimestamp != nil { // the server adds no finalizer then
		return err
	}
	if needed {
		stored.Finalizers = append(stored.Finalizers, LeaseFinalizer)
	} else {
		if needed, err := k.needed(ctx, true); needed || err != nil {
			return err
		}
		stored.Finalizers = slices.DeleteFunc(stored.Finalizers, func(f string) bool { return f == LeaseFinalizer })
	}
	_, err = leases.Update(ctx, stored, metav1.UpdateOptions{})
	return ignoreTransient(err)
}

// ignoreTransient returns nil for the errors that the next check corrects.
func ignoreTransient(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// needed reports whether an object of the fleet needs a manager to be deleted. It reads the server
// if live is true, else the caches. Classes come first: there are few, and a class that is in use
// has a finalizer.
func (k *leaseKeeper) needed(ctx context.Context, live bool) (bool, error) {
	s, in := k.stores, k.lease.Namespace
	kinds := []func() (bool, error){
		func() (bool, error) { return anyFinalizer(ctx, s.classes, live, in) },
		func() (bool, error) { return anyFinalizer(ctx, s.deployments, live, in) },
		func() (bool, error) { return anyFinalizer(ctx, s.sets, live, in) },
		func() (bool, error) { return anyFinalizer(ctx, s.machines, live, in) },
		func() (bool, error) { return anyFinalizer(ctx, s.secrets, live, in) },
	}
	if s.pools != nil {
		kinds = append(kinds, func() (bool, error) { return anyFinalizer(ctx, s.pools, live, in) })
	}
	for _, ofKind := range kinds {
		if needed, err := ofKind(); needed || err != nil {
			return needed, err
		}
	}
	return false, nil
}

// anyFinalizer reports whether an object of a namespace has a finalizer of this library.
func anyFinalizer[T object.Object[T]](ctx context.Context, c store.Collection[T], live bool, namespace string) (bool, error) {
	from := store.Reader[T](c)
	if live {
		from = c.Live()
	}
	all, err := from.List(ctx, store.Query{})
	return slices.ContainsFunc(all, func(o T) bool {
		m := o.ObjectMeta()
		return m.Namespace == namespace && (m.HasFinalizer(machine.Finalizer) || m.HasFinalizer(machine.SecretFinalizer))
	}), err
}
