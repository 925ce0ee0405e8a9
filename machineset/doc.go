// Package machineset decides how a set keeps its number of equal machines: which machines it adopts,
// when it creates more and under which names, which it deletes first if there are too many, and what
// its status says.
//
// [Decide] is the entry point. It takes an [Observation], a [Policy] and the time, and returns a
// [Plan]: one write of the set, or a live read, or orders of one kind for machines, or the time
// until which there is nothing to do. It reads no clock, makes no calls and changes nothing.
//
// # A pass
//
// The caller reads the set, its machines and those without an owner from caches, and then:
//
//	for {
//		plan, err := machineset.Decide(o, policy, now())
//		switch {
//		case err != nil: // a mistake of the caller
//			return err
//		case plan.Write != nil: // store it under its version; the answer replaces o.Set
//			err = store(plan.Write, o)
//		case plan.ReadLive: // read the set, then its machines, live; o.Read says when
//			err = read(o)
//		case len(plan.Create) > 0: // in order, in batches of 1, 2, 4, …; none after plan.Until
//			err = create(&plan, o)
//		case len(plan.Delete) > 0: // none after plan.Until
//			err = remove(&plan, o)
//		case len(plan.Adopt)+len(plan.Release)+len(plan.Push) > 0: // one of them
//			err = change(&plan, o)
//		default: // decide again at plan.At, or when something changes
//			return wait(plan.At)
//		}
//		if err != nil { // a conflict, a shutdown: a new pass; or the set is gone
//			return err
//		}
//	}
//
// The fields of Plan say how each answer enters the observation. A conflict about the set ends the
// pass. The first refusal of each kind of order goes into Observation.Refused: such orders are not
// given again in that pass, and later passes wait. Package machine lists the duties that hold for
// all decisions.
//
// # Never twice
//
// Reads may be stale, processes may die between any two calls, and a create may take effect after
// the process that issued it has died. No machine is created twice all the same:
//
//   - Orders that create or delete are decided on live reads only, the machines read after the set.
//     Deletions are issued within [DeleteWithin] of such a read.
//   - Names are numbered, and a set stores how many it has given out before it uses them
//     ([Reservation]). The write compares and swaps, so a process that does not know the newest
//     reservation fails there and creates nothing.
//   - Names that were given out and have no machine are used again before any new one. So a lost create
//     and the one that replaces it can't both succeed. After [Policy].RequestTimeout they are not
//     used any more. After another RequestTimeout, when no create can be in flight, they are settled.
//
// One case is left: a machine was deleted, and is gone, before a create of the same name comes in
// late. Then it exists again, is counted, and is deleted as surplus.
package machineset
