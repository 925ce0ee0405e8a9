package object

// OrphanDependents is the finalizer that a deletion carries which is to leave
// behind what the object owns. Whoever collects garbage takes the owner off
// those, and then the finalizer off the object. The name is that of Kubernetes.
const OrphanDependents = "orphan"
