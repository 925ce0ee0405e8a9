package controllers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
)

// holdLease acquires a lease and renews it until stop is called. It never releases the lease, so that
// stop is like the kill of a manager.
func (w *world) holdLease(lease controllers.Lease, holder string) (stop func()) {
	w.Helper()
	leases := w.core.CoordinationV1().Leases(lease.Namespace)
	term := int32(8) // longer than a renewal may be delayed on a busy test machine
	renew := func(ctx context.Context) error {
		now := metav1.NowMicro()
		spec := coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &term, RenewTime: &now}
		stored, err := leases.Get(ctx, lease.Name, metav1.GetOptions{})
		if err != nil {
			_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: lease.Name}, Spec: spec}, metav1.CreateOptions{})
			return err
		}
		stored.Spec = spec
		_, err = leases.Update(ctx, stored, metav1.UpdateOptions{})
		return err
	}
	require.NoError(w, renew(w.Context()))
	return w.background(func(ctx context.Context) {
		ticker := time.NewTicker(300 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			_ = renew(ctx) // after an error, the next tick tries again
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	})
}

// awaitReads waits until the controllers have read a lease three more times.
func (w *world) awaitReads(lease controllers.Lease) {
	w.Helper()
	path := "GET /apis/coordination.k8s.io/v1/namespaces/" + lease.Namespace + "/leases/" + lease.Name
	before := w.calls.of(path)
	w.eventually("reads of lease "+lease.Name, func() bool { return w.calls.of(path) > before+2 })
}

// TestOtherManagers: nothing is done while another manager is alive. Afterwards the work continues. A
// lease that was not renewed for long counts as not held.
func TestOtherManagers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	leases := controllers.DefaultOtherManagers(w.namespace)
	require.Len(t, leases, 2)
	old, nobody := metav1.NewMicroTime(time.Now().Add(-time.Hour)), "long gone"
	_, err := w.core.CoordinationV1().Leases(w.namespace).Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: leases[0].Name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &nobody, RenewTime: &old},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	stopOther := w.holdLease(leases[1], "the other")
	w.class("small", "s")
	d := w.deployment("web", "small", 2)
	w.manage()
	w.awaitReads(leases[1])
	require.Empty(t, w.machines())
	require.Empty(t, w.get("web").Status)

	stopOther()
	w.eventually("two machines", w.settled("web", 2))

	stopOther = w.holdLease(leases[0], "a third")
	w.awaitReads(leases[0])
	require.NoError(t, w.client.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":5}}`))))
	w.awaitReads(leases[0])
	require.Len(t, w.machines(), 2)
	stopOther()
	w.eventually("five machines", w.settled("web", 5))
}
