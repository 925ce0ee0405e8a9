// Package object holds what all stored kinds share: keys and metadata, owners,
// label selectors, conditions and taints, and the interface that lets a store
// keep a kind without knowing it.
//
// Everything here is plain data. Nothing reads a clock or does I/O.
package object
