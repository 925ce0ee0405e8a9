package cluster_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/millwright-go/millwright/adapters/kubernetes/cluster"
	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/test/kubernetes/lab"
)

// server is the API server of all tests here, with a stand-in for the kubelet. No controller
// updates budgets: the tests set their status.
var server *lab.Lab

func TestMain(m *testing.M) {
	os.Exit(lab.Main(m, func(l *lab.Lab) error { server = l; return nil }, "--controllers=fakekubelet"))
}

// keys are the default names of the annotations on nodes with the library's records.
var keys = convert.DefaultKeys()

// patience limits any wait, also on a slow and busy machine.
const patience = 5 * time.Minute

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.True(t, lab.Await(patience, holds), "waited in vain for %s", what)
}

// world is one test's part of the cluster: a namespace, and nodes whose names begin with that of
// the namespace.
type world struct {
	*testing.T
	name   string // of the namespace
	client kubernetes.Interface
	cache  *cluster.Cluster
}

// worlds counts the worlds so far, for unique names.
var worlds atomic.Int64

func newWorld(t *testing.T) *world {
	t.Helper()
	client, err := kubernetes.NewForConfig(server.Config)
	require.NoError(t, err)
	w := &world{T: t, name: fmt.Sprintf("%s-%d", strings.ToLower(t.Name()), worlds.Add(1)), client: client}
	w.cache = newCluster(t, server.Config)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.cache.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return w
}

// newCluster returns a Cluster that does not run yet.
func newCluster(t *testing.T, config *rest.Config) *cluster.Cluster {
	t.Helper()
	c, err := cluster.New(cluster.Options{Config: config, Report: func(err error) { t.Log(err) }})
	require.NoError(t, err)
	return c
}

// node creates a node, whose name is the world's and the given one.
func (w *world) node(name string, edit func(*corev1.Node)) *corev1.Node {
	w.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-" + name}}
	if edit != nil {
		edit(n)
	}
	made, err := w.client.CoreV1().Nodes().Create(w.Context(), n, metav1.CreateOptions{})
	require.NoError(w, err)
	w.Cleanup(func() {
		err := w.client.CoreV1().Nodes().Delete(context.Background(), made.Name, metav1.DeleteOptions{})
		require.True(w, err == nil || apierrors.IsNotFound(err))
	})
	return made
}

// stored reads a node from the server.
func (w *world) stored(name string) *corev1.Node {
	w.Helper()
	n, err := w.client.CoreV1().Nodes().Get(w.Context(), name, metav1.GetOptions{})
	require.NoError(w, err)
	return n
}

// pod creates a pod on a node, and waits until it runs.
func (w *world) pod(name, node string, edit func(*corev1.Pod)) *corev1.Pod {
	w.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "mill"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
	if edit != nil {
		edit(p)
	}
	pods := w.client.CoreV1().Pods(w.name)
	_, err := pods.Create(w.Context(), p, metav1.CreateOptions{})
	require.NoError(w, err)
	eventually(w.T, "pod "+name+" to run", func() bool {
		p, err = pods.Get(w.Context(), name, metav1.GetOptions{})
		return err == nil && p.Status.Phase == corev1.PodRunning
	})
	return p
}

// gone reports whether a pod does not exist on the server.
func (w *world) gone(name string) bool {
	_, err := w.client.CoreV1().Pods(w.name).Get(w.Context(), name, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}
