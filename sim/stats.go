package sim

import (
	"iter"
	"maps"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/sim/history"
)

// Fault is a kind of fault. The zero value is ConflictAnswered.
type Fault int

// These are the kinds of faults, in the order of a call's way.
const (
	// ConflictAnswered: a write met a newer version of its object.
	ConflictAnswered Fault = iota
	// StoreAnswerLost: a store carried a call out, and the caller got no answer.
	StoreAnswerLost
	// StaleRead: a cache answered that had changes still to come.
	StaleRead
	// ChangeDelayed: a change reached a cache late.
	ChangeDelayed
	// ChangeRepeated: a change reached a cache twice.
	ChangeRepeated
	// ControlOutage: the control plane's API stopped answering for a while.
	ControlOutage
	// TargetOutage: the target cluster's API did.
	TargetOutage
	// ClockJump: the manager's clock jumped, forward or back.
	ClockJump

	// CallFailed: the provider refused a call with a code drawn from all.
	CallFailed
	// CallAnswerLost: the provider carried a call out, and its answer was lost.
	CallAnswerLost
	// CapacityOut: the provider had no room for another VM.
	CapacityOut
	// StatusLagged: the provider denied a VM that it had just made.
	StatusLagged
	// ListLagged: the provider left a VM out of a list that it had just made.
	ListLagged
	// VMLost: a VM vanished without a request.
	VMLost

	// SlowBoot: a VM took longer than usual to join.
	SlowBoot
	// DeadBoot: a VM never joined.
	DeadBoot
	// NodeFlapped: a node was not ready for a while.
	NodeFlapped
	// NodeLost: a node was never ready again.
	NodeLost
	// ZoneOutage: a zone's nodes fell silent, and no VM could be made in it.
	ZoneOutage
	// UpdateFailed: an update in place failed.
	UpdateFailed
	// UpdateSilent: the agent of an update in place never answered.
	UpdateSilent
	// VolumeSlow: a volume took longer than usual to leave a node.
	VolumeSlow
	// VolumeStuck: a volume never left a node that ran.
	VolumeStuck
	// PodFinished: a pod that was told to go had ended, and its object was still there.
	PodFinished
	// PodKept: a finalizer kept the object of a pod that had ended.
	PodKept
	// PodFailed: a pod failed by itself.
	PodFailed
	// PodCompleted: a pod of a Job had done its work.
	PodCompleted

	// KilledBefore: the manager died at a call that was not carried out.
	KilledBefore
	// KilledAfter: the manager died at a call that was.
	KilledAfter
	// CallLate: a call was carried out when its caller was dead.
	CallLate

	faultCount = int(CallLate) + 1
)

var faultNames = [faultCount]string{
	ConflictAnswered: "conflict",
	StoreAnswerLost:  "answer of a store lost",
	StaleRead:        "stale read",
	ChangeDelayed:    "change delayed",
	ChangeRepeated:   "change repeated",
	ControlOutage:    "outage of the control plane",
	TargetOutage:     "outage of the target cluster",
	ClockJump:        "clock jumped",
	CallFailed:       "call to the provider failed",
	CallAnswerLost:   "answer of the provider lost",
	CapacityOut:      "no capacity",
	StatusLagged:     "status not consistent yet",
	ListLagged:       "list not consistent yet",
	VMLost:           "VM lost",
	SlowBoot:         "slow boot",
	DeadBoot:         "VM never boots",
	NodeFlapped:      "node not ready",
	NodeLost:         "node never ready again",
	ZoneOutage:       "outage of a zone",
	UpdateFailed:     "update failed",
	UpdateSilent:     "update without an answer",
	VolumeSlow:       "volume slow to detach",
	VolumeStuck:      "volume stuck",
	PodFinished:      "pod finished before its object went",
	PodKept:          "finished pod kept by a finalizer",
	PodFailed:        "pod failed",
	PodCompleted:     "pod of a job completed",
	KilledBefore:     "manager killed before a call",
	KilledAfter:      "manager killed after a call",
	CallLate:         "call carried out late",
}

// String returns the kind's name for people.
func (f Fault) String() string {
	if f < 0 || int(f) >= faultCount {
		return "unknown fault"
	}
	return faultNames[f]
}

// AllFaults yields the kinds in the order of their declaration.
func AllFaults() iter.Seq[Fault] {
	return func(yield func(Fault) bool) {
		for f := range Fault(faultCount) {
			if !yield(f) {
				return
			}
		}
	}
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

// Refusal is a call that the provider refused with a code.
type Refusal struct {
	Call codes.Call
	Code codes.Code
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
	s.PoolCalls, s.PoolRefusals = maps.Clone(w.poolCalls), maps.Clone(w.poolRefusals)
	s.Faults = make(map[Fault]int, faultCount)
	for f := range AllFaults() {
		s.Faults[f] = w.faults[f]
	}
	return s
}

// count counts a fault.
func (w *World) count(f Fault) {
	w.faults[f]++
	if loud[f] {
		w.tell("%s", f)
	}
	if loud[f] && f != ControlOutage && f != TargetOutage && f != ZoneOutage { // those are spans
		w.Mark(history.Fault, f.String())
	}
}

// loud are the faults worth a line in a trace: the others are everywhere.
var loud = func() (all [faultCount]bool) {
	for f := range AllFaults() {
		all[f] = f != StaleRead && f != ChangeDelayed && f != ChangeRepeated && f != SlowBoot && f != VolumeSlow && f != ConflictAnswered &&
			f != PodFinished && f != PodCompleted
	}
	return all
}()
