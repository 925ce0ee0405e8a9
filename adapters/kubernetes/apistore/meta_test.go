package apistore_test

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubetypes "k8s.io/apimachinery/pkg/types"

	"github.com/millwright-go/millwright/object"
)

// readMeta reads the metadata of raw. Its maps and slices are raw's.
func readMeta(raw metav1.Object) object.Meta {
	m := object.Meta{
		Key:         object.Key{Namespace: raw.GetNamespace(), Name: raw.GetName()},
		UID:         string(raw.GetUID()),
		Version:     raw.GetResourceVersion(),
		Generation:  raw.GetGeneration(),
		CreatedAt:   raw.GetCreationTimestamp().UTC(),
		Labels:      raw.GetLabels(),
		Annotations: raw.GetAnnotations(),
		Finalizers:  raw.GetFinalizers(),
	}
	if at := raw.GetDeletionTimestamp(); at != nil {
		m.DeletedAt = at.UTC()
	}
	if ref := metav1.GetControllerOfNoCopy(raw); ref != nil {
		m.Owner = &object.Owner{Kind: ref.Kind, Name: ref.Name, UID: string(ref.UID)}
	}
	return m
}

// writeMeta writes the caller's part of m into raw: key, labels, annotations, finalizers and owner.
// ownerVersion is the API version of owners, such as "apps/v1". Owners that do not control the
// object stay.
func writeMeta(m *object.Meta, raw metav1.Object, ownerVersion string) {
	raw.SetNamespace(m.Namespace)
	raw.SetName(m.Name)
	raw.SetLabels(m.Labels)
	raw.SetAnnotations(m.Annotations)
	raw.SetFinalizers(m.Finalizers)
	raw.SetOwnerReferences(owners(raw.GetOwnerReferences(), m.Owner, ownerVersion))
}

func owners(refs []metav1.OwnerReference, owner *object.Owner, version string) []metav1.OwnerReference {
	at := slices.IndexFunc(refs, controls)
	if at < 0 && owner == nil {
		return refs
	}
	if at >= 0 && owner != nil && refs[at].Kind == owner.Kind && refs[at].Name == owner.Name && string(refs[at].UID) == owner.UID {
		return refs
	}
	out := make([]metav1.OwnerReference, 0, len(refs)+1)
	for i := range refs {
		if !controls(refs[i]) && (owner == nil || string(refs[i].UID) != owner.UID) {
			out = append(out, refs[i])
		}
	}
	if owner != nil {
		yes := true
		out = append(out, metav1.OwnerReference{
			APIVersion: version, Kind: owner.Kind, Name: owner.Name, UID: kubetypes.UID(owner.UID),
			Controller: &yes, BlockOwnerDeletion: &yes,
		})
	}
	return out
}

func controls(ref metav1.OwnerReference) bool { return ref.Controller != nil && *ref.Controller }

// timeOf returns t as objects carry it: whole seconds, or nil for the zero time.
func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.UTC().Truncate(time.Second)}
}

// instant is the inverse of timeOf.
func instant(t *metav1.Time) time.Time {
	if t == nil || t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}
