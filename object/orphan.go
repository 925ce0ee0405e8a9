package object

// OrphanDependents is a finalizer of a deletion that leaves behind what the object owns. The
// garbage collector removes the owner from those objects, and then the finalizer from the object.
// The name is that of Kubernetes.
const OrphanDependents = "orphan"
