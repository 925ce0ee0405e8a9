// Package orphan decides which VMs belong to no machine, and which groups of VMs belong to no pool,
// and deletes them. A VM is deleted only if two listings show it and a live read of the machines
// after each listing shows no owner.
//
// One pass for the whole fleet, on a key that never changes. The form of a pass is in the
// documentation of package safety.
//
//	for {
//		plan, err := orphan.Decide(o, policy, now())
//		if err != nil { // a mistake of the caller
//			return err
//		}
//		o.Candidates, o.Unlisted, o.Spent = plan.Candidates, plan.Unlisted, plan.Spent // keep them from pass to pass
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
// The executor of machines' plans leaves hints: when GetMachineStatus answers OUT_OF_RANGE, with
// the machine's name and the time of the answer, and when a machine is gone. A hint wakes up the
// pass. Drop the hint once its class was listed after it.
package orphan
