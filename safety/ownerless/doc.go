// Package ownerless decides which machines have lost their set, and which sets have lost their
// deployment, and deletes them. An object is deleted only if two live reads show it with the same
// owner and show that owner nowhere.
//
// One pass for the fleet. The form of a pass is in the documentation of package safety.
//
//	for {
//		plan, err := ownerless.Decide(o, policy, now())
//		if err != nil { // a mistake of the caller
//			return err
//		}
//		o.Candidates, o.Spent = plan.Candidates, plan.Spent // keep both from pass to pass
//		switch {
//		case plan.Read: // live lists: all machines, then all sets, then all deployments
//			err = read(o)
//		case len(plan.Delete) > 0: // for each: read the object live, then its owner; ask StillOwnerless, delete
//			err = remove(plan.Delete, o)
//		default:
//			return wait(plan.At)
//		}
//		if err != nil { // a shutdown, an error of the store
//			return err
//		}
//	}
package ownerless
