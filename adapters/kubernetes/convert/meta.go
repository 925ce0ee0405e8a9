package convert

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/object"
)

func readMeta[W metav1.Object, C object.Object[C]](m *object.Meta, w W, k *Kind[W, C]) {
	m.Key = key(w)
	m.UID, m.Version, m.Generation = string(w.GetUID()), w.GetResourceVersion(), w.GetGeneration()
	m.CreatedAt = instant(w.GetCreationTimestamp())
	m.DeletedAt = deletion(w)
	m.Labels = without(w.GetLabels(), func(key string) bool { return slices.Contains(k.labels, key) })
	m.Annotations = without(w.GetAnnotations(), k.isRecord)
	if list := w.GetFinalizers(); len(list) > 0 {
		m.Finalizers = slices.Clone(list)
	}
	m.Owner = controller(w)
}

// isRecord reports whether only this package reads and writes an annotation.
func (k *Kind[W, C]) isRecord(key string) bool {
	return key != "" && (key == k.counter || key == k.notes) || slices.Contains(k.hidden, key) ||
		slices.ContainsFunc(k.records, func(r record[C]) bool { return r.name == key })
}

func writeMeta[W metav1.Object, C object.Object[C]](w W, was, now *object.Meta, k *Kind[W, C]) {
	labels, annotations := w.GetLabels(), w.GetAnnotations()
	putEntries(&labels, was.Labels, now.Labels, func(key string) bool { return slices.Contains(k.labels, key) })
	putEntries(&annotations, was.Annotations, now.Annotations, k.isRecord)
	w.SetLabels(labels)
	w.SetAnnotations(annotations)
	if !slices.Equal(was.Finalizers, now.Finalizers) {
		w.SetFinalizers(slices.Clone(now.Finalizers))
	}
	if sameOwner(was.Owner, now.Owner) {
		return
	}
	owners := slices.DeleteFunc(slices.Clone(w.GetOwnerReferences()), func(o metav1.OwnerReference) bool {
		return o.Controller != nil && *o.Controller || now.Owner != nil && string(o.UID) == now.Owner.UID
	})
	if o := now.Owner; o != nil {
		yes := true
		owners = append(owners, metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: o.Kind, Name: o.Name, UID: types.UID(o.UID),
			Controller: &yes, BlockOwnerDeletion: &yes,
		})
	}
	w.SetOwnerReferences(owners)
}

func sameOwner(a, b *object.Owner) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// instant returns a stored time, in whole seconds.
func instant(t metav1.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Second)
}

// put sets a stored field if its value is to change. was is the value as it was read.
func put[T comparable](field *T, was, now T) {
	if was != now {
		*field = now
	}
}

// without returns a copy of a map without the keys to skip, or nil if nothing is left.
func without(all map[string]string, skip func(string) bool) map[string]string {
	var left map[string]string
	for key, value := range all {
		if skip != nil && skip(key) {
			continue
		}
		if left == nil {
			left = make(map[string]string, len(all))
		}
		left[key] = value
	}
	return left
}

// putEntries changes the entries of a stored map that are to change, except for the keys to skip.
func putEntries(field *map[string]string, was, now map[string]string, skip func(string) bool) {
	for key := range was {
		if _, stays := now[key]; !stays {
			delete(*field, key)
		}
	}
	for key, value := range now {
		if old, there := was[key]; there && old == value || skip != nil && skip(key) {
			continue
		}
		if *field == nil {
			*field = map[string]string{}
		}
		(*field)[key] = value
	}
}
