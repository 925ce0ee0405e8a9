// Package v1alpha1 holds the kind of API group millwright-go.github.io as an API
// server stores it: MachinePool, a group of machines that the provider manages.
//
// The API group is not machine.sapcloud.io, since that one has no such kind and
// belongs to others. It is named for where this project lives.
// Fields have the names that package machinepool uses, so that what it says
// of a field is found in the object; package convert translates.
//
// +kubebuilder:object:generate=true
// +groupName=millwright-go.github.io
package v1alpha1

//go:generate go -C ../../../tools tool controller-gen object crd paths=./../api/pools/v1alpha1 output:crd:dir=../config/crds
