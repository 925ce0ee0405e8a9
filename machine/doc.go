// Package machine decides what to do about one machine of a fleet: a VM, a physical machine or a
// process, and the node it becomes.
//
// [Decide] is the entry point. It takes what is known (an [Observation]), how to treat machines (a
// [Policy]) and the time, and returns a [Plan]. It reads no clock, makes no calls and changes
// nothing, so every decision can be tested, replayed and previewed.
//
// # A pass
//
// The caller makes passes. A pass reads the machine, its class and, if the machine has a node name,
// the node, from caches, and then:
//
//	for {
//		plan, err := machine.Decide(&o, policy, now())
//		switch {
//		case err != nil: // a mistake of the caller
//			return err
//		case plan.Write != nil: // store it; the answer is the machine from here on
//			o.Machine, err = store(plan.Write)
//			o.Fenced = true
//		case plan.Effect != nil: // make the call; its answer belongs into the observation
//			err = call(plan.Effect, &o)
//		default: // done; look again at plan.At, or when something changes
//			return wait(plan.At)
//		}
//		if err != nil || o.Machine == nil { // a conflict, a shutdown: a new pass; or it is gone
//			return err
//		}
//	}
//
// The caller's duties:
//
//   - A plan holds at most one write or one effect. Do nothing beside it.
//   - The answer of a driver or a cluster, also a failure, goes into the field of the observation
//     that the effect names. Only the caller's own shutdown is no answer: it ends the pass.
//   - A write is compared and swapped. A conflict ends the pass; nothing is merged. Fire the plan's
//     moves before (package machine/fsm): a mistake in a decision is stopped there, by a table or a guard.
//   - Stored times have whole seconds.
//   - No effect comes twice in a pass, and a pass takes few decisions. Check both, so that a mistake
//     shows.
//   - Observation.Failures counts failures in a row. If a write of a failure is stored, count it in
//     the observation of the same pass too: the wait of the next decision depends on it.
//
// A plan may be lost at any point, with its process. What must survive is stored before the call
// that it governs; the next pass finds the rest out again.
//
// # A tour
//
// [Machine] is the record. [Class] and [Secret] say what it is made from. [Node] is the machine as a
// cluster sees it. [Phase] says where a machine stands. [PhaseTable] holds every transition from one
// phase to another, [DeletionTable] those of the stages of a deletion, [UpdateTable] those of an
// update in place. Package machine/fsm fires and draws these tables; docs/concepts/state-machines.md shows
// them.
//
// A machine that is not being deleted is created (Pending, CrashLoopBackOff), is watched (Running,
// Unknown), has ended (Failed, Available), or is updated in place (the phases of an update in
// place). A creation asks for the VM, announces the create in the store, creates, records the names
// of VM and node, initializes, and waits for the node. A deletion finds the node, drains it, deletes
// the VM, deletes the node and removes the finalizer. The finalizer keeps the record for as long as
// a VM of the machine may exist.
//
// A failed call is made again when the recovery table of package codes says so, and at once when the
// machine, its class or its secrets change. The failure is stored and checked before every call, so
// the caller's own writes, which wake it up again, cause no loop.
//
// [Plan.Why] gives each decision's reason. Its String is a sentence. The files under
// testdata/stories show one machine each, one line a decision. Start reading there.
package machine
