// Package store is the port through which Millwright reads and writes its
// objects, and an implementation of it in memory.
//
// A store knows no kinds: it keeps whatever satisfies object.Object. What it
// promises is written on [Collection]; package storetest checks any
// implementation against those rules.
//
// The rules are those of a Kubernetes API server with a status subresource, so
// that a controller meets the same conflicts, and can be killed between the
// same writes, whatever keeps its objects.
package store
