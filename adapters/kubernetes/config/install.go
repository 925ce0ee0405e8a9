package config

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// tick is the time between two checks whether a kind is served.
const tick = 20 * time.Millisecond

// Install creates or updates the definitions on a server, and returns once the server serves all
// kinds. Stored objects stay. It may be called again.
func Install(ctx context.Context, c *rest.Config) error {
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		return err
	}
	for _, d := range CRDs() {
		o, err := d.Object()
		if err == nil {
			err = put(ctx, client, o)
		}
		if err == nil {
			err = served(ctx, client, o)
		}
		if err != nil {
			return fmt.Errorf("install %s: %w", d.Name, err)
		}
	}
	return nil
}

// put creates a definition, or replaces the spec of the existing one.
func put(ctx context.Context, client dynamic.Interface, o *unstructured.Unstructured) error {
	all := client.Resource(definitions)
	for {
		_, err := all.Create(ctx, o, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		have, err := all.Get(ctx, o.GetName(), metav1.GetOptions{})
		if err == nil {
			have = have.DeepCopy()
			have.Object["spec"] = o.Object["spec"]
			_, err = all.Update(ctx, have, metav1.UpdateOptions{})
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
}

// served returns once the kind can be listed.
func served(ctx context.Context, client dynamic.Interface, o *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(o.Object, "spec", "names", "plural")
	kind := client.Resource(schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: plural})
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		_, err := kind.List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil || !apierrors.IsNotFound(err) && !apierrors.IsTooManyRequests(err) {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
