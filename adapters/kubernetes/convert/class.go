package convert

import (
	"bytes"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Classes translates classes. If a class names a secret without a namespace, the namespace stays
// empty.
func Classes(keys Keys) *Kind[*v1alpha1.MachineClass, *machine.Class] {
	return &Kind[*v1alpha1.MachineClass, *machine.Class]{
		name: "class", keys: keys,
		empty: func() *v1alpha1.MachineClass { return &v1alpha1.MachineClass{} },
		clone: (*v1alpha1.MachineClass).DeepCopy,
		blank: func() *machine.Class { return &machine.Class{} },
		read:  readClass, write: writeClass,
	}
}

func readClass(_ *reader, w *v1alpha1.MachineClass, c *machine.Class) {
	c.Provider, c.ProviderSpec = w.Provider, bytes.Clone(w.ProviderSpec.Raw)
	c.SecretRef, c.CredentialsRef = readReference(w.SecretRef), readReference(w.CredentialsSecretRef)
	t := w.NodeTemplate
	if t == nil {
		return
	}
	c.NodeTemplate = &machine.NodeShape{
		Capacity: readQuantities(t.Capacity), VirtualCapacity: readQuantities(t.VirtualCapacity),
		InstanceType: t.InstanceType, Region: t.Region, Zone: t.Zone,
	}
	if t.Architecture != nil {
		c.NodeTemplate.Architecture = *t.Architecture
	}
}

func writeClass(x *writer, w *v1alpha1.MachineClass, was, now *machine.Class) {
	put(&w.Provider, was.Provider, now.Provider)
	if !bytes.Equal(was.ProviderSpec, now.ProviderSpec) {
		var value any
		if err := json.Unmarshal(now.ProviderSpec, &value); len(now.ProviderSpec) > 0 && err != nil {
			x.fail(object.Invalid("providerSpec", "is no JSON"))
		}
		if holdsNull(value) {
			x.fail(object.Invalid("providerSpec", "must not hold null"))
		}
		w.ProviderSpec.Raw = bytes.Clone(now.ProviderSpec)
	}
	writeReference(&w.SecretRef, was.SecretRef, now.SecretRef)
	writeReference(&w.CredentialsSecretRef, was.CredentialsRef, now.CredentialsRef)
	if now.NodeTemplate == nil {
		w.NodeTemplate = nil
		return
	}
	before, after := &machine.NodeShape{}, now.NodeTemplate
	if was.NodeTemplate != nil {
		before = was.NodeTemplate
	}
	if w.NodeTemplate == nil {
		w.NodeTemplate = &v1alpha1.NodeTemplate{}
	}
	t := w.NodeTemplate
	writeQuantities(x, "nodeTemplate.capacity", &t.Capacity, before.Capacity, after.Capacity)
	writeQuantities(x, "nodeTemplate.virtualCapacity", &t.VirtualCapacity, before.VirtualCapacity, after.VirtualCapacity)
	put(&t.InstanceType, before.InstanceType, after.InstanceType)
	put(&t.Region, before.Region, after.Region)
	put(&t.Zone, before.Zone, after.Zone)
	putPointer(&t.Architecture, before.Architecture, after.Architecture)
}

func readReference(r *corev1.SecretReference) *object.Key {
	if r == nil {
		return nil
	}
	return &object.Key{Namespace: r.Namespace, Name: r.Name}
}

func writeReference(w **corev1.SecretReference, was, now *object.Key) {
	switch {
	case same(was, now):
	case now == nil:
		*w = nil
	default:
		*w = &corev1.SecretReference{Namespace: now.Namespace, Name: now.Name}
	}
}

// Secrets translates secrets.
func Secrets(keys Keys) *Kind[*corev1.Secret, *machine.Secret] {
	return &Kind[*corev1.Secret, *machine.Secret]{
		name: "secret", keys: keys,
		empty: func() *corev1.Secret { return &corev1.Secret{} },
		clone: (*corev1.Secret).DeepCopy,
		blank: func() *machine.Secret { return &machine.Secret{} },
		read: func(_ *reader, w *corev1.Secret, s *machine.Secret) {
			for key, value := range w.Data {
				if s.Data == nil {
					s.Data = map[string][]byte{}
				}
				s.Data[key] = bytes.Clone(value)
			}
		},
		write: writeSecret,
	}
}

func writeSecret(_ *writer, w *corev1.Secret, was, now *machine.Secret) {
	for key := range was.Data {
		if _, stays := now.Data[key]; !stays {
			delete(w.Data, key)
		}
	}
	for key, value := range now.Data {
		if old, there := was.Data[key]; there && bytes.Equal(old, value) {
			continue
		}
		if w.Data == nil {
			w.Data = map[string][]byte{}
		}
		w.Data[key] = bytes.Clone(value)
	}
}
