// Package apistore keeps objects of the library on a Kubernetes API server: a
// Collection is a store.Collection for one kind.
//
// Cached reads and watches are answered from memory, which one list and one
// watch of the API server keep up to date. Writes are JSON merge patches that
// hold what the caller has changed and nothing else, under the version that the
// caller has read: what others keep in the same object, also in fields unknown
// to this library, stays as it is.
//
// One rule of a store is the server's: of several updates at the same time that
// take the last finalizer of a deleted object away, more than one may succeed.
//
// What the kinds look like on the server is a Codec's to know.
package apistore
