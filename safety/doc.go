// Package safety protects a fleet from harm that no machine, set or deployment can see by itself:
// VMs without an owner, sets that grow out of bounds, API servers that do not answer, too many
// replacements at a time, nodes without a machine, and machines without the set that made them.
// Each subject has one entry point: [DecideOrphans], [DecideOvershoot], [DecideReachability],
// [DecideGrant], [DecideNodes] and [DecideOwnerless]. [Pace] is a value: what a process knows of a
// class whose creates the provider refuses.
//
// Each takes an observation, a [Policy] and the time, and returns a plan. It reads no clock, makes
// no calls and changes none of its arguments.
//
// # Carrying plans out
//
// All passes have the same form. Decide. If the plan asks for something, do it, update the
// observation as the plan's fields say, and decide again. Otherwise wait until the plan's At, or
// until something changes if At is zero. An error of a store ends the pass. After a conflict the
// pass starts again from fresh reads. The process keeps a plan's memory between passes. Losing it
// costs only time.
//
// Orphan VMs: one pass for the whole fleet, on a key that never changes.
//
//	o := &safety.OrphanObservation{Classes: classes, Machines: cached, Sightings: memory, Spent: spent, …}
//	for {
//		plan, err := safety.DecideOrphans(o, policy, now())
//		memory, o.Sightings = plan.Sightings, plan.Sightings
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
//
// Overshoot: a pass over each deployment, and over each set without one, when
// the number of machines changes. The labels that it writes reach the sets'
// own decisions through [Policy.Frozen]:
//
//	setObservation.Frozen = reach.Stage.Frozen() || policy.Frozen(&set.Meta)
//
// Reachability: one pass for the process. Its memory, [Reach], begins as the zero value, which is
// frozen. Reach.Stage.Frozen() goes into the observations of machines, sets, orphans and nodes. It
// must be there before anything else of the plan is carried out. Writes of clocks go through the
// same check of moves as any write of a machine. When the stage becomes [ReachOpen], everything is
// decided again.
//
// Replacement budget: the executor of machine.AskGrant makes a pass of its own
// inside the machine's.
//
//	o := &safety.GrantObservation{Machine: m, Deployment: d, Set: s}
//	for {
//		plan, err := safety.DecideGrant(o, policy, now())
//		switch {
//		case plan.ReadFleet:    // read live: what holds the budget, then the sets, then their machines
//		case plan.Write != nil: // compare and swap; o.Taken = true; after a conflict: a new pass
//		default:                // plan.Grant is the answer
//		}
//	}
//
// If there is a budget, every machine is observed with Budgeted set. The machine's own write, that
// it has failed, happens in the same pass. Its version is the one read before the pass asked for
// the grant.
//
// Classes that a provider refuses: one Pace for each class, kept by the process. Pace.Slowed goes
// into the observation of each machine of the class that has no VM yet, before every decision.
// Pace.Ask answers machine.AskCreate. The answer of each create goes into Pace.Answer. When the
// machine's pass has ended, with or without an error, Pace.Leave gives up a turn that it may still
// have.
//
// Nodes: one pass for the cluster.
//
// Owners: one pass for the fleet. It has the form of the orphan pass, with Read in place of List
// and ReadMachines.
package safety
