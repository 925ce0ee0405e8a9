// Package convert translates between the kinds that an API server stores and
// those that the library decides on. Nothing here reads a clock or does I/O.
//
// # Nothing is lost
//
// An object is never written as a whole. The change between the object as it was read and as it
// should be becomes a merge patch with the version that was read. So fields that the library does
// not know survive, and two writers never overwrite each other. A field is only written if its
// value differs from what the stored one reads as: odd values (an unknown phase, a quantity in
// another notation) stay as they are until a decision changes them. Lists are replaced as a whole,
// as merge patches do. The unknown fields of a taint or a condition that stays are kept.
//
// # Where things are
//
// If the established kinds have a field, label or annotation for a value, the value is there. The
// rest of the metadata and the spec is in annotations (see Keys), each as text or as a line of
// name=value, absent when zero. So is the rest of the status of a set or deployment. An API server accepts no
// metadata with a status, so the annotation is written first (UpdateNotes), and everything in it can
// be read beside the status of before. Machines are many, and their rest changes with every stage: it
// is in one condition of type RecordType in the status, with such a line as its message, which every
// established schema keeps.
//
// An API server raises the generation for changes of the stored spec alone. Keys.SpecChanges counts
// changes of a spec's annotations, and Keys.DeploymentChanges those of a deployment's. The
// generation that the library sees is the sum.
//
// # Stages
//
// The established kinds have no field for the stage of an operation. The end of the last
// operation's description says it. The spellings are those that other managers look for, so that a
// machine can be taken over during its deletion, from them and by them.
package convert
