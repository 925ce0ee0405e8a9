// Package cluster is the target cluster of a fleet on a Kubernetes API server:
// its nodes, for manager.Options.Cluster, and what runs on them, for
// manager.DrainOptions.
//
// What the library records on a node is kept in annotations of the node, as
// package convert says. What was applied last is where machine-controller-manager
// keeps it, so that a node can change hands in either direction; the rest has
// keys that begin with "millwright-go/". Decisions do not see these annotations.
package cluster
