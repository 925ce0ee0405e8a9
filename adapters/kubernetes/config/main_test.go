package config_test

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/apistore"
	"github.com/millwright-go/millwright/adapters/kubernetes/config"
	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/test/kubernetes/lab"
)

// server is the API server of all tests here.
var server *lab.Lab

func TestMain(m *testing.M) {
	os.Exit(lab.Main(m, func(l *lab.Lab) error {
		server = l
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return config.Install(ctx, l.Config)
	}))
}

// patience limits any wait, also on a slow and busy machine.
const patience = 5 * time.Minute

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.True(t, lab.Await(patience, holds), "waited in vain for %s", what)
}

// world is one test's namespace, with the stores of a manager for it.
type world struct {
	*testing.T
	namespace   string
	dynamic     dynamic.Interface
	machines    store.Collection[*machine.Machine]
	sets        store.Collection[*machineset.Set]
	deployments store.Collection[*deployment.Deployment]
	classes     store.Collection[*machine.Class]
}

var worlds atomic.Int64

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, namespace: fmt.Sprintf("%s-%d", strings.ToLower(t.Name()), worlds.Add(1))}
	client, err := kubernetes.NewForConfig(server.Config)
	require.NoError(t, err)
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.dynamic, err = dynamic.NewForConfig(server.Config)
	require.NoError(t, err)
	keys := convert.DefaultKeys()
	w.machines = startStore(w, "machines", convert.Machines(keys), func() *v1alpha1.Machine { return &v1alpha1.Machine{} }, &v1alpha1.MachineList{})
	w.sets = startStore(w, "machinesets", convert.Sets(keys), func() *v1alpha1.MachineSet { return &v1alpha1.MachineSet{} }, &v1alpha1.MachineSetList{})
	w.deployments = startStore(w, "machinedeployments", convert.Deployments(keys), func() *v1alpha1.MachineDeployment { return &v1alpha1.MachineDeployment{} }, &v1alpha1.MachineDeploymentList{})
	w.classes = startStore(w, "machineclasses", convert.Classes(keys), func() *v1alpha1.MachineClass { return &v1alpha1.MachineClass{} }, &v1alpha1.MachineClassList{})
	return w
}

// startStore returns the store of one kind, which runs until the test ends.
func startStore[T object.Object[T], R apistore.Raw](w *world, resource string, codec apistore.Codec[T, R], blank func() R, list runtime.Object) *apistore.Collection[T, R] {
	w.Helper()
	types := runtime.NewScheme()
	require.NoError(w, v1alpha1.AddToScheme(types))
	client, err := apistore.NewClient(server.Config, v1alpha1.GroupVersion, types)
	require.NoError(w, err)
	return startStoreWith(w, client, resource, codec, blank, list)
}

// startStoreWith is startStore with a client for the kind's API group.
func startStoreWith[T object.Object[T], R apistore.Raw](w *world, client rest.Interface, resource string, codec apistore.Codec[T, R], blank func() R, list runtime.Object) *apistore.Collection[T, R] {
	w.Helper()
	c, err := apistore.New(apistore.Options[T, R]{
		Client: client, Resource: resource, Namespaced: true, Namespace: w.namespace, NoStatus: resource == "machineclasses",
		Codec: codec, Blank: blank, BlankList: list.DeepCopyObject,
		Report: func(err error) { w.Log(err) },
	})
	require.NoError(w, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	w.Cleanup(func() {
		cancel()
		require.NoError(w, <-ended)
	})
	return c
}

func (w *world) key(name string) object.Key { return object.Key{Namespace: w.namespace, Name: name} }

// create stores an object and its status.
func create[T object.Object[T]](w *world, in store.Collection[T], o T) T {
	w.Helper()
	made, err := in.Create(w.Context(), o)
	require.NoError(w, err)
	status := made.Clone()
	status.CopyStatus(o)
	made, err = in.UpdateStatus(w.Context(), status)
	require.NoError(w, err)
	return made
}

// edit changes an object and its status on the server.
func edit[T object.Object[T]](w *world, in store.Collection[T], name string, do func(T)) T {
	w.Helper()
	o := get(w, in, name)
	c := o.Clone()
	do(c)
	made, err := in.Update(w.Context(), c)
	require.NoError(w, err)
	status := made.Clone()
	status.CopyStatus(c)
	made, err = in.UpdateStatus(w.Context(), status)
	require.NoError(w, err)
	return made
}

func get[T object.Object[T]](w *world, in store.Collection[T], name string) T {
	w.Helper()
	o, err := in.Live().Get(w.Context(), w.key(name))
	require.NoError(w, err)
	return o
}

// kubectl runs kubectl, which must succeed, and returns what it prints.
func (w *world) kubectl(args ...string) string {
	w.Helper()
	out, err := server.Kubectl(w.Context(), "", append([]string{"--namespace=" + w.namespace}, args...)...)
	require.NoError(w, err)
	return out
}

// refused runs kubectl, which must fail, and returns its error.
func (w *world) refused(stdin string, args ...string) string {
	w.Helper()
	_, err := server.Kubectl(w.Context(), stdin, append([]string{"--namespace=" + w.namespace}, args...)...)
	require.Error(w, err)
	return err.Error()
}
