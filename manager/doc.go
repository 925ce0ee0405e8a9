// Package manager keeps fleets: it composes the reconcilers of all kinds, and runs them.
//
// [New] takes [Options]: a [Store], a driver, and perhaps a [Cluster], a [Drainer], [Policies] and
// [Hooks]. It returns a [Manager] and starts nothing. [Manager.Run] reconciles until its context
// ends. [InMemory] returns options with a store in memory. adapters/bolt and adapters/kubernetes
// have others. A program changes objects in the same store:
//
//	o := manager.InMemory(time.Now)
//	o.Driver = myDriver
//	m, err := manager.New(o)
//	…
//	_, err = o.Store.Deployments.Create(ctx, web)
//
// # Passes
//
// A reconciler makes passes. A pass reads the object and its surroundings from the caches. Then it
// decides and acts in turn: it carries out the one write or effect that a plan holds, puts the
// answer into the observation, and decides again, until a plan holds neither. A pass is bounded. A
// conflict with another writer begins it again from live reads; nothing is merged. What a process
// remembers in memory may be lost at the cost of time only.
//
// Package engine makes the passes. It knows no kinds. Each kind has a package of its own: machines,
// sets, deployments, pools, classes (with secrets) and fleet (what concerns the whole fleet). None
// imports another: what one needs of another, this package hands over as functions.
//
// Anything can drive the reconcilers: [Manager.Run], which brings its own work queue, a controller
// framework, or a test, one by one. [Manager.Wakes] says which objects to reconcile after a change of
// another one, and [Manager.WakeMachines] reports machines whose VMs a listing lacks or calls unhealthy.
//
// # Safety
//
// Unless Options.Policies.Safety is safety.Off, some reconcilers concern the whole fleet. They have
// one key, [Fleet], and are reconciled from the start on, see [Kind.Fleet].
//
// # Dry run
//
// With Options.DryRun every reconciler reads and decides as usual. It ends its pass with the first
// thing that it would do: it reports that to Hooks.DryRun and to the log, and does not do it. It
// looks again when something changes, or after Options.Tuning.Resync. The manager
//
//   - writes to no collection, and drains no node;
//   - makes only the driver calls that change nothing by contract: GetMachineStatus, ListMachines,
//     GetVolumeIDs and GenerateMachineClassForMigration, and for pools GetPoolStatus and ListPools.
//
// The engine executes no plan that acts. Besides, every port that could change something is replaced
// by one that refuses changes.
package manager
