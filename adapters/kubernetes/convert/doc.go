// Package convert translates between the kinds that an API server stores and those of the library.
// Nothing here reads a clock or does I/O.
//
// # Nothing is lost
//
// An object is never written as a whole. The difference between the object as it was read and as it
// should be becomes a merge patch with the version that was read. So fields that the library does
// not know stay, and two writers never overwrite each other. A field is written only if its value
// is to change: odd stored values (an unknown phase, a quantity in another notation) stay as they are
// until then. Lists are replaced as a whole, as merge patches do, but a taint or condition that stays
// keeps the fields that the library does not know.
//
// # Where things are
//
// If the established kinds (those of API group machine.sapcloud.io, which other programs know, too)
// have a field, label or annotation for a value, the value is there. Other
// values of the metadata and the spec are in annotations (see Keys), each as text or as a line of
// name=value, and absent if zero.
//
// Other values of the status of a set or deployment are in an annotation as well. An API server
// accepts no metadata in an update of the status, so the annotation is written before (UpdateNotes),
// and can be read together with the older status. For machines a second write would cost too much:
// there are many, and these values change with every stage. They are in the message of one condition
// of type RecordType in the status, as a line of name=value. Every established schema keeps it.
//
// An API server raises the generation for changes of the stored spec only. Keys.SpecChanges counts
// the changes of those annotations that belong to the spec of a machine or set, and
// Keys.DeploymentChanges those of a deployment. The library's generation is the sum.
//
// # Stages
//
// The established kinds have no field for the stage of an operation. A text at the end of the last
// operation's description names it. These texts are those that other managers look for, so that a
// machine can be taken over during its deletion, from other managers and by them.
package convert
