// Package ownerless decides which machines have lost their set, and which sets have lost their
// deployment, and deletes them. An object is deleted only if two live reads show it with the same
// owner and show that owner nowhere.
//
// One pass for the fleet. The form of a pass is in the documentation of package safety.
//
//	o := &ownerless.Observation{Machines: machines, Sets: sets, Deployments: deployments, Candidates: memory, Spent: spent, …}
//	for {
//		plan, err := ownerless.Decide(o, policy, now())
//		memory, o.Candidates = plan.Candidates, plan.Candidates
//		spent, o.Spent = plan.Spent, plan.Spent
//		switch {
//		case plan.Read:            // live lists: all machines, then all sets, then all deployments
//		case len(plan.Delete) > 0: // for each: read the object live, then its owner; ask StillOwnerless, delete
//		default:                   // wait until plan.At
//		}
//	}
package ownerless
