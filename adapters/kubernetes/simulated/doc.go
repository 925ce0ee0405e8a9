// Package simulated is a provider to try things out with, and to test with: its
// VMs are files in a folder, and each registers a node with a Kubernetes API
// server when it has booted, as a kubelet does. It keeps no state but the
// folder: a process that takes it over goes on where another one has ended, and
// two at a time see the same VMs. To lose a VM, remove its file.
//
// It has groups too, for pools: folders DIR/.groups/CLUSTER/NAMESPACE/POOL whose
// files are the instances. While Run runs, an instance that is lost is replaced,
// those that are not as the pool says by now are emptied and replaced one after
// the other, and the nodes of those that are gone are deleted.
//
// The provider spec of its classes is JSON, see Spec.
package simulated
