// Package machine decides what to do about one machine of a fleet: a VM, a physical machine or a process, and its
// node in a cluster.
//
// [Decide] is the entry point. It takes an [Observation], a [Policy] and the time, and returns a [Plan]. It reads
// no clock, makes no calls and changes nothing, so every decision can be tested, replayed and previewed.
//
// # A pass
//
// The caller reconciles a machine in passes. A pass reads the machine, its class and, if the machine has a node
// name, the node from caches, and then:
//
//	for {
//		plan, err := machine.Decide(&o, policy, now())
//		switch {
//		case err != nil: // a mistake of the caller
//			return err
//		case plan.Write != nil: // store it; the answer is the machine from here on
//			o.Machine, err = store(plan.Write)
//			o.Fresh = true
//		case plan.Effect != nil: // make the call; put its answer into the observation
//			err = call(plan.Effect, &o)
//		default: // done; decide again at plan.At, or when something changes
//			return wait(plan.At)
//		}
//		if err != nil || o.Machine == nil { // a conflict, a shutdown: a new pass; or it is gone
//			return err
//		}
//	}
//
// The caller's duties:
//
//   - A plan has at most one write or one effect. Do nothing else between two decisions.
//   - Put the answer of a driver or a cluster, including a failure, into the field of the observation that the
//     effect names. Only the caller's own shutdown is no answer: it ends the pass.
//   - Write with compare-and-swap. A conflict ends the pass; merge nothing. Before the write, fire the plan's moves
//     (package machine/fsm), which stops mistakes of a decision by a table or a guard.
//   - Store times in whole seconds.
//   - No effect is repeated in a pass, and a pass takes few decisions. Check both, to detect mistakes.
//   - Observation.Failures counts failures in a row. When a failure is stored, increment it in the observation of
//     the same pass too, because the next wait depends on it.
//
// A plan may be lost at any point, with its process. What must survive is stored before the call that it governs.
// The next pass reads the rest again.
//
// # A tour
//
// [Machine] is the object of a machine. [Class] and [Secret] hold what its VM is created from. [Node] is its node.
// [Phase] is its state. [PhaseTable] holds all transitions of the phase, [DeletionTable] those of the stages of a
// deletion, [UpdateTable] those of an in-place update. Package machine/fsm fires and draws these tables;
// docs/concepts/state-machines.md shows them.
//
// A machine that is not being deleted is new or being created (Pending, CrashLoopBackOff), works (Running,
// Available), is unhealthy (Unknown), waits for its replacement (Failed), or is updated in place
// (InPlaceUpdating and the phases after it). A creation reads the VM, announces the create in the status,
// creates the VM, records the names of VM and node, initializes the VM, and waits for the node. A deletion
// finds the node, drains it, deletes the VM, deletes the node, and removes the finalizer. The finalizer keeps
// the machine as long as a VM of it may exist.
//
// A failed call is retried as the recovery table of package codes says, and at once when the machine, its class or
// its secrets change. The failure is stored and checked before each call, so the caller's own writes, which wake
// it up, cause no hot loop.
//
// In the code, decide.go has the order of the steps: all of them are methods of one decider, which holds the
// arguments of Decide. create.go and join.go create a machine, health.go watches it, delete.go and
// delete_drain.go delete it, inplace.go and hotupdate.go update it, preserve.go keeps it for inspection, and
// node_sync.go keeps its node up to date.
//
// [Plan.Why] is the reason of each decision; its String is a sentence. The files under testdata/stories show one
// machine each, one line a decision. Start reading there.
package machine
