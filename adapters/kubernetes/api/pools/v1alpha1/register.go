package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the kind of this package.
var GroupVersion = schema.GroupVersion{Group: "millwright-go.github.io", Version: "v1alpha1"}

// AddToScheme registers the kind of this package, and its list.
var AddToScheme = schemeBuilder.AddToScheme

var schemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &MachinePool{}, &MachinePoolList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
})
