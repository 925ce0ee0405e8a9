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

// LeaseFinalizer is on the lease by which a manager is elected, while objects of its fleet in the
// same namespace wait for a manager. The namespace may be deleted with all that is in it: without
// its lease the manager would end before the fleet is gone, and a namespace that is being deleted
// takes no new lease.
const LeaseFinalizer = "millwright-go/fleet"

const (
	leasePeriod = 2 * time.Second // between two looks
	leaseTime   = 10 * time.Second
)

// keeper keeps the lease of a manager while its fleet needs it.
type keeper struct {
	lease  Lease
	client coordinationclient.CoordinationV1Interface
	stores *stores
	log    *slog.Logger
	told   string // the last error
}

// keepsLease reports whether the lease can go with objects of the fleet.
func (o *Options) keepsLease() bool {
	return !o.DryRun && o.Lease.Name != "" && o.Lease.Namespace != "" && (o.Namespace == "" || o.Namespace == o.Lease.Namespace)
}

// run looks until its context ends. It leaves the lease as it is then: another manager needs it.
func (k *keeper) run(ctx context.Context) {
	for ; ctx.Err() == nil; wait(ctx, leasePeriod) {
		if !k.stores.synced() {
			continue
		}
		limited, done := context.WithTimeout(ctx, leaseTime)
		err := k.look(limited)
		done()
		switch {
		case err == nil:
			k.told = ""
		case ctx.Err() == nil && err.Error() != k.told:
			k.told = err.Error()
			k.log.Warn("the lease is not kept for the fleet: it may go with its namespace", slog.String("error", k.told))
		}
	}
}

// look puts the finalizer on the lease, or removes it. Leader election writes the lease too, so a
// conflict is left to the next look.
func (k *keeper) look(ctx context.Context) error {
	leases := k.client.Leases(k.lease.Namespace)
	stored, err := leases.Get(ctx, k.lease.Name, metav1.GetOptions{})
	if err != nil {
		return ignored(err)
	}
	needed, err := k.needed(ctx, false)
	has := slices.Contains(stored.Finalizers, LeaseFinalizer)
	if err != nil || has == needed || needed && stored.DeletionTimestamp != nil { // a finalizer can't be added any more
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
	return ignored(err)
}

// ignored drops the errors that the next look corrects.
func ignored(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// needed reports whether an object of the fleet needs a manager to be deleted. Classes come first:
// there are few, and one that is in use has the finalizer.
func (k *keeper) needed(ctx context.Context, live bool) (bool, error) {
	s, in := k.stores, k.lease.Namespace
	kinds := []func() (bool, error){
		func() (bool, error) { return waits(ctx, s.classes, live, in) },
		func() (bool, error) { return waits(ctx, s.deployments, live, in) },
		func() (bool, error) { return waits(ctx, s.sets, live, in) },
		func() (bool, error) { return waits(ctx, s.machines, live, in) },
		func() (bool, error) { return waits(ctx, s.secrets, live, in) },
	}
	if s.pools != nil {
		kinds = append(kinds, func() (bool, error) { return waits(ctx, s.pools, live, in) })
	}
	for _, of := range kinds {
		if needed, err := of(); needed || err != nil {
			return needed, err
		}
	}
	return false, nil
}

// waits reports whether an object of a namespace has a finalizer of ours.
func waits[T object.Object[T]](ctx context.Context, c store.Collection[T], live bool, namespace string) (bool, error) {
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
