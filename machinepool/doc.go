// Package machinepool decides what is to be done about a pool: worker machines
// that the provider manages as one group (an auto scaling group, a managed
// instance group, a scale set), of which it makes, watches and replaces the
// members. Where the provider has no such groups, or its choices are not
// wanted, package machineset keeps machines one by one; docs/pools.md compares.
//
// [Decide] is the front door. It is given what is known (an [Observation]), how
// pools are to be treated (a [Policy]) and the time, and gives back a [Plan]: one
// write, or one effect, or when to look again. It reads no clock, calls nobody
// and changes nothing. Passes are made as for machines; see package machine.
//
// The caller's duties beyond those of package machine:
//
//   - An answer to GetGroup is kept from pass to pass, with the time it was
//     asked, and sets Looked in its own pass. With the first changing effect it
//     is dropped. Losing it costs one call.
//   - Once a write is stored whose plan Announces, Announced is set until the pass ends.
//   - The caller names the nodes by the provider IDs in the spec. Nil is for
//     caches that are not in sync, an empty map for no nodes.
//
// # What happens to a pool
//
// [PhaseTable] holds every way from one [Phase] to another. The phase follows
// from the state each time: of the phases whose condition holds it is the one
// with the highest rank, so that a running pool falls back when a node is
// missing, and a failure goes with its cause. A group is made once the name of
// the bootstrap data is set (to nothing, if there is nothing to bootstrap) and
// the data are there.
//
// Every changing call is announced by a write that only a fresh record survives,
// so that an old record resizes nothing. A size is ordered as a number, never
// as a difference. Instances that we choose to go are stored before they are
// touched, emptied, and then removed by name. While the provider owns the size
// (an autoscaler of its own), no size is ever ordered, and the spec follows.
//
// A deletion has the group gone first, then the bootstrap data that were made
// for the pool, then lets the record go. Nodes are not drained for it. No write
// announces it, so it is carried out on a record that was read live: an old one
// may speak of a pool whose name another has by now.
package machinepool
