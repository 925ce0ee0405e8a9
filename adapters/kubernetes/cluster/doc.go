// Package cluster is the target cluster of a fleet on a Kubernetes API server:
// its nodes, for manager.Options.Cluster, and what runs on them, for
// drains.Options.
//
// The library keeps its records on a node in annotations, as package convert describes. The record
// of what was applied last is where machine-controller-manager keeps it, so that a node can change
// managers in either direction. The other keys begin with "millwright-go/". Decisions do not see
// these annotations.
package cluster
