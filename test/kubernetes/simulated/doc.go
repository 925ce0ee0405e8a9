// Package simulated is a provider for trials and tests. Its VMs are files in a folder, and each
// registers a node with a Kubernetes API server when it has booted, as a kubelet does. It keeps no
// state but the folder: a process that takes over goes on where another one has ended, and two
// processes at a time see the same VMs. To lose a VM, remove its file.
//
// It has groups too, for pools: folders DIR/.groups/CLUSTER/NAMESPACE/POOL whose files are the
// instances. While Run runs, it replaces lost instances, drains and replaces outdated instances one
// after the other, and deletes the nodes of instances that are gone.
//
// The provider spec of its classes is JSON, see Spec.
package simulated
