// Package manager keeps fleets: it composes reconcilers of all kinds, and runs them.
//
// A reconciler makes passes. A pass reads the object and its surroundings from the caches, then decides
// and acts in turn: it carries out the one write or effect that a plan holds, puts the answer into the
// observation, and decides again, until a plan holds neither. A pass is bounded. A conflict with another
// writer begins it again from live reads; nothing is merged. What a process remembers in memory may be
// lost at the cost of time only.
//
// Package engine makes the passes, of kinds that it does not know. Each kind is a package beside the
// others: machines, sets, deployments, pools, classes (with secrets) and fleet (what concerns the whole
// fleet). None names another. What one needs of the others, this package hands over as functions.
//
// Reconcilers can be driven by anything: by [Manager.Run], which brings its own
// work queue, by a controller framework, or one by one in a test. [Manager.Wakes]
// says which change of which object is a reason to look at which other.
//
// With Options.Observe all of this is decided and told, and nothing is done: the engine executes no plan
// that acts, and every port that could change something stands behind one that does not.
//
// Where Options.SafetyPolicy is given, some reconcilers look after the whole
// fleet. They have one key, [Fleet], and are looked at from the start on, see
// [Kind.Fleet].
package manager
