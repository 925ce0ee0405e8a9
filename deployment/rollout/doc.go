// Package rollout is the arithmetic of replacing a fleet's machines set by set, and nothing else:
// numbers in, numbers out. It imports only the standard library and knows no clocks, stores or
// providers. So any controller can use it, and a property test can compare another implementation
// with it.
//
// # The fleet
//
// A fleet consists of sets. The machines of one set have one template. At most one set, the new
// set, has the template that is wanted now; all others are old. A rollout moves the machines from
// the old sets to the new one. Throughout this package
//
//   - R is the number of machines wanted, [Fleet.Replicas],
//   - S is the surge: so many more machines than R may exist for a time,
//   - U is the unavailable: so many of R machines may be missing for a time,
//   - R + S is the ceiling, and R − U, or 0 if that is negative, the floor.
//
// [Fenceposts] computes S and U from two settings such as "25%" (an [IntOrPercent], read by
// [Parse]).
//
// # One step
//
// [Step] takes the fleet as it is and returns which sets change size now ([Scale]), and why. Carry
// out the orders, let the sets create and delete machines, read the fleet again, and call Step
// again, until [Done]. Scaling (R changed) and rolling (the template changed) are one decision. It
// takes these steps in order on a working copy:
//
//  1. A new set above R is lowered to R.
//  2. If more than R + S machines are ordered, the excess is shared among all sets by size, as
//     [Shares] does it. If that would take availability below the floor, the excess moves to sets
//     with unavailable machines.
//  3. The new set grows as far as R and R + S allow.
//  4. If fewer machines than the floor are available, old sets keep available machines that they
//     were ordered to remove.
//  5. Old sets shrink, the oldest first: they give up unavailable machines first, then available
//     ones down to the floor. Unavailable machines of the new set count against that, so that old
//     machines are removed only when new ones are available. Machines that were ordered and never
//     created need not be removed: their room goes to the new set at once.
//
// # What holds
//
// For every input, even a nonsensical one:
//
//   - No order raises the number of machines above R + S or, if it is above already, any further. In
//     each set the larger of ordered and existing machines counts.
//   - No order takes the number of available machines below the floor. If it is below already, no
//     order removes another available machine.
//   - Every size ordered is between 0 and R + S, and a set gets one order at most. An old set is
//     raised only while fewer machines than the floor are available, and only as far as it has
//     available machines.
//   - Orders count as carried out: deciding again before the sets have acted orders nothing more.
//   - While R + S machines or fewer are ordered, scaling lowers no set. If only the new set is in use,
//     changing R changes no other set.
//   - If nothing is ordered, the rollout is done or [Why] names what it waits for.
//
// Step has no memory: the ordered sizes are all that it needs to know of earlier steps. Two things
// follow:
//
//   - The orders are sorted: old sets, oldest first, then the new one. Every bound holds after each
//     of them if they are carried out one after the other. To decide again after only some of them
//     is safe too, but the shares of a scale-down are then shares of what is left.
//   - A new set with surplus machines grows again only when they are gone, or when no old set has
//     machines left. Its controller may be removing the surplus already, and an old machine must not
//     be removed because of a new one that is about to be removed.
//
// The tests of another implementation, whose orders may differ, can use [Check]: it names the first
// order that breaks a bound.
//
// # Secure machines
//
// A set chooses the machines to delete, and then deletes them one after the other. A machine that
// becomes available meanwhile may be one of them. So only some available machines are sure to stay:
// the secure ones. Their number is a set's available machines less its surplus, which are its machines
// above its size when the decision began. An available old machine is removed, and a machine is
// selected in place, only if R − U secure machines are left. A scale-down does not take the secure
// machines below the floor either. Unavailable old machines are removed at any time, because that
// costs no availability.
//
// # What the caller provides
//
// The ordered sizes and machine counts must come from reads made after the last order. Terminating
// machines count neither as existing nor as available ([Set.Terminating] is for them). A set that
// shrinks must remove its unavailable machines before its available ones, because the bounds on
// availability depend on that. The caller sets [Set.Behind] if a set with surplus is raised,
// [Set.Accounted] for surplus that costs no available machine, and [Fleet.NoRestore] if no set may be
// raised.
//
// # Other strategies
//
// There are three more functions, which take a fleet like Step. [Resize] is for a paused rollout: it
// only scales. [Recreate] is for fleets in which machines of two templates must never exist at the
// same time. [InPlace] is for machines that can be updated in place: it also returns how many machines
// of each set may stop for the update now, within the same S and U.
package rollout
