// Package replacement decides whether a machine may be given up now: failed for its health, or
// deleted because others delete its node. A budget limits how many machines of a deployment, or of a
// set without one, are in replacement at a time.
//
// The executor of machine.AskGrant makes a pass of its own inside the machine's pass.
//
//	for {
//		plan, err := replacement.Decide(o, policy, now())
//		switch {
//		case err != nil: // a mistake of the caller
//			return err
//		case plan.ReadFleet: // read live: what holds the budget, then the sets, then their machines
//			err = read(o)
//		case plan.Write != nil: // compare and swap; the answer replaces the budget's holder
//			err = store(plan.Write, o)
//			o.Taken = true
//		default:
//			return answer(plan.Grant)
//		}
//		if err != nil { // a conflict, a shutdown: a new pass
//			return err
//		}
//	}
//
// If there is a budget, every machine is observed with Budgeted set. The machine's own write, that
// it has failed, happens in the same pass. Its version is the one read before the pass asked for
// the grant.
package replacement
