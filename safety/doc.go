// Package safety decides what keeps a fleet from harm that no machine, set or
// deployment can see by itself: VMs that nobody owns, sets that grow out of
// bounds, API servers that do not answer, too many replacements at a time,
// nodes without a machine, and machines without the set that made them. It has
// one front door a subject: [DecideOrphans], [DecideOvershoot],
// [DecideReachability], [DecideGrant], [DecideNodes] and [DecideOwnerless]. What
// it knows of classes that a provider refuses is a value, [Pace].
//
// Each is given what is known, a [Policy] and the time, and gives back a plan.
// It reads no clock, calls nobody and changes nothing it was given.
//
// # Carrying plans out
//
// A pass looks the same for all: decide; if the plan asks for something, do
// it, bring the observation up to date as the plan's fields say, and decide
// again; otherwise wait until the plan's At, or, where it has none, until
// something changes. An error of a store ends a pass, a conflict begins it anew
// from fresh reads. What a plan calls a memory is kept by the process between
// passes and may be lost with it: that costs time, and nothing else.
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
// Whoever carries out machines' plans leaves hints: when GetMachineStatus
// answers OUT_OF_RANGE, with the machine's name and the time of the answer, and
// when a machine is gone. A hint wakes the pass up, and is dropped once its class
// was asked for after it.
//
// Overshoot: a pass over each deployment, and over each set without one, when
// the number of machines changes. The labels that it writes reach the sets'
// own decisions through [Policy.Frozen]:
//
//	setObservation.Frozen = reach.Stage.Frozen() || policy.Frozen(&set.Meta)
//
// Reachability: one pass for the process. Its memory, [Reach], begins as the
// zero value, which is frozen; Reach.Stage.Frozen() goes into the observations of
// machines, sets, orphans and nodes, and must do so before anything else of the
// plan is carried out. Writes of clocks go through the same check of moves as
// any write of a machine. When the stage becomes [ReachOpen] everything is
// looked at again.
//
// Replacement budget: the executor of machine.AskGrant makes a pass of its own
// inside the machine's.
//
//	o := &safety.GrantObservation{Machine: m, Deployment: d, Set: s}
//	for {
//		plan, err := safety.DecideGrant(o, policy, now())
//		switch {
//		case plan.ReadFleet:    // read live: what holds the budget, then the sets, then their machines
//		case plan.Write != nil: // compare and swap; o.Taken = true; a conflict: the machine's pass begins anew
//		default:                // plan.Grant is the answer
//		}
//	}
//
// Where a budget is kept every machine is observed with Budgeted set. The
// machine's own write, that it has failed, is made in the same pass, under the
// version that it was read with before the grant was asked for.
//
// Classes that a provider refuses: one Pace for each class, kept by the process.
// Pace.Slowed goes into the observation of each machine of the class that has no
// VM yet, before every decision; machine.AskCreate is answered by Pace.Ask; the answer
// of each create goes into Pace.Answer; and when the machine's pass has ended,
// however that was, Pace.Leave gives up the turn that it may still have.
//
// Nodes: one pass for the cluster.
//
// Owners: one pass for the fleet, which looks as that over orphan VMs does, with
// Read in the place of List and ReadMachines.
package safety
