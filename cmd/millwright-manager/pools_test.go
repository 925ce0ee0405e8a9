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

// TestPools: the command reconciles pools. With --no-pools it does not even read them.
func TestPools(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
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
	proxy := newRecorder(t)
	m = w.manage("--no-pools", "--kubeconfig="+proxy.kubeconfig)
	w.eventually("the machine of the deployment", w.settled("web", 1))
	require.False(t, running(3)())
	require.Equal(t, false, m.logged(t, "starting")[0]["pools"])
	require.Equal(t, app.StatusDone, m.stop(t))
	for _, path := range proxy.reads() {
		require.NotContains(t, path, poolsv1alpha1.GroupVersion.Group)
	}

	m = w.manage("--pool-poll=1s", "--kubeconfig="+proxy.kubeconfig)
	w.eventually("three machines", running(3))
	require.NoError(t, w.client.Delete(t.Context(), p))
	w.eventually("the end of the pool", func() bool {
		return apierrors.IsNotFound(w.client.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	})
	require.Equal(t, app.StatusDone, m.stop(t))
}

// reads returns the paths of reads.
func (r *recorder) reads() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.paths["GET"]...)
}
