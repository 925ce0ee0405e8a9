// Package v1alpha1 has the kinds of API group machine.sapcloud.io as an API server stores them:
// Machine, MachineSet, MachineDeployment and MachineClass.
//
// The names of fields, their types, subresources, columns and short names are those that fleets,
// manifests and other programs already use. Apart from the adapters and commands, the library
// does not depend on these types: package convert translates.
//
// +kubebuilder:object:generate=true
// +groupName=machine.sapcloud.io
package v1alpha1

//go:generate go -C ../../tools tool controller-gen object crd paths=./../api/v1alpha1 output:crd:dir=../config/crds
