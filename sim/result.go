package sim

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
)

// Result is the outcome of a scenario.
type Result struct {
	// Violation is the first violation of a rule, or what did not converge in time. It is nil if
	// there is none.
	Violation *Violation
	Stats     Stats
	// Left is what was there at the end, counted by kind.
	Left Left
	// Took is how long it was, in the world's time.
	Took time.Duration
}

// Left counts what is there.
type Left struct {
	Deployments, Sets, Machines, Nodes, VMs int
	Pools, Groups                           int
}

// None reports whether nothing is left.
func (l Left) None() bool { return l == Left{} }

// String returns what is left.
func (l Left) String() string {
	text := fmt.Sprintf("%d deployments, %d sets, %d machines, %d nodes, %d VMs", l.Deployments, l.Sets, l.Machines, l.Nodes, l.VMs)
	if l.Pools+l.Groups > 0 {
		text += fmt.Sprintf(", %d pools, %d groups", l.Pools, l.Groups)
	}
	return text
}

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

// Refusal is a call that the provider refused with a code.
type Refusal struct {
	Call codes.Call
	Code codes.Code
}

// PoolRefusal is a call about a group that the provider refused with a code.
type PoolRefusal struct {
	Call machinepool.Call
	Code codes.Code
}
