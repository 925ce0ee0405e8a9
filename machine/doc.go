// Package machine decides what is to be done about one machine of a fleet: a
// VM, a physical machine or a process, and the node it becomes.
//
// [Decide] is the front door. It is given what is known (an [Observation]), how
// machines are to be treated (a [Policy]) and the time, and gives back a [Plan].
// It reads no clock, calls nobody and changes nothing, so that every decision
// can be tested, replayed and previewed.
//
// # A pass
//
// The caller makes passes. A pass reads the machine, its class
// and, if the machine has a node name, the node, from caches, and then:
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
//   - A plan holds at most one write or one effect. Nothing is carried out beside it.
//   - The answer of a driver or a cluster, also a failure, goes into the field of
//     the observation that the effect names. Only the caller's own shutdown is no
//     answer: it ends the pass.
//   - A write is compared and swapped. A conflict ends the pass; nothing is merged.
//   - Stored times have whole seconds.
//   - No effect is asked for twice in a pass, and a pass takes few decisions; a
//     caller should hold both, so that a mistake shows.
//   - Observation.Failures counts failures in a row. Stored after a failed write,
//     it belongs into the same pass's observation too, since the wait that the
//     next decision asks for depends on it.
//
// A plan may be lost at any point, with the process that was to carry it out.
// What must survive is stored before the call it governs; a fresh pass finds
// the rest out again.
//
// # A tour
//
// [Machine] is the record; [Class] and [Secret] say what it is made from, [Node]
// is the machine as a cluster sees it. [Phase] says where a machine stands, and
// [PhaseTable] holds every way from one phase to another; [DeletionTable] does
// the same for the stages of a deletion, [UpdateTable] for those of an in-place
// update. Package machine/fsm checks and draws
// these tables; docs/state-machines.md shows them.
//
// A machine that is not being deleted is created (Pending, CrashLoopBackOff),
// or has come up and is watched (Running, Unknown), or has ended (Failed,
// Available), or is updated in place (the phases of an in-place update).
// A creation asks for the VM, announces the create in the store, creates,
// records what the VM and its node are called, initializes, and waits for the
// node. A deletion finds the node, tells it, deletes the VM, deletes the node
// and lets the record go. The finalizer keeps the record for as long as a VM of
// the machine may exist.
//
// A failed call is made again when the recovery table of package codes says so,
// and at once when the machine, its class or its secrets change. The failure is
// stored, and looked at before every call: the caller's own writes wake it up
// again, and must not have it spin.
//
// Each decision says why: [Plan.Why] is a small comparable value whose String is
// a sentence. The files under testdata/stories tell, one line a decision, how
// machines fare: a good place to begin reading.
package machine
