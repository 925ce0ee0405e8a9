package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	poolsv1alpha1 "github.com/millwright-go/millwright/adapters/kubernetes/api/pools/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/config"
	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/test/kubernetes/lab"
	"github.com/millwright-go/millwright/test/kubernetes/simulated"
)

// The long tests kill managers many times and run thousands of machines. The short tests run the same
// code under the race detector.
//
//make:long-tests-without-race

// server is the API server of all tests here.
var server *lab.Lab

func TestMain(m *testing.M) {
	if fleet := os.Getenv(childEnv); fleet != "" {
		if err := runChild(fleet); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	os.Exit(lab.Main(m, func(l *lab.Lab) error {
		server = l
		if err := errors.Join(v1alpha1.AddToScheme(scheme.Scheme), poolsv1alpha1.AddToScheme(scheme.Scheme)); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return config.Install(ctx, l.Config)
	}, "--controllers=gc,disruption,fakekubelet,scheduler,nodelifecycle,replicaset,deployment,statefulset,job,namespace", "--pod-startup=500ms", "--pod-termination=500ms", "--node-monitor-grace-period=1h"))
}

// world is one test's namespace, with its simulated provider.
type world struct {
	*testing.T
	namespace string
	client    client.WithWatch
	core      kubernetes.Interface
	target    kubernetes.Interface // the server with the nodes
	provider  *simulated.Provider
	log       *slog.Logger
	folder    string // of the simulated provider: VMs are files in it
	calls     calls  // of the controllers
}

// discard is the log of tests with many expected errors.
var discard = slog.New(slog.DiscardHandler)

// worlds counts the worlds so far, for unique names.
var worlds atomic.Int64

// quick makes the simulated provider fast.
var quick = simulated.Options{Create: 20 * time.Millisecond, Boot: 100 * time.Millisecond, Delete: 20 * time.Millisecond}

func newWorld(t *testing.T, o simulated.Options) *world {
	t.Helper()
	core, err := kubernetes.NewForConfig(server.Config)
	require.NoError(t, err)
	return newWorldOn(t, o, core)
}

// newWorldOn is newWorld with the nodes on another server.
func newWorldOn(t *testing.T, o simulated.Options, nodes kubernetes.Interface) *world {
	t.Helper()
	w := &world{T: t, target: nodes, namespace: fmt.Sprintf("%s-%d", strings.NewReplacer("/", "-", "_", "-").Replace(strings.ToLower(strings.TrimPrefix(t.Name(), "Test"))), worlds.Add(1)), folder: t.TempDir()}
	var err error
	w.core, err = kubernetes.NewForConfig(server.Config)
	require.NoError(t, err)
	_, err = w.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.client, err = client.NewWithWatch(server.Config, client.Options{})
	require.NoError(t, err)
	w.log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	o.Dir, o.Nodes = w.folder, nodes
	w.provider, err = simulated.New(o)
	require.NoError(t, err)
	w.background(func(ctx context.Context) { _ = w.provider.Run(ctx) })
	return w
}

// background calls run until stop is called, at the latest until the test ends.
func (w *world) background(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	stop = func() {
		cancel()
		running.Wait()
	}
	w.Cleanup(stop)
	return stop
}

// manage runs the controllers until stop is called, at the latest until the test ends.
func (w *world) manage(change ...func(*controllers.Options)) (stop func()) {
	w.Helper()
	return w.manageOver(w.countedConfig(), change...)
}

// manageOver is manage with the given access to the API server.
func (w *world) manageOver(config *rest.Config, change ...func(*controllers.Options)) (stop func()) {
	w.Helper()
	o := controllers.Options{Driver: w.provider, Namespace: w.namespace, Log: w.log, Metrics: prometheus.NewRegistry()}
	for _, c := range change {
		c(&o)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	require.NoError(w, err)
	require.NoError(w, controllers.SetupWithManager(mgr, o))
	return w.background(func(ctx context.Context) {
		if err := mgr.Start(ctx); err != nil {
			w.Errorf("the manager ended: %v", err)
		}
	})
}

// calls counts the requests of the controllers.
type calls struct {
	mu    sync.Mutex
	paths map[string]int // by method and path
}

func (c *calls) of(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paths[path]
}

// counting counts the requests that it passes on.
type counting struct {
	next  http.RoundTripper
	calls *calls
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	if c.calls.paths == nil {
		c.calls.paths = map[string]int{}
	}
	c.calls.paths[r.Method+" "+r.URL.Path]++
	return answer, err
}

// countedConfig returns access to the server. Its requests are counted in w.calls.
func (w *world) countedConfig() *rest.Config {
	c := rest.CopyConfig(server.Config)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, &w.calls} })
	return c
}

// patience limits any wait, also on a slow and busy machine.
const patience = 5 * time.Minute

func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	w.waitFor(patience, what, holds)
}

// long is eventually with a longer limit.
func (w *world) long(what string, holds func() bool) {
	w.Helper()
	w.waitFor(20*time.Minute, what, holds)
}

func (w *world) waitFor(limit time.Duration, what string, holds func() bool) {
	w.Helper()
	if !lab.Await(limit, holds) {
		require.Fail(w, "waited in vain for "+what, w.contents())
	}
}

// contents describes the VMs, sets and machines of the world.
func (w *world) contents() string {
	w.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "VMs: %v\n", w.vms())
	for _, s := range w.sets() {
		fmt.Fprintf(&b, "set %s %v deleted %v, %d of %d\n", s.Name, s.Finalizers, s.DeletionTimestamp, s.Status.AvailableReplicas, s.Spec.Replicas)
	}
	for _, m := range w.machines() {
		fmt.Fprintf(&b, "machine %s %v deleted %v: %s, %s\n", m.Name, m.Finalizers, m.DeletionTimestamp,
			m.Status.CurrentStatus.Phase, m.Status.LastOperation.Description)
	}
	return b.String()
}
