// Package apistore keeps objects of the library on a Kubernetes API server: a
// Collection is a store.Collection for one kind.
//
// Cached reads and watches are answered from memory, which one list and one watch of the API server
// keep up to date. A write is a JSON merge patch that has only what the caller has changed, and the
// version that the caller has read. So the values of other programs in the same object stay as they
// are, even in fields that this library does not know.
//
// One rule of store.Collection is weaker here, because the server decides: if several updates remove
// the last finalizer of a deleted object at the same time, more than one may succeed.
//
// A Codec translates between the library's type of a kind and the server's.
package apistore
