// Package manager is the shell around the decisions: it reads objects from a
// store, asks the core what to do, and does it, with one reconciler a kind.
//
// A reconciler makes passes. A pass reads the object and its surroundings from
// the caches, then decides and does in turn: it carries out the one write or
// effect that a plan holds, puts the answer into the observation, and decides
// again, until a plan holds neither. A pass is bounded; a conflict with another
// writer begins it anew from a fresh read; nothing is merged. What a pass
// remembers in memory may be lost at the cost of time only.
//
// Reconcilers can be driven by anything: by [Manager.Run], which brings its own
// work queue, by a controller framework, or one by one in a test. [Manager.Wakes]
// says which change of which object is a reason to look at which other.
//
// With Options.Observe all of this is decided and told, and nothing is done:
// every port that could change something stands behind one that does not.
//
// Where Options.SafetyPolicy is given, some reconcilers look after the whole
// fleet. They have one key, [Fleet], and are looked at from the start on, see
// [Kind.Fleet].
package manager
