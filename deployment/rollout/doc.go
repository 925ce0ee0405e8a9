// Package rollout is the arithmetic of replacing a fleet's machines set by set, alone: numbers in, numbers out.
// It imports the standard library only and knows neither clocks, stores nor providers, so a controller of any kind
// can use it, and a property test can hold another implementation against it.
//
// # The fleet
//
// A fleet is made of sets. The machines of one set have one template; at most one set, the new set, has the template
// that is wanted now, all others are old. A rollout moves the machines from the old sets to the new one. Throughout
// this package
//
//   - R is the number of machines wanted, [Fleet.Replicas],
//   - S is the surge: so many machines more than R may exist for a time,
//   - U is the unavailable: so many machines of R may be missing for a time,
//   - R + S is the ceiling, and R − U, or 0 if that is negative, the floor.
//
// S and U are what [Fenceposts] makes of two settings such as "25%" (an [IntOrPercent], read by [Parse]).
//
// # One step
//
// [Step] looks at the fleet as it is and answers which sets change size now ([Scale]), and why. Carry the orders out,
// let the sets create and delete machines, look again, and call it again, until [Done]. Scaling (R changed) and
// rolling (the template changed) are one decision, taken in this order on a working copy:
//
//  1. A new set above R goes down to R.
//  2. If more than R + S machines are ordered, the excess is shared among all sets by size, as [Shares] does it.
//     Where that would take availability below the floor, the excess moves to sets with unavailable machines.
//  3. The new set grows as far as R and R + S allow.
//  4. If fewer machines than the floor are available, old sets keep available machines that they were to remove.
//  5. Old sets shrink: first machines that are not available, then available ones down to the floor, both oldest
//     set first, and only as far as unavailable machines of the new set leave room. What that frees without anything
//     having to be removed (machines that were ordered and never created) goes to the new set at once.
//
// # What holds
//
// For every input, also a nonsensical one:
//
//   - No order raises the number of machines, counted as the larger of ordered and existing in each set, above R + S
//     or above what it was.
//   - No order takes the available machines below the floor or, if they are fewer already, takes another one.
//   - Every size ordered is between 0 and R + S, and a set gets one order at most. An old set is raised only while fewer
//     machines than the floor are available, and only as far as it has available machines.
//   - Orders count as carried out: deciding again before the sets have acted orders nothing more.
//   - As long as R + S machines or fewer are ordered, scaling lowers no set; with the new set alone in use, changing R
//     touches no other.
//   - If nothing is ordered, the rollout is done or [Why] names what it waits for.
//
// Step keeps no memory and reads no annotations; what it needs to know of the past is in the sizes. Two things follow:
//
//   - The orders come in an order: old sets, oldest first, then the new one. Every bound holds after each of them if
//     they are carried out one after the other. To decide again after only some of them is safe too, but the shares
//     of a scale-down are then shares of what is left.
//   - A new set that still has more machines than it is ordered to have grows again only after they are gone, or when
//     no old set has machines left: whoever removes them may be acting on the earlier, smaller size already, and old
//     machines must not be given up for machines that are about to go.
//
// # Secure machines
//
// A set chooses its victims, and then deletes them one after the other. A machine that becomes available meanwhile may be
// one of them. So a set counts in two ways:
//
//   - Its usable machines are min(available, ordered): what stays if it chooses now.
//   - Its secure machines are what stays whichever machines it is removing: its available machines less its surplus, and
//     never more than ordered. The surplus is what it had above its size when the decision began. A set without surplus
//     has no list of victims, so all its usable machines are secure.
//
// An available old machine goes, and a machine is selected in place, only if R − U secure machines are left. A scale-down
// takes no secure machine below the floor either. If fewer than the floor are secure, it takes unavailable machines only,
// and the rest when the sets have removed their surplus. Unavailable old machines go as ever: that costs nothing.
//
// An order raises the surplus of its set, so fewer machines are secure after it than it promised. To decide again then
// orders no more, and never the opposite: what is secure decides only whether more may go.
//
// A set that is raised may still act on the smaller size. The caller says so with [Set.Behind], until the set has seen
// the new one. Until then the set counts as if it still had the smaller size.
//
// # What is the caller's
//
// [Set.Behind], if a set with surplus is raised, [Set.Accounted], for surplus that costs no available machine, and
// [Fleet.NoGiveBack], if no set may be raised.
//
// Numbers of one moment: ordered sizes and machine counts from reads no older than the last order. Terminating machines
// are not counted, neither as existing nor as available (Recreate and Resize have a number of their own for them). When a set shrinks, its unavailable machines must go before
// its available ones; the bounds on availability rest on that.
//
// # Without rolling, and without overlap
//
// Step knows no pause: [Resize] is the same for a rollout that is on hold while R may change. [Recreate] is for fleets in
// which machines of two templates must never exist at once. Both take the same fleet and answer in the same way.
//
// # Without replacing
//
// [InPlace] is for machines that can be updated where they are. Besides sizes it says how many machines of which set may
// stop for it now. It keeps the bounds as Step does: a machine that is being updated is not available, and new machines,
// replaced ones and updated ones share the same S and U.
package rollout
