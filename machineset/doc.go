// Package machineset decides how a set keeps its number of equal machines:
// which machines it claims, when it creates more and under which names, which
// ones go first when there are too many, and what its status says.
//
// [Decide] is the front door. It looks at an [Observation] and answers with a
// [Plan]: one write of the set, or a live read, or orders of one kind for
// machines, or the time until which nothing needs to be done. The caller
// carries the plan out, brings the observation up to date and asks again.
//
// # Never twice
//
// Reads may be stale, processes may die between any two calls, and a create
// may take effect after the process that issued it has died. So that no machine comes
// to be twice all the same:
//
//   - Orders that create or delete are decided on live reads only, the
//     machines read after the set. Deletions are issued within [DeleteWithin]
//     of such a read.
//   - Names are numbered, and a set stores how many it has given out before it
//     uses them ([Reservation]). The write compares and swaps, so a process
//     that does not know the newest reservation fails there and creates nothing.
//   - Names given out and not heard of are used again before any new one, so
//     that the create which was lost and the one which replaces it can't both
//     succeed. Once [Policy].RequestTimeout has passed they are not used any
//     more, and once it has passed again, when nothing can be in flight any
//     more, they are done with.
//
// What is left is a machine that was deleted, and is gone, before a create of
// the same name comes in late: then it is there once more, counted, and
// removed as surplus.
package machineset
