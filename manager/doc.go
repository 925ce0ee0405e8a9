// Package manager keeps fleets: it composes the reconcilers of all kinds, and runs them.
//
// [New] takes [Options]: a driver, a store for each kind, policies, and perhaps a cluster, a drainer
// and hooks. It returns a [Manager] and starts nothing. [Manager.Run] reconciles until its context
// ends. [InMemory] returns options with stores in memory; adapters/bolt and adapters/kubernetes have
// others.
//
// # Passes
//
// A reconciler makes passes. A pass reads the object and its surroundings from the caches. Then it
// decides and acts in turn: it carries out the one write or effect that a plan holds, puts the
// answer into the observation, and decides again, until a plan holds neither. A pass is bounded. A
// conflict with another writer begins it again from live reads; nothing is merged. What a process
// remembers in memory may be lost at the cost of time only.
//
// Package engine makes the passes, of kinds that it does not know. Each kind is a package beside the
// others: machines, sets, deployments, pools, classes (with secrets) and fleet (what concerns the
// whole fleet). None names another. What one needs of the others, this package hands over as
// functions.
//
// Anything can drive the reconcilers: [Manager.Run], which brings its own work queue, a controller
// framework, or a test, one by one. [Manager.Wakes] says which change of which object is a reason to
// look at which other.
//
// # Safety
//
// Unless Options.SafetyPolicy is safety.Off, some reconcilers concern the whole fleet. They have one
// key, [Fleet], and are reconciled from the start on, see [Kind.Fleet].
//
// With Options.Observe all of this is decided and reported, and nothing is done: the engine executes
// no plan that acts, and every port that could change something stands behind one that does not.
package manager
