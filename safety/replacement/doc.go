// Package replacement decides whether a machine may be given up now: failed for its health, or
// deleted because others delete its node. A budget limits how many machines of a deployment, or of a
// set without one, are in replacement at a time.
//
// The caller that carries out machine.AskGrant makes a pass, see package safety, within the machine's
// own pass.
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
// If there is a budget, set Budgeted in the observations of all machines. In the same pass the machine
// writes that it has failed, under the version that was read before it asked for the grant.
package replacement
