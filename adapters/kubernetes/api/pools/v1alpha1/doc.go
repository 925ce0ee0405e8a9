// Package v1alpha1 has the kind of API group millwright-go.github.io as an API server stores it:
// MachinePool, a group of machines that the provider manages.
//
// The API group is not machine.sapcloud.io, because that group belongs to another project, and has no
// such kind. It is named after the site of this project. Fields have the names that package
// machinepool uses. Package convert translates.
//
// +kubebuilder:object:generate=true
// +groupName=millwright-go.github.io
package v1alpha1

//go:generate go -C ../../../tools tool controller-gen object crd paths=./../api/pools/v1alpha1 output:crd:dir=../config/crds
