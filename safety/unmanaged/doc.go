// Package unmanaged finds nodes of the target cluster that no machine owns. Such a node loses the
// library's finalizer and gets an annotation. The annotation is removed when the node has an owner
// again.
//
// Each pass is about the whole cluster. See package safety for the form of a pass.
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
