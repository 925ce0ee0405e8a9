package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the kinds of this package.
var GroupVersion = schema.GroupVersion{Group: "machine.sapcloud.io", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package, and their lists.
var AddToScheme = schemeBuilder.AddToScheme

var schemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Machine{}, &MachineList{},
		&MachineSet{}, &MachineSetList{},
		&MachineDeployment{}, &MachineDeploymentList{},
		&MachineClass{}, &MachineClassList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
})
