// Package object holds what all stored kinds share: keys and metadata, owners, label selectors,
// conditions and taints, and the interface with which a store keeps a kind without knowing it.
package object
