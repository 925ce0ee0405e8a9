// Package drain decides how to empty a node: which pod leaves next, what blocks it, and when to use
// force.
//
// [Decide] is the entry point. It takes the node, its pods, their budgets, volumes and attachments
// (an [Observation]), and returns a [Plan]: one write of the node, or orders of one kind, or the
// time until which there is nothing to do, with the reason for each pod that has not gone. [Detach]
// decides about the volumes that force has left behind, and [Undo] about a node that is to be used
// again. [Predict] and [Explain] tell people beforehand what a drain would do. docs/drain.md tells
// users what happens to which pod.
//
// # Carrying plans out
//
// A pass reads everything from caches once, and then:
//
//	for {
//		plan, err := drain.Decide(&o, policy, now())
//		switch {
//		case err != nil: // a mistake of the caller
//			return err
//		case plan.Write != nil: // store it under its version
//			o.Node, err = store(plan.Write)
//			if err == nil && plan.Begins {
//				o.Memory.Begun()
//			}
//		case len(plan.Evict) > 0: // each is one eviction, with the UID as precondition
//			for _, order := range plan.Evict {
//				o.Memory.Begin(order)
//				o.Memory.Note(order.UID, evict(order))
//			}
//		case len(plan.Delete) > 0: // order.Now: with grace 0; else without a grace in the call
//			for _, order := range plan.Delete {
//				o.Memory.Begin(order)
//				o.Memory.Note(order.UID, remove(order))
//			}
//		default: // Done, or decide again at plan.At, or when something changes
//			o.Memory.Forget(o.Pods)
//			return end(plan)
//		}
//		if err != nil { // a conflict, a shutdown
//			return err
//		}
//	}
//
// The caller's duties:
//
//   - The orders of one slice may be carried out side by side. Before that,
//     [Memory.Begin] is told of each: the pod may be gone when its turn can be
//     stored, and its volumes are waited for all the same. Each is answered
//     in the memory before the next decision: what is not answered is asked for
//     again. The one exception is the caller's own shutdown, which ends the pass.
//   - One [Memory] a node, made by [NewMemory] when the process looks at that node
//     for the first time, kept over passes, dropped when the drain is done. To
//     lose it costs time only: two slots of attempts at most. It is not safe for
//     use by several goroutines.
//   - A write is compared and swapped. A conflict ends the pass, and the next one
//     begins with a fresh read. Where a write fails for another reason and force
//     is due, Observation.WriteFailed is set and the pass goes on: force does not
//     wait for a node that can't be written. Without force the pass ends.
//   - Observation.Asked is when this drain was asked for: the deletion timestamp
//     of the machine, or when it was selected for an update in place. It tells the
//     record of this drain from one that an earlier drain has left on the node.
//   - Observation.Deadline ends a drain whose machine has a drain timeout of its
//     own. For a deletion, the caller sets Forced at that time.
//   - The node must be the machine's own; package machine says so.
//   - Pods, budgets, volumes and attachments wake the node up that they are about.
//   - Stored times have whole seconds.
//
// # What an answer becomes
//
//	eviction or deletion accepted (2xx)                  Accepted
//	429                                                  Refused, with Retry-After if there is one
//	404 of the pod; 409 because of the UID               NotFound
//	404 or 405 of the subresource itself (no eviction)   NoEvictionAPI
//	500 for several budgets; 403; no connection; rest    Failed, with the message
//
// A deadline of the caller's own call is Failed too. The eviction may have been accepted; the pod's
// deletion timestamp shows it then.
//
// # What is stored
//
// The record ([machine.DrainRecord]) is stored in the same write as the cordon. It is written again
// when a pod whose volumes are followed was told to go, when those volumes are detached and other
// pods wait for them, and when force begins. That is one write, and two for each such pod.
// Everything else follows from these times and from what the cluster shows. The drain attempts
// evictions in slots of [Slot], counted from its start, so that it needs no counter for a pod.
package drain
