// Package orphan decides which VMs belong to no machine, and which groups of VMs belong to no pool,
// and deletes them. A VM is deleted only if two listings show it and a live read of the machines
// after each listing shows no owner.
//
// One pass for the whole fleet, on a key that never changes. The form of a pass is in the
// documentation of package safety.
//
//	o := &orphan.Observation{Classes: classes, Machines: cached, Candidates: memory, Spent: spent, …}
//	for {
//		plan, err := orphan.Decide(o, policy, now())
//		memory, o.Candidates = plan.Candidates, plan.Candidates
//		spent, o.Spent = plan.Spent, plan.Spent
//		switch {
//		case len(plan.List) > 0:   // ListMachines for each class; note the times before and after
//		case plan.ReadMachines:    // a live list of all machines, and o.Read says when
//		case len(plan.Delete) > 0: // for each: read the machines of that name live, ask StillOrphan, DeleteMachine
//		default:                   // wait until plan.At
//		}
//	}
//
// The executor of machines' plans leaves hints: when GetMachineStatus answers OUT_OF_RANGE, with
// the machine's name and the time of the answer, and when a machine is gone. A hint wakes up the
// pass. Drop the hint once its class was listed after it.
package orphan
