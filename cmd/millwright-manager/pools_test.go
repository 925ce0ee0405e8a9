package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	poolsv1alpha1 "github.com/millwright-go/millwright/adapters/kubernetes/api/pools/v1alpha1"
	"github.com/millwright-go/millwright/cmd/millwright-manager/app"
	"github.com/millwright-go/millwright/cmd/millwright-manager/internal/trial"
)

// TestPools: the command reconciles pools unless it is told not to. Then it does not ask for them.
func TestPools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(trial.Class(w.namespace, "small", "s", "x")...)
	p := trial.Pool(w.namespace, "batch", "small", 2)
	w.create(p)
	running := func(n int32) func() bool {
		return func() bool {
			require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(p), p))
			return p.Status.Phase == "Running" && p.Status.ReadyReplicas == n && p.Status.ObservedGeneration == p.Generation
		}
	}
	m := w.manage("--pool-poll=1s", "--pool-period=1s")
	w.eventually("two machines", running(2))
	require.Equal(t, true, m.logged(t, "starting")[0]["pools"])
	require.Equal(t, app.StatusDone, m.stop(t))

	require.NoError(t, w.client.Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`))))
	w.create(trial.Deployment(w.namespace, "web", "small", 1))
	seen := newWitness(t)
	m = w.manage("--no-pools", "--kubeconfig="+seen.kubeconfig)
	w.eventually("the machine beside it", w.settled("web", 1))
	require.False(t, running(3)())
	require.Equal(t, false, m.logged(t, "starting")[0]["pools"])
	require.Equal(t, app.StatusDone, m.stop(t))
	for _, path := range seen.reads() {
		require.NotContains(t, path, poolsv1alpha1.GroupVersion.Group)
	}

	m = w.manage("--pool-poll=1s", "--kubeconfig="+seen.kubeconfig)
	w.eventually("three machines", running(3))
	require.NoError(t, w.client.Delete(t.Context(), p))
	w.eventually("the pool to go", func() bool {
		return apierrors.IsNotFound(w.client.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	})
	require.Equal(t, app.StatusDone, m.stop(t))
}

// reads returns the paths that were read from.
func (w *witness) reads() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.seen["GET"]...)
}
