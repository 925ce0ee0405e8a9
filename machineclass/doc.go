// Package machineclass decides how long classes and their secrets are kept, and how a provider's
// own, older kind of class is migrated to ours.
//
// [Decide] decides about the class of one name, [DecideSecret] about one secret. Passes have the
// same form as for machines, see package machine: carry out the write or the effect of the plan, put
// its answer into the observation, decide again. The caller counts who uses the class ([Users]) and
// who refers to an older one ([Reference]). Cached reads suffice to add a finalizer. It is removed
// only after live reads, of the class first and then of its users, which the plan asks for.
//
// A class that any object refers to carries machine.Finalizer, and so does a secret that a class
// refers to. So if a user deletes one too early, it stays until the last machine that needs it for
// its own deletion is gone. The finalizer is removed when no object refers to it any more, whether
// it is being deleted or not.
//
// A migration has five steps. The older class is read. The driver fills a class of ours. That is
// stored under the same name. The older class is marked. The references to it move to the new kind.
// Each step finds out by itself whether it was done before. The class is marked before the
// references move, because a pass finds an older class by the references to it: without them, no
// pass would find that the mark is missing. Moving a reference changes no VM.
package machineclass
