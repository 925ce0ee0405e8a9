package sim

import "maps"

// Left counts what is in the world. Strays count as VMs.
func (w *World) Left() Left {
	return Left{
		len(w.deployments.all()), len(w.sets.all()), len(w.machines.all()), len(w.nodes.all()), w.provider.Count(),
		len(w.pools.all()), w.groups.Count(),
	}
}

// Stats returns what has happened so far.
func (w *World) Stats() Stats {
	s := Stats{Steps: w.steps, Passes: w.passes, Calls: maps.Clone(w.driverCalls), Refusals: maps.Clone(w.refusals), Actions: maps.Clone(w.actions), Collected: w.collected}
	s.PoolCalls, s.PoolRefusals = maps.Clone(w.poolCalls.calls), maps.Clone(w.poolRefusals)
	s.Faults = make(map[Fault]int, faultCount)
	for f := range AllFaults() {
		s.Faults[f] = w.faults[f]
	}
	return s
}
