// Package simulated is a provider for trials and tests. Its VMs are files in a folder. When a VM has
// booted, it registers a node with a Kubernetes API server, as a kubelet does. All state is in the folder:
// a new process continues where an earlier one has ended, and two processes at the same time see the same
// VMs. To lose a VM, remove its file.
//
// For pools the provider has groups: folders DIR/.groups/CLUSTER/NAMESPACE/POOL, whose files are the
// instances. While Run runs, it replaces lost instances, and outdated ones once they are drained, and
// deletes the nodes of instances that are gone.
//
// The provider spec of its classes is JSON, see Spec.
package simulated
