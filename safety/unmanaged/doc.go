// Package unmanaged decides which nodes of the target cluster no machine owns. Such a node loses
// the library's finalizer and is marked with an annotation, and both are undone when it has an
// owner again.
//
// One pass for the cluster. The form of a pass is in the documentation of package safety.
//
//	for {
//		plan, err := unmanaged.Decide(o, policy, now())
//		switch {
//		case err != nil: // a mistake of the caller
//			return err
//		case plan.ReadMachines: // a live list of all machines, and o.Read says when
//			err = read(o)
//		case len(plan.Write) > 0: // update each node under its version
//			err = store(plan.Write, o)
//		default:
//			return wait(plan.At)
//		}
//		if err != nil { // a shutdown, an error of the store
//			return err
//		}
//	}
package unmanaged
