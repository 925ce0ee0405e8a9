// Package v1alpha1 holds the kinds of group machine.sapcloud.io as an API
// server stores them: Machine, MachineSet, MachineDeployment and MachineClass.
//
// Names of fields, their types, subresources, columns and short names are those
// that fleets, manifests and other programs already use. The packages of the
// library know nothing of them: package convert translates.
//
// +kubebuilder:object:generate=true
// +groupName=machine.sapcloud.io
package v1alpha1

//go:generate go -C ../../tools tool controller-gen object crd paths=./../api/v1alpha1 output:crd:dir=../config/crds
