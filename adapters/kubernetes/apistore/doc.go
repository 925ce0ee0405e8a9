// Package apistore keeps objects of the library on a Kubernetes API server: a
// Collection is a store.Collection for one kind.
//
// Memory answers cached reads and watches. One list and one watch of the API server keep it up to
// date. Writes are JSON merge patches that hold what the caller has changed and nothing else, under
// the version that the caller has read. So what other programs keep in the same object stays as it
// is, even in fields that this library does not know.
//
// One rule of a store is the server's: if several updates remove the last finalizer of a deleted
// object at the same time, more than one may succeed.
//
// A Codec knows the form of a kind on the server.
package apistore
