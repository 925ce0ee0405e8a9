// Package deployment keeps a fleet of machines at the size and the template its owner asked for. A
// Deployment owns sets of machines, one for each template it has had. The set with the template
// wanted now is the new set; the others are old. Decide decides what to do next about one
// deployment: which sets to claim, to create, to resize, what to report to its owner.
//
// A decision counts machines and not the numbers in the sets' statuses, so a set's status may lag
// behind. Package rollout computes how far sizes may move at once.
//
// The rules that orders keep, in numbers of machines: R wanted, S more than R
// for a time, U of R missing for a time.
//
//   - No order raises the total, the larger of ordered and existing summed over
//     the sets, above R + S. Machines whose creation an old set has announced
//     count as existing until it is known that they are not.
//   - No order takes availability below R − U. If it is lower already, no order
//     takes another available machine. This depends on the sets: a set that
//     shrinks must first delete its machines that are not available.
//   - Orders are decided on a live read only. Deciding again before sets have
//     acted orders nothing more.
//   - A set of another owner is never touched.
//
// The same rules apply while a deployment is paused. In addition it then creates no set and rolls
// nothing. With the strategy Recreate, S is 0 and U is R, and no order makes machines of two
// templates exist at once. With InPlaceUpdate, machines of old sets are updated where they are, and
// moved to the new set one by one. A machine that was selected for it counts as not available. At
// each moment of its move it counts in one set.
//
// Each template that is rolled out gets a revision, the highest of all its
// deployment's sets. A rollout that gets no further for the progress deadline
// is reported, not stopped.
package deployment
