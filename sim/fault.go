package sim

import "iter"

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
	// ClockSkewed: the manager's clock was not that of the others from the beginning.
	ClockSkewed

	// CallFailed: the provider refused a call with a code drawn from all.
	CallFailed
	// CallAnswerLost: the provider carried a call out, and its answer was lost.
	CallAnswerLost
	// CallHung: the provider did not look at a call's deadline, and took its time.
	CallHung
	// CallThrottled: the provider had answered as many calls in a minute as it answers.
	CallThrottled
	// CapacityOut: the provider had no room for another VM.
	CapacityOut
	// StatusLagged: the provider denied a VM that it had just made.
	StatusLagged
	// ListLagged: the provider left a VM out of a list that it had just made.
	ListLagged
	// ListSpelled: a list named VMs in another spelling.
	ListSpelled
	// NodeSpelled: a node was registered with its VM's ID in another spelling, or without it.
	NodeSpelled
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
	// UpdateLate: the agent of an update in place took hours.
	UpdateLate
	// UpdateRebooted: a node restarted amid its update in place.
	UpdateRebooted
	// UpdateMended: an agent said that its update had succeeded after it had failed.
	UpdateMended
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
	ClockSkewed:      "clock ahead or behind",
	CallFailed:       "call to the provider failed",
	CallAnswerLost:   "answer of the provider lost",
	CallHung:         "call to the provider hung",
	CallThrottled:    "call to the provider throttled",
	CapacityOut:      "no capacity",
	StatusLagged:     "status not consistent yet",
	ListLagged:       "list not consistent yet",
	ListSpelled:      "list in another spelling",
	NodeSpelled:      "node in another spelling or without its ID",
	VMLost:           "VM lost",
	SlowBoot:         "slow boot",
	DeadBoot:         "VM never boots",
	NodeFlapped:      "node not ready",
	NodeLost:         "node never ready again",
	ZoneOutage:       "outage of a zone",
	UpdateFailed:     "update failed",
	UpdateSilent:     "update without an answer",
	UpdateLate:       "update answered late",
	UpdateRebooted:   "node restarted amid its update",
	UpdateMended:     "update succeeded after it failed",
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

// loud are the faults worth a line in a trace: the others are everywhere.
var loud = func() (all [faultCount]bool) {
	for f := range AllFaults() {
		all[f] = f != StaleRead && f != ChangeDelayed && f != ChangeRepeated && f != SlowBoot && f != VolumeSlow && f != ConflictAnswered &&
			f != PodFinished && f != PodCompleted && f != CallThrottled
	}
	return all
}()
