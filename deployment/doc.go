// Package deployment keeps a fleet of machines at the size and the template its owner asked for. A
// Deployment owns sets of machines, one for each template it has had. The set with the template
// wanted now is the new set; the others are old.
//
// [Decide] is the entry point. It decides what to do next about one deployment: which sets to adopt,
// to create, to resize and to delete, which machines to select for an update in place, what to
// report. Package rollout computes how far sizes may move at once.
//
// # A pass
//
// The caller reads the deployment, its sets and their machines from caches, and then:
//
//	for {
//		plan, err := deployment.Decide(o, policy, now())
//		o.Gathering = plan.Gathering
//		switch {
//		case err != nil: // a mistake of the caller
//			return err
//		case plan.Write != nil: // store it under its version; the answer replaces o.Deployment
//			err = store(plan.Write, o)
//		case plan.ReadLive: // read all of it live: deployment, sets, machines; o.Read says when
//			err = read(o)
//		case orders(&plan): // those of the one slice that is filled, from first to last
//			err = carryOut(&plan, o)
//		default: // decide again at plan.At, or when something changes
//			return wait(plan.At)
//		}
//		if err != nil { // a conflict, a shutdown: a new pass; or the deployment is gone
//			return err
//		}
//	}
//
// The fields of Plan say how each answer enters the observation. The first refusal of an order goes
// into Observation.Failed, and the rest of the slice is dropped. A conflict ends the pass. Orders
// that resize, delete or mark are not issued after Plan.Until. Package machine lists the duties that
// hold for all decisions.
//
// # Bounds
//
// A decision counts machines and not the numbers in the sets' statuses, so a set's status may lag
// behind. In numbers of machines, with R wanted, S more than R for a time, U of R missing for a
// time:
//
//   - No order raises the total, the larger of ordered and existing summed over the sets, above
//     R + S. Machines whose creation an old set has announced count as existing until it is known
//     that they are not.
//   - No order takes availability below R − U. If it is lower already, no order takes another
//     available machine. This depends on the sets: a set that shrinks must first delete its machines
//     that are not available.
//   - Orders are decided on a live read only. Deciding again before sets have acted orders nothing
//     more.
//   - A set of another owner is never touched.
//
// The same rules apply while a deployment is paused. In addition it then creates no set and rolls
// nothing. With the strategy Recreate, S is 0 and U is R, and no order makes machines of two
// templates exist at once. With InPlaceUpdate, machines of old sets are updated where they are, and
// moved to the new set one by one. A machine that was selected for it counts as not available. At
// each moment of its move it counts in one set.
//
// Each template that is rolled out gets a revision, the highest of all its deployment's sets. A
// rollout that makes no progress until the deadline is reported, not stopped.
package deployment
