package mcm

import (
	"bytes"
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// TranslationError says that a part of a request can't be converted to the provider's type. Its code is
// INTERNAL. It does not show the part's content, because a provider spec may hold secrets.
type TranslationError struct {
	Call codes.Call
	Part string // "machine", "class" or "volume"
	Name string // of that object
	// Field is the field whose types don't match, such as spec.providerID. It may be empty.
	Field string
}

// Error names the call, the part and the field.
func (e *TranslationError) Error() string {
	text := e.Call.String() + " was not called: the " + e.Part + " " + e.Name + " can't be translated"
	if e.Field != "" {
		text += ", at " + e.Field
	}
	return text
}

// Code returns INTERNAL.
func (e *TranslationError) Code() codes.Code { return codes.Internal }

// translate converts an object of this library to the provider's type T, by way of the API type W. It
// returns nil for nil.
func translate[T any, C interface {
	comparable
	ObjectMeta() *object.Meta
}, W any](name codes.Call, part string, ours C, as func(C) (W, error)) (*T, error) {
	var none C
	if ours == none {
		return nil, nil
	}
	theirs := new(T)
	text, err := as(ours)
	if err == nil {
		err = recode(text, theirs)
	}
	if err != nil {
		return nil, &TranslationError{Call: name, Part: part, Name: ours.ObjectMeta().Key.String(), Field: fieldOf(err)}
	}
	return theirs, nil
}

// recode converts a value to another type by way of JSON.
func recode(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// fieldOf returns the field that an error is about, or "". The rest of the error may show the content of
// the field.
func fieldOf(err error) string {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return mismatch.Field
	}
	return ""
}

// These convert objects of this library to API types.
var (
	machines = convert.Machines(convert.DefaultKeys())
	classes  = convert.Classes(convert.DefaultKeys())
)

// asMachine returns a machine as an API server would return it, with its status.
func asMachine(m *machine.Machine) (*v1alpha1.Machine, error) {
	w, err := machines.Create(m)
	if err != nil {
		return nil, err
	}
	status, err := machines.UpdateStatus(w, m)
	if err == nil && status != nil {
		err = json.Unmarshal(status, w) // the patch has the whole status, because w had none
	}
	setServerFields(&w.ObjectMeta, &m.Meta)
	return w, err
}

// asClass returns a class as an API server would return it. The provider spec is copied as it is, without
// the checks for storing it.
func asClass(c *machine.Class) (*v1alpha1.MachineClass, error) {
	blank := c.Clone()
	blank.ProviderSpec = nil
	w, err := classes.Create(blank)
	if err != nil {
		return nil, err
	}
	w.ProviderSpec.Raw = bytes.Clone(c.ProviderSpec)
	setServerFields(&w.ObjectMeta, &c.Meta)
	return w, nil
}

// setServerFields sets the metadata that only an API server sets.
func setServerFields(w *metav1.ObjectMeta, m *object.Meta) {
	w.UID, w.ResourceVersion, w.Generation = types.UID(m.UID), m.Version, m.Generation
	w.CreationTimestamp = metav1.NewTime(m.CreatedAt)
	if m.Deleted() {
		w.DeletionTimestamp = &metav1.Time{Time: m.DeletedAt}
	}
}

// asSecret returns a secret without a name. It is never nil.
func asSecret(s *machine.Secret) *corev1.Secret {
	if s == nil {
		return &corev1.Secret{}
	}
	return &corev1.Secret{Data: s.Clone().Data}
}

// asSpec returns the spec of a volume as the cluster has it, or one with what is known of the volume.
func asSpec(v *driver.Volume) (*corev1.PersistentVolumeSpec, error) {
	spec := &corev1.PersistentVolumeSpec{}
	if len(v.Spec) > 0 {
		if err := json.Unmarshal(v.Spec, spec); err != nil {
			return nil, &TranslationError{Call: codes.GetVolumeIDs, Part: "volume", Name: v.Name, Field: fieldOf(err)}
		}
		return spec, nil
	}
	if v.Type != "" {
		spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v.Type, VolumeHandle: v.Handle, VolumeAttributes: v.Attributes}
	}
	return spec, nil
}
