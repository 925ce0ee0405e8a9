package apistore_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-go/millwright/adapters/kubernetes/apistore"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

// odd stores an object with values in two fields that a thing can't hold, and an unknown field.
func odd(t *testing.T, name string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version.String(), "kind": "Thing", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"replicas": "three", "class": "c", "zones": []any{"a", int64(1)}, "unknown": map[string]any{"x": "y"}},
	}}
	_, err := raw(t).Namespace(storetest.Namespaces[0]).Create(t.Context(), o, metav1.CreateOptions{})
	require.NoError(t, err)
}

// exact is a number that no float64 can hold.
const exact = 1<<53 + 1

// TestUnreadableFields: a field that can't be read is reported and counts as empty. It hides
// neither the rest of its object nor other objects, and stays as it is when the object is written.
// Invariants: P11
func TestUnreadableFields(t *testing.T) {
	var mu sync.Mutex
	var reports []string
	reported := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(reports)
	}
	odd(t, "listed")
	c := newCollection(t, server.Config, func(o *apistore.Options[*storetest.Object, *thing]) {
		o.Report = func(err error) {
			mu.Lock()
			defer mu.Unlock()
			reports = append(reports, err.Error())
		}
	})
	namespace := storetest.Namespaces[0]
	good := &storetest.Object{Meta: object.Meta{Key: object.Key{Namespace: namespace, Name: "good"}}, Spec: storetest.Spec{Replicas: exact}}
	_, err := c.Create(t.Context(), good)
	require.NoError(t, err)
	odd(t, "watched")
	require.Eventually(t, func() bool {
		all, err := c.List(t.Context(), store.Query{})
		return err == nil && len(all) == 3
	}, patience, 20*time.Millisecond)
	require.Eventually(t, func() bool { return len(reported()) == 4 }, patience, 20*time.Millisecond)
	assert.Equal(t, []string{
		"things " + namespace + "/listed: spec.replicas can't be read",
		"things " + namespace + "/listed: spec.zones can't be read",
		"things " + namespace + "/watched: spec.replicas can't be read",
		"things " + namespace + "/watched: spec.zones can't be read",
	}, reported())

	live, err := c.Live().List(t.Context(), store.Query{})
	require.NoError(t, err)
	require.Len(t, live, 3)
	for _, o := range live {
		assert.Equal(t, o.Name == "good", o.Spec.Replicas == exact, o.Name)
	}
	for _, name := range []string{"listed", "watched"} {
		o, err := c.Live().Get(t.Context(), object.Key{Namespace: namespace, Name: name})
		require.NoError(t, err)
		assert.Equal(t, storetest.Spec{Class: "c"}, o.Spec)
		assert.NotEmpty(t, o.UID)
		o = o.Clone()
		o.Spec.Class, o.Finalizers = "d", []string{"example.com/f"}
		o, err = c.Update(t.Context(), o)
		require.NoError(t, err)
		o = o.Clone()
		o.Status.Ready = 1
		_, err = c.UpdateStatus(t.Context(), o)
		require.NoError(t, err)
		stored, err := raw(t).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, map[string]any{"replicas": "three", "class": "d", "zones": []any{"a", int64(1)}, "unknown": map[string]any{"x": "y"}}, stored.Object["spec"])
	}

	// A corrected object is read as any other.
	_, err = raw(t).Namespace(namespace).Patch(t.Context(), "listed", types.MergePatchType, []byte(`{"spec":{"replicas":3,"zones":["a"]}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		o, err := c.Get(t.Context(), object.Key{Namespace: namespace, Name: "listed"})
		return err == nil && o.Spec.Replicas == 3 && slices.Equal(o.Spec.Zones, []string{"a"})
	}, patience, 20*time.Millisecond)
	before := len(reported())
	_, err = raw(t).Namespace(namespace).Patch(t.Context(), "listed", types.MergePatchType, []byte(`{"spec":{"replicas":4}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		o, err := c.Get(t.Context(), object.Key{Namespace: namespace, Name: "listed"})
		return err == nil && o.Spec.Replicas == 4
	}, patience, 20*time.Millisecond)
	assert.Len(t, reported(), before)

	// The losses of an object that is gone are forgotten.
	require.Equal(t, 2, c.Losses())
	_, err = raw(t).Namespace(namespace).Patch(t.Context(), "watched", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, raw(t).Namespace(namespace).Delete(t.Context(), "watched", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { return c.Losses() == 1 }, patience, 20*time.Millisecond)
}
