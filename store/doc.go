// Package store is the port through which Millwright reads and writes its
// objects, and an implementation of it in memory.
//
// A store knows no kinds: it keeps anything that satisfies object.Object. [Collection] documents
// its rules, and package storetest checks any implementation against them.
//
// [Edit], [EditStatus] and [CreateOrEdit] change one object that others write too: they read, change,
// write, and begin again on a conflict. [Await] waits for a state of one object, and tells what is
// missing until then.
//
// The rules are those of a Kubernetes API server with a status subresource. So a controller meets
// the same conflicts, and can be killed between the same writes, on every store.
package store
