package apistore_test

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/millwright-go/millwright/adapters/kubernetes/apistore"
	"github.com/millwright-go/millwright/store/storetest"
	"github.com/millwright-go/millwright/test/kubernetes/lab"
)

// server is the API server of all tests here.
var server *lab.Lab

func TestMain(m *testing.M) {
	flag.Parse()
	if !flagGiven("rapid.checks") {
		_ = flag.Set("rapid.checks", "12") // each check makes some hundred calls of the server
	}
	os.Exit(lab.Main(m, install))
}

// flagGiven reports whether a flag is set on the command line.
func flagGiven(name string) (yes bool) {
	flag.Visit(func(f *flag.Flag) { yes = yes || f.Name == name })
	return yes
}

var things = version.WithResource("things")

// install creates storetest's namespaces and its kind on the server.
func install(l *lab.Lab) error {
	server = l
	ctx := context.Background()
	d, err := dynamic.NewForConfig(l.Config)
	if err != nil {
		return err
	}
	for _, name := range storetest.Namespaces {
		namespace := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
		}}
		if _, err := d.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := d.Resource(definitions).Create(ctx, definition(), metav1.CreateOptions{}); err != nil {
		return err
	}
	return served(ctx, d)
}

// served returns once the kind can be listed.
func served(ctx context.Context, d dynamic.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := d.Resource(things).List(ctx, metav1.ListOptions{})
		if err == nil || !apierrors.IsNotFound(err) && !apierrors.IsTooManyRequests(err) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func definition() *unstructured.Unstructured {
	free := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "things.storetest.example"},
		"spec": map[string]any{
			"group": version.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
			"versions": []any{map[string]any{
				"name": version.Version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": free, "status": free},
				}},
			}},
		},
	}}
}

type collection = apistore.Collection[*storetest.Object, *thing]

// newCollection returns a collection that runs until the test ends. All things are deleted then.
func newCollection(t *testing.T, config *rest.Config, edit func(*apistore.Options[*storetest.Object, *thing])) *collection {
	t.Helper()
	o := options(t, config)
	if edit != nil {
		edit(&o)
	}
	c, err := apistore.New(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		clean(t)
	})
	return c
}

func options(t *testing.T, config *rest.Config) apistore.Options[*storetest.Object, *thing] {
	t.Helper()
	client, err := apistore.NewClient(config, version, scheme())
	require.NoError(t, err)
	return apistore.Options[*storetest.Object, *thing]{
		Client: client, Resource: things.Resource, Namespaced: true, Codec: codec(),
		Blank: func() *thing { return &thing{} }, BlankList: func() runtime.Object { return &thingList{} },
		Indexes: storetest.Indexes(),
		Report:  func(err error) { t.Log(err) },
	}
}

// raw returns access to the stored things that does not use a collection.
func raw(t *testing.T) dynamic.NamespaceableResourceInterface {
	t.Helper()
	d, err := dynamic.NewForConfig(server.Config)
	require.NoError(t, err)
	return d.Resource(things)
}

// clean deletes all things.
func clean(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	list, err := raw(t).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	for i := range list.Items {
		o := &list.Items[i]
		in := raw(t).Namespace(o.GetNamespace())
		if len(o.GetFinalizers()) > 0 {
			o.SetFinalizers(nil)
			_, err := in.Update(ctx, o, metav1.UpdateOptions{})
			require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
		}
		err := in.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
		require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	}
}
