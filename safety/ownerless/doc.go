// Package ownerless finds machines whose set is gone, and sets whose deployment is gone, and decides
// when to delete them. An object is deleted only after two live reads in which it names the same owner
// and that owner is not there.
//
// Each pass is about the whole fleet. See package safety for the form of a pass.
//
//	for {
//		plan, err := ownerless.Decide(o, policy, now())
//		if err != nil { // a mistake of the caller
//			return err
//		}
//		o.Candidates, o.Spent = plan.Candidates, plan.Spent // keep them, Looked and Began from pass to pass
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
