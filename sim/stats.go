package sim

import (
	"maps"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
)

// Stats counts what has happened in a world. The zero value is nothing.
type Stats struct {
	// Steps are calls of the manager that left its process, and events that were delivered to it.
	// Reads from its caches don't count.
	Steps int
	// Passes are those of all reconcilers that came to an end.
	Passes int
	// Calls are those that reached the provider.
	Calls map[codes.Call]int
	// PoolCalls are those about groups. PoolRefusals are those of them that were refused, by code
	// and call, which Faults counts as CallFailed too.
	PoolCalls    map[machinepool.Call]int
	PoolRefusals map[PoolRefusal]int
	// Faults are how often each kind of fault occurred.
	Faults map[Fault]int
	// Refusals are the CallFailed among them, by code and call.
	Refusals map[Refusal]int
	// Actions are what users asked of single machines, sets and VMs and that took effect.
	Actions map[Action]int
	// Collected is how many VMs were deleted as orphans.
	Collected int
}

// Kills is how many times the manager was killed.
func (s *Stats) Kills() int { return s.Faults[KilledBefore] + s.Faults[KilledAfter] }

// Add adds what has happened in another world.
func (s *Stats) Add(other *Stats) {
	s.Steps, s.Passes, s.Collected = s.Steps+other.Steps, s.Passes+other.Passes, s.Collected+other.Collected
	s.Calls = sum(s.Calls, other.Calls)
	s.PoolCalls = sum(s.PoolCalls, other.PoolCalls)
	s.PoolRefusals = sum(s.PoolRefusals, other.PoolRefusals)
	s.Faults = sum(s.Faults, other.Faults)
	s.Refusals = sum(s.Refusals, other.Refusals)
	s.Actions = sum(s.Actions, other.Actions)
}

func sum[K comparable](a, b map[K]int) map[K]int {
	if a == nil {
		a = make(map[K]int, len(b))
	}
	for k, n := range b {
		a[k] += n
	}
	return a
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
