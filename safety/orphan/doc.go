// Package orphan finds VMs that belong to no machine, and groups of VMs that belong to no pool, and
// decides when to delete them. A VM is deleted only if two listings show it and a live read of the
// machines after each listing shows no owner.
//
// Each pass is about the whole fleet, so there is never more than one at a time. See package safety
// for the form of a pass.
//
//	for {
//		plan, err := orphan.Decide(o, policy, now())
//		if err != nil { // a mistake of the caller
//			return err
//		}
//		// Likewise Unhealthy, Sighted, and each class's Blind. Keep all of them from pass to pass.
//		o.Candidates, o.Unlisted, o.Spent = plan.Candidates, plan.Unlisted, plan.Spent
//		switch {
//		case len(plan.List) > 0: // ListMachines for each class; note the times before and after
//			err = list(plan.List, o)
//		case plan.ReadMachines: // a live list of all machines, and o.Read says when
//			err = read(o)
//		case len(plan.Delete) > 0: // for each: read the machines of that name live, ask StillOrphan, DeleteMachine
//			err = remove(plan.Delete, o)
//		default:
//			return wait(plan.At)
//		}
//		if err != nil { // a shutdown, an error of the store
//			return err
//		}
//	}
//
// The caller that carries out machines' plans adds hints to the observation: when GetMachineStatus
// answers OUT_OF_RANGE, with the machine's name and the time of the answer, and when a machine is
// gone. A hint starts a pass. Drop the hint once its class was listed after it.
package orphan
