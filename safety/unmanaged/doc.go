// Package unmanaged decides which nodes of the target cluster no machine owns. Such a node loses
// the library's finalizer and is marked with an annotation, and both are undone when it has an
// owner again.
//
// One pass for the cluster. The form of a pass is in the documentation of package safety.
//
//	o := &unmanaged.Observation{Nodes: nodes, Machines: cached}
//	for {
//		plan, err := unmanaged.Decide(o, policy, now())
//		switch {
//		case plan.ReadMachines:   // a live list of all machines, and o.Read says when
//		case len(plan.Write) > 0: // update each node under its version
//		default:                  // wait until plan.At
//		}
//	}
package unmanaged
