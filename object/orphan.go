package object

// OrphanDependents is the finalizer that a deletion sets if the objects that the object owns are to stay.
// The garbage collector removes the owner from those objects, and then the finalizer from the object.
// The name is that of Kubernetes.
const OrphanDependents = "orphan"
