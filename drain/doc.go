// Package drain decides how to empty a node: which pod is evicted next, what blocks it, and when to use
// force.
//
// [Decide] is the entry point. It takes the node, its pods, their budgets, volumes and attachments
// (an [Observation]), and returns a [Plan]: one write of the node, or orders of one kind, or the
// time until which there is nothing to do, with the reason for each pod that is not gone. [Detach]
// decides about the volumes that are still attached after force, and [Undo] about a node that is to be used
// again. [Predict] and [Explain] show people beforehand what a drain would do. docs/concepts/drains.md
// explains to users what happens to which pod.
//
// # Carrying plans out
//
// A pass reads everything from caches once, and then:
//
//	o.Memory.See(o.Pods, o.Complete, now()) // after each read of pods
//	for {
//		plan, err := drain.Decide(&o, policy, now())
//		switch {
//		case err != nil: // a mistake of the caller
//			return err
//		case plan.Look: // read node, pods and the rest live, without Cached and PodsCached; then See
//			err = look(&o)
//		case plan.Write != nil: // store it under its version
//			o.Node, err = store(plan.Write)
//			o.Cached = false
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
//			return end(plan)
//		}
//		if err != nil { // a conflict, a shutdown
//			return err
//		}
//	}
//
// The caller's duties:
//
//   - The orders of one slice may be carried out in parallel. Before that, call [Memory.Begin] for
//     each: the pod may be gone before the record of its turn is stored, and the drain must still wait for
//     its volumes. Record each answer ([Result]) in the memory before the next decision, because the
//     drain repeats an order without an answer. The only exception is the caller's own shutdown,
//     which ends the pass.
//   - Keep one [Memory] for each node. Make it with [NewMemory] when the process
//     sees that node for the first time, keep it over passes, and drop it when
//     the drain is done. Losing it costs time only: two slots of attempts at
//     most. It is not safe for use by several goroutines.
//   - A write is compared and swapped. A conflict ends the pass, and the next one
//     begins with a fresh read. If a write fails for another reason and force is
//     due, set Observation.WriteFailed and continue the pass: force does not wait
//     for a node that can't be written. Without force the pass ends.
//   - Observation.Asked is when this drain was asked for: the deletion timestamp
//     of the machine, or when it was selected for an update in place. It
//     distinguishes the record of this drain from one of an earlier drain.
//   - Observation.Deadline ends a drain whose machine has a drain timeout of its
//     own. For a deletion, the caller sets Forced at that time.
//   - The node must be the machine's own; package machine checks that.
//   - Changes of pods, budgets, volumes and attachments wake up their node.
//   - Stored times have whole seconds.
//
// # What is stored
//
// The record ([machine.DrainRecord]) is stored in the same write as the cordon. For each pod whose volumes
// the drain waits for, it is written again twice at most: when the pod was told to terminate, and when its
// volumes are detached and other pods wait for them. It is also written when force begins, when late pods
// are about to be evicted, and when only volumes are left. Everything else follows from these times and from
// what the cluster shows. The drain attempts evictions in slots of length [Slot], counted from its start, so
// that it stores no counter for each pod.
package drain
