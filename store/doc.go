// Package store is the port through which Millwright reads and writes its objects, and an
// implementation of it in memory.
//
// A store knows no kinds: it keeps anything that satisfies object.Object. [Collection] documents its
// rules, and package storetest checks any implementation against them.
//
// [Edit], [EditStatus] and [CreateOrEdit] change one object that others write too: they read, change,
// write, and retry on a conflict. [Await] waits until one object has a certain state. [AwaitGone]
// waits until it is gone.
//
// The rules are those of a Kubernetes API server with a status subresource. So a controller meets
// the same conflicts, and can be killed between the same writes, on every store:
//
//   - A write carries the version it was made from, and fails with [ErrConflict] if that is not the
//     stored one.
//   - An update of the spec leaves the status alone, and the other way round. Only a change of the
//     spec or a deletion raises the generation.
//   - A deleted object stays until its last finalizer is removed.
//   - Cached reads may be stale; live reads are not. A watch reports changes late, and merges those
//     of one object.
//
// [NewMemory] returns a store in memory. [NewMirror] returns a cache of another store, which the
// adapter for API servers uses. [ReadOnly] makes a store read-only, for dry runs.
package store
