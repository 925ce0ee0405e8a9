// Package convert translates between the kinds that an API server stores and
// those that the library decides on. Nothing here reads a clock or does I/O.
//
// # Nothing is lost
//
// An object is never written as a whole. What changed between the object as it
// was read and as it is to be becomes a merge patch with the version that was
// read, so that fields nobody here knows survive, and so that two writers
// never overwrite each other. A field is only written if its value differs from
// what the stored one reads as: odd values (an unknown phase, a quantity in
// another notation) stay as they are until somebody decides on another value.
// Lists are replaced as a whole, as merge patches do; what is unknown here of a
// taint or a condition that stays is kept.
//
// # Where things are
//
// What the established kinds have a field, label or annotation for is there.
// The rest of the metadata and the spec is in annotations (see Keys), each as
// text or compact JSON, absent when zero. The rest of a status can't be: an
// API server takes no metadata with a status, and two writes in place of one
// would be torn by a crash. It is one condition of type RecordType in the
// status, its message compact JSON, so that every established schema keeps it.
//
// An API server counts a new generation for changes of the stored spec alone.
// What of a spec is in annotations is counted by Keys.SpecChanges, of a deployment by
// Keys.DeploymentChanges, and the generation seen by the library is the sum.
//
// # Stages
//
// The established kinds have no field for the stage of an operation. It is told
// by how the description of the last operation ends; the spellings are those
// that others look for, so that a machine can be taken over in the midst of
// its deletion, from them and by them.
package convert
