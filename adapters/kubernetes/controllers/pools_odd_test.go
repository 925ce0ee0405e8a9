package controllers_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	poolsv1alpha1 "github.com/millwright-go/millwright/adapters/kubernetes/api/pools/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// TestOddPools: odd values that this manager owns are corrected. A pool whose class is missing waits,
// and one with a class of another API group is ignored. None of them stops other pools.
// Invariants: P11 P32
func TestOddPools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	w.class("small", "s")
	p := w.machinePool("web", "small", 2)
	lost := w.machinePool("lost", "nowhere", 1)
	foreign := w.machinePool("foreign", "small", 1)
	w.merge(foreign, `{"spec":{"template":{"class":{"apiGroup":"example.com","kind":"TheirClass"}}}}`)
	stop := w.manage(w.withPools)
	w.eventually("two machines", w.running("web", 2))
	require.Empty(t, w.instances("lost"))
	stop()

	ids := w.getPool("web").Spec.ProviderIDs
	w.merge(p, `{"metadata":{"finalizers":null},"spec":{"providerIDs":["","x","x"]}}`)
	require.NoError(t, w.client.SubResource("status").Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", []byte(`{"status":{
		"phase":"Odd","since":"2999-01-01T00:00:00Z","replicas":9,"readyReplicas":7,"observedGeneration":99,"neverCreated":true,
		"leaving":[{"providerID":"x","exit":"Odd"},{}],"nodeRefs":[{"name":"nobody"}],"groupID":"another",
		"lastOperation":{"call":"Odd","state":"Odd","errorCode":"Odd"},"applied":{"classUID":"?","classGeneration":-1},
		"conditions":[{"type":"Theirs","status":"Perhaps"}]}}`))))
	w.manage(w.withPools)
	w.eventually("the odd values to be corrected", w.running("web", 2))
	w.requireConsistent("web")
	require.Equal(t, ids, w.getPool("web").Spec.ProviderIDs, "the instances were replaced")
	w.eventually("an event about what can't be read", w.hasEvent("web", "Unreadable", "status.lastOperation.errorCode"))
	require.True(t, slices.ContainsFunc(w.getPool("web").Status.Conditions, func(c poolsv1alpha1.MachinePoolCondition) bool {
		return c.Type == "Theirs" && c.Status == "Perhaps"
	}))

	w.class("nowhere", "l")
	w.eventually("the pool whose class now exists", w.running("lost", 1))
	require.Empty(t, w.instances("foreign"), "a pool with a class of another API group got instances")
	for _, o := range []client.Object{p, lost, foreign} {
		require.NoError(t, w.client.Delete(t.Context(), o))
		w.eventually(o.GetName()+" to be gone", w.gone(o))
	}
	require.Empty(t, w.instances("web"))
}

// TestPoolKilledManyTimes changes a pool and kills the manager after a random number of the pool's
// versions, many times. There is never a second group, and never an instance too many. In the end the
// pool is as its spec says.
// Invariants: P30 P36
func TestPoolKilledManyTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	t.Parallel()
	const kills = 30
	w := newWorld(t, brisk)
	w.class("small", "s")
	w.class("large", "l")
	changes := make(chan int, 100_000)
	follow(w, &poolsv1alpha1.MachinePoolList{}, func(list client.ObjectList) (out []*poolsv1alpha1.MachinePool) {
		items := list.(*poolsv1alpha1.MachinePoolList).Items
		for i := range items {
			out = append(out, &items[i])
		}
		return out
	}, func(map[string]*poolsv1alpha1.MachinePool) { changes <- 1 })
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // a seed
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no secret
	size, class := int32(4), "small"
	p, bound := w.machinePool("web", "small", size), 4
	stop := w.background(func(ctx context.Context) {
		for ctx.Err() == nil {
			all, err := filepath.Glob(filepath.Join(w.folder, ".groups", w.namespace, w.namespace, "*"))
			if err != nil || len(all) > 1 {
				w.Errorf("there are the groups %q (%v)", all, err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	for range kills {
		if w.running("web", size)() {
			bound = int(size)
		}
		size = 1 + (size+random.Int32N(5))%6 // different from the size before
		bound = max(bound, int(size))
		class = []string{"small", "large"}[random.IntN(2)]
		w.merge(p, fmt.Sprintf(`{"spec":{"replicas":%d,"template":{"class":{"name":%q}}}}`, size, class))
		for len(changes) > 0 {
			<-changes
		}
		c, until := w.child(), 1+random.IntN(12)
		w.eventually("some changes, or a pool without further changes", func() bool {
			all, err := w.provider.Instances(w.namespace, object.Key{Namespace: w.namespace, Name: "web"})
			require.NoError(t, err)
			require.LessOrEqual(t, len(all), bound)
			return len(changes) >= until || w.running("web", size)()
		})
		c.kill()
	}
	stop()
	w.child()
	// Both are checked together: between two replacements of instances the pool is running as well.
	w.eventually("the pool to be as its spec says", func() bool {
		return maps.Equal(map[string]int{class[:1]: int(size)}, w.instances("web")) && w.running("web", size)()
	})
	w.requireConsistent("web")
	require.NoError(t, w.client.Delete(t.Context(), p))
	w.eventually("the pool to be gone", w.gone(p))
	w.eventually("the nodes to be gone", func() bool { return w.nodes() == 0 })
	require.Empty(t, w.instances("web"))
}

// poolRequests returns the number of requests about pools.
func (w *world) poolRequests() (n int) {
	w.calls.mu.Lock()
	defer w.calls.mu.Unlock()
	for path, count := range w.calls.paths {
		if strings.Contains(path, poolsv1alpha1.GroupVersion.Group) {
			n += count
		}
	}
	return n
}

// TestPoolsNeedADriver: without a pool driver the manager makes no request about pools. Stored pools
// stay as they are, and machines are managed as usual.
func TestPoolsNeedADriver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.manage()
	w.class("small", "s")
	p := w.machinePool("web", "small", 2)
	w.deployment("api", "small", 1)
	w.eventually("the deployment's machine", w.settled("api", 1))
	require.Zero(t, w.poolRequests())
	require.Equal(t, p.ResourceVersion, w.getPool("web").ResourceVersion)
	for _, o := range []controllers.Options{
		{Driver: w.provider, Kinds: []manager.Kind{manager.KindPool}}, {Driver: w.provider, PoolBootstrap: noBootstrap{}},
	} {
		mgr, err := ctrl.NewManager(server.Config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
		require.NoError(t, err)
		require.ErrorIs(t, controllers.SetupWithManager(mgr, o), controllers.ErrOptions)
	}
}

// noBootstrap is a PoolBootstrap that is never called.
type noBootstrap struct{ manager.PoolBootstrap }

// TestDryRunOfPools: in a dry run the manager reports what it would do about pools, and changes
// nothing.
// Invariants: P40
func TestDryRunOfPools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	w.class("small", "s")
	p := w.machinePool("web", "small", 2)
	stop := w.manage(w.withPools)
	w.eventually("two machines", w.running("web", 2))
	stop()
	w.merge(p, `{"spec":{"replicas":4}}`)
	w.machinePool("new", "small", 1)
	before := w.getPool("web").ResourceVersion
	var mu sync.Mutex
	reported := map[string]bool{}
	w.manage(w.withPools, func(o *controllers.Options) {
		o.DryRun = true
		o.Hooks.DryRun = func(kind manager.Kind, key object.Key, what, _, _ string) {
			mu.Lock()
			defer mu.Unlock()
			reported[string(kind)+" "+key.Name+": "+what] = true
		}
	})
	for _, name := range []string{"web", "new"} {
		w.eventually("what would be done about "+name, func() bool {
			mu.Lock()
			defer mu.Unlock()
			for line := range reported {
				if strings.HasPrefix(line, "pool "+name+": update ") {
					return true
				}
			}
			return false
		})
	}
	require.Equal(t, before, w.getPool("web").ResourceVersion)
	require.Equal(t, map[string]int{"s": 2}, w.instances("web"))
	require.Empty(t, w.getPool("new").Finalizers)
}

// TestPoolsOfShards: two managers with different shards each reconcile the pools of their shard. A
// third one, for sets only, reconciles no pool.
func TestPoolsOfShards(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	w.class("small", "s")
	var mu sync.Mutex
	seen := map[string]map[int]bool{} // by pool and manager
	hooks := func(by int) manager.Hooks {
		return manager.Hooks{Pass: func(kind manager.Kind, key object.Key, _ int, _ manager.Result, _ error) {
			mu.Lock()
			defer mu.Unlock()
			if kind != manager.KindPool {
				return
			}
			if seen[key.Name] == nil {
				seen[key.Name] = map[int]bool{}
			}
			seen[key.Name][by] = true
		}}
	}
	for i := range 2 {
		w.manage(w.withPools, func(o *controllers.Options) { o.Shard, o.Hooks = controllers.Shard{Index: i, Of: 2}, hooks(i) })
	}
	w.manage(w.withPools, func(o *controllers.Options) {
		o.Kinds, o.Hooks = []manager.Kind{manager.KindSet}, hooks(2)
	})
	for i := range 4 {
		w.machinePool(fmt.Sprint("web-", i), "small", 1)
	}
	owners := map[int]bool{}
	for i := range 4 {
		name := fmt.Sprint("web-", i)
		w.eventually(name, w.running(name, 1))
		mu.Lock()
		for part := 0; part < 2; part++ {
			holds := controllers.Shard{Index: part, Of: 2}.Holds(object.Key{Namespace: w.namespace, Name: name})
			require.Equal(t, holds, seen[name][part], name)
			owners[part] = owners[part] || holds
		}
		require.False(t, seen[name][2], "the manager for sets has reconciled pool %s", name)
		mu.Unlock()
	}
	require.NotEmpty(t, owners)
}

// TestPoolMetrics: pools are counted by phase, and the machines of each pool by state.
func TestPoolMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	registry := prometheus.NewRegistry()
	w.manage(w.withPools, func(o *controllers.Options) { o.Metrics = registry })
	w.class("small", "s")
	w.machinePool("web", "small", 2)
	w.eventually("two machines", w.running("web", 2))
	value := func(name, label, of string) float64 {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			for _, m := range f.Metric {
				for _, l := range m.Label {
					if f.GetName() == name && l.GetName() == label && l.GetValue() == of {
						return m.GetGauge().GetValue()
					}
				}
			}
		}
		return -1
	}
	w.eventually("the pool to be counted", func() bool { return value("millwright_pools", "phase", "Running") == 1 })
	for state, n := range map[string]float64{"desired": 2, "current": 2, "ready": 2, "available": 2, "unavailable": 0, "terminating": 0} {
		require.Equal(t, n, value("millwright_pool_machines", "state", state), state)
	}
}

// withoutPoolKind answers requests about pools as a server that has no such kind, until defined is
// closed.
type withoutPoolKind struct {
	next    http.RoundTripper
	defined chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (u withoutPoolKind) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-u.defined:
	default:
		if strings.Contains(r.URL.Path, "machinepools") {
			return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: r, Header: http.Header{}}, nil
		}
	}
	return u.next.RoundTrip(r)
}

// TestPoolsUndefined: while the server does not know the kind of pools, the log says so and the
// manager is not ready. It works as soon as the kind is defined.
func TestPoolsUndefined(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	w.class("small", "s")
	w.machinePool("web", "small", 1)
	config, defined := rest.CopyConfig(server.Config), make(chan struct{})
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return withoutPoolKind{next, defined} })
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	health := freeAddress(t)
	mgr, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: health})
	require.NoError(t, err)
	o := controllers.Options{Driver: w.provider, Namespace: w.namespace, Log: slog.New(slog.NewTextHandler(file, nil)), Metrics: prometheus.NewRegistry()}
	w.withPools(&o)
	require.NoError(t, controllers.SetupWithManager(mgr, o))
	stop := w.background(func(ctx context.Context) { _ = mgr.Start(ctx) })
	readyStatus := func() int {
		resp, err := http.Get("http://" + health + "/readyz")
		if err != nil {
			return 0
		}
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	w.eventually("the log to name the missing kind", func() bool {
		text, err := os.ReadFile(file.Name())
		require.NoError(t, err)
		return strings.Contains(string(text), "machinepools") && strings.Contains(string(text), "could not find the requested resource")
	})
	require.Equal(t, http.StatusInternalServerError, readyStatus())
	close(defined)
	w.eventually("the pool", w.running("web", 1))
	w.eventually("readiness", func() bool { return readyStatus() == http.StatusOK })
	stop()
}

// freeAddress returns a local address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().String()
}
