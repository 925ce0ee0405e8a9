// Package machineclass decides how long classes and their secrets are kept,
// and how a provider's own, older kind of class becomes one of ours.
//
// A class that anybody refers to carries machine.Finalizer, and so does a
// secret that a class refers to: whoever deletes one too early gets it held
// until the last machine that needs it for its own deletion is gone. The
// finalizer goes when nothing refers to the object any more, whether it is
// being deleted or not.
//
// A migration has five steps, each of which finds out by itself whether it
// was done before: the older class is read; the driver fills a class of ours;
// that is stored under the same name; the older one is marked; and those who
// refer to it are told the new kind. Marking comes before the references,
// since these lead to the older class: once they have moved, nobody would
// find one that was not marked yet. To move a reference changes no machine.
package machineclass
