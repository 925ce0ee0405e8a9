// Package machinepool decides what to do about a pool: worker machines that the provider manages as
// one group (an auto scaling group, a managed instance group, a scale set). The provider creates,
// watches and replaces the members. If the provider has no such groups, or its choices are not
// wanted, package machineset keeps machines one by one. docs/concepts/pools.md compares the two.
//
// [Decide] is the entry point. It takes what is known (an [Observation]), how to treat pools (a
// [Policy]) and the time, and returns a [Plan]: one write, or one effect, or when to decide again.
// It reads no clock, makes no calls and changes nothing. Passes have the same form as for machines;
// see package machine.
//
// The caller's duties beyond those of package machine:
//
//   - The last answer to GetGroup is kept from pass to pass, with the time it was
//     asked. Looked is set in the pass that asked. The first changing effect
//     drops the answer. Losing it costs one call.
//   - A [Memory] for each pool is given each answer to GetGroup ([Memory.See]). Losing it costs time.
//   - Once a write is stored whose plan Announces, Announced is set until the pass ends.
//   - Observation.Nodes has the nodes by the provider IDs in the spec. It is nil while the caches are
//     not in sync, and an empty map if there are no nodes.
//
// # What happens to a pool
//
// [PhaseTable] holds every transition from one [Phase] to another. Each pass computes the phase
// from the state: it is the highest-ranked phase whose condition holds. So a running pool falls
// back when a node is missing, and a failure disappears with its cause. A group is made once the
// name of the bootstrap data is set (to nothing, if there is nothing to bootstrap) and the data are
// there.
//
// A write announces every call that changes the group. The write fails if the record is old, so that
// an old record resizes nothing. A size is ordered as a number, never as a difference. Instances that the
// library chooses to remove are first recorded, then drained, and then removed by name. While the
// provider owns the size (an autoscaler of its own), the library never orders a size, and the spec
// follows.
//
// A deletion first removes the group, then the bootstrap data that were made for the pool, then the
// finalizer of the record. It does not drain nodes. No write announces it, so it needs a record
// that was read live: an old one may describe a pool whose name another pool has now.
package machinepool
