package apistore_test

import (
	"encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/millwright-go/millwright/adapters/kubernetes/apistore"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store/storetest"
)

var version = schema.GroupVersion{Group: "storetest.example", Version: "v1"}

// thing is storetest's kind as the server knows it. The server has more fields
// than these.
type thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              thingSpec   `json:"spec"`
	Status            thingStatus `json:"status,omitzero"`
}

type thingSpec struct {
	Replicas  int64        `json:"replicas"`
	Class     string       `json:"class,omitempty"`
	Zones     []string     `json:"zones,omitempty"`
	NotBefore *metav1.Time `json:"notBefore,omitempty"`
	// Odd makes the codec report a problem.
	Odd bool `json:"odd,omitempty"`
}

type thingStatus struct {
	Ready      int64            `json:"ready,omitempty"`
	Node       string           `json:"node,omitempty"`
	Checked    *metav1.Time     `json:"checked,omitempty"`
	Conditions []thingCondition `json:"conditions,omitempty"`
}

type thingCondition struct {
	Type    string       `json:"type"`
	Status  string       `json:"status"`
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
	Since   *metav1.Time `json:"since,omitempty"`
}

type thingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []thing `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (t *thing) DeepCopyObject() runtime.Object { return deepCopy(t) }

// DeepCopyObject implements runtime.Object.
func (l *thingList) DeepCopyObject() runtime.Object { return deepCopy(l) }

func deepCopy[T any](from *T) *T {
	text, err := json.Marshal(from)
	to := new(T)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		panic(err)
	}
	return to
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(version.WithKind("Thing"), &thing{})
	s.AddKnownTypeWithName(version.WithKind("ThingList"), &thingList{})
	metav1.AddToGroupVersion(s, version)
	return s
}

// codec returns a codec for thing.
func codec() apistore.Codec[*storetest.Object, *thing] {
	return merging[*storetest.Object, *thing]{
		Blank: func() *thing { return &thing{} }, Decode: decode, Encode: encode, EncodeStatus: encodeStatus,
	}
}

func decode(raw *thing) (*storetest.Object, []*object.FieldError) {
	o := &storetest.Object{
		Meta: readMeta(raw),
		Spec: storetest.Spec{
			Replicas: raw.Spec.Replicas, Class: raw.Spec.Class, Zones: raw.Spec.Zones,
			NotBefore: instant(raw.Spec.NotBefore),
		},
		Status: storetest.Status{
			Ready: raw.Status.Ready, Node: raw.Status.Node, Checked: instant(raw.Status.Checked),
		},
	}
	for _, c := range raw.Status.Conditions {
		o.Status.Conditions = append(o.Status.Conditions, object.Condition{
			Type: c.Type, Status: object.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			Since: instant(c.Since),
		})
	}
	if raw.Spec.Odd {
		return o, []*object.FieldError{object.Invalid("spec.odd", "is odd")}
	}
	return o, nil
}

func encode(o *storetest.Object, raw *thing) error {
	if o.Spec.Class == "can't be stored" {
		return errors.New("spec.class")
	}
	writeMeta(&o.Meta, raw, version.String())
	raw.Spec.Replicas, raw.Spec.Class, raw.Spec.Zones = o.Spec.Replicas, o.Spec.Class, o.Spec.Zones
	raw.Spec.NotBefore = timeOf(o.Spec.NotBefore)
	return nil
}

func encodeStatus(o *storetest.Object, raw *thing) error {
	raw.Status = thingStatus{Ready: o.Status.Ready, Node: o.Status.Node, Checked: timeOf(o.Status.Checked)}
	for _, c := range o.Status.Conditions {
		raw.Status.Conditions = append(raw.Status.Conditions, thingCondition{
			Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: timeOf(c.Since),
		})
	}
	return nil
}
