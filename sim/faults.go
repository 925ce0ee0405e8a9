package sim

import (
	"fmt"
	"iter"
	"reflect"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/history"
)

// Faults say what fails, and how often. Probabilities are from 0 to 1. The zero value is a world
// without faults.
//
// With Options.Driver, the calls to the provider are the requests of that driver, see World.Request: its
// own answers are what it makes of them.
type Faults struct {
	// Latency is the longest time that a call to a store or the provider, and its answer, are under
	// way. Other passes go on meanwhile.
	Latency time.Duration
	// CacheLag is the longest time until a change reaches the caches.
	CacheLag time.Duration
	// Repeat is the probability that a change is delivered twice, and that a driver of Options.Driver
	// that has answered OK is called again with the same request, unless it changes nothing.
	Repeat float64
	// LostAnswer is the probability that a call to a store is carried out and answered with an
	// error.
	LostAnswer float64

	// CallTime is the longest time the provider takes for a call.
	CallTime time.Duration
	// Call is the probability that the provider refuses a call, with one of Codes. If Codes is nil,
	// they are those that a healthy provider may answer now and then. The provider never claims
	// that a VM to be deleted is not found, because that false answer has consequences.
	Call  float64
	Codes []codes.Code
	// LostCall is the probability that a call to the provider is carried out and answered with an
	// error.
	LostCall float64
	// Hang is the probability that the provider does not look at a call's deadline. Such a call takes
	// up to HangFor longer than its caller waits for it, before it takes effect or after that.
	Hang    float64
	HangFor time.Duration
	// CallsPerMinute is how many calls about machines the provider answers in a minute. Others are
	// refused with RESOURCE_EXHAUSTED or UNAVAILABLE. Zero means no limit.
	CallsPerMinute int
	// Capacity is how many VMs there can be. Zero means no limit.
	Capacity int
	// Eventually is how long the provider denies a VM that it has just made, and
	// leaves it out of its lists.
	Eventually time.Duration
	// Spelling is the probability that a list names all VMs in another spelling than their creation
	// did: in upper case, with a slash. The provider knows them by both.
	Spelling float64
	// NodeSpelling is the probability that a kubelet registers its node with the VM's ID in another
	// spelling, or, as often, without it: then a cloud's controller adds it within five minutes.
	NodeSpelling float64

	// SlowBoot is the longest time that a VM takes beyond Options.Boot.
	SlowBoot time.Duration
	// NoStartupTaint has kubelets register their nodes without the startup taint: pods are bound to a
	// node as soon as it is ready.
	NoStartupTaint bool
	// DeadBoot is the probability that a VM never joins.
	DeadBoot float64
	// Flap is the probability that a node is not ready for up to 15 min once in its life.
	// FlapForGood is the probability that it then stays so.
	Flap        float64
	FlapForGood float64

	// LostVM is the probability that a VM vanishes without a request, up to an hour after its
	// creation.
	LostVM float64

	// Outages of the APIs of the control plane and of the target cluster, and
	// of the zones of the provider.
	ControlOutages, TargetOutages, ZoneOutages Spells
	// ClockJumps set the manager's clock ahead of the world's or behind it, by up to Spells.For,
	// until the next jump.
	ClockJumps Spells
	// Skew is how far the manager's clock is ahead of those of the API servers, nodes and pods all the
	// time, or behind them if it is negative.
	Skew time.Duration

	// BadUpdate is the probability that an update in place fails. DeadUpdate is the probability
	// that its agent never answers.
	BadUpdate, DeadUpdate float64
	// LateUpdate is the probability that an agent takes up to two hours longer, and answers though its
	// update has been withdrawn or given up. UpdateReboot is the probability that the node restarts
	// meanwhile and is silent for up to 15 min; its agent then begins again. SecondAnswer is the
	// probability that an agent says within half an hour that what had failed has succeeded.
	LateUpdate, UpdateReboot, SecondAnswer float64

	// SlowVolume is the longest time beyond the usual that a volume takes to leave a node.
	// StuckVolume is the probability that a volume never leaves a running node.
	SlowVolume  time.Duration
	StuckVolume float64

	// PodEnd is the longest time that the object of a pod that has ended stays as a finished one:
	// since Kubernetes 1.27, kubelets report the end of a terminating pod before its object is
	// deleted. Zero means that the object is deleted when its containers end.
	PodEnd time.Duration
	// KeptPod is the probability that a finalizer keeps the object of a pod that has ended, such as
	// the one by which Jobs count, for up to KeptPodFor.
	KeptPod    float64
	KeptPodFor time.Duration
	// FailedPod is the probability that a pod fails by itself, up to an hour after it became
	// healthy. Its object stays as a failed one until its controller, or a drain, deletes it.
	FailedPod float64

	// Kills is how many times the manager is killed: each time at one of its next KillWithin calls,
	// before or after that call takes effect. Another manager begins within Restart.
	Kills      int
	KillWithin int
	Restart    time.Duration
	// Late is the probability that a call that was under way when its caller died is carried out
	// nevertheless, up to LateBy later.
	Late   float64
	LateBy time.Duration
}

// String returns the names and values of the fields that are not zero.
func (f *Faults) String() string {
	v := reflect.ValueOf(f).Elem()
	var set []string
	for i := range v.NumField() {
		if field := v.Field(i); !field.IsZero() {
			set = append(set, fmt.Sprintf("%s %v", v.Type().Field(i).Name, field.Interface()))
		}
	}
	if len(set) == 0 {
		return "none"
	}
	return strings.Join(set, ", ")
}

// Spells are faults that begin and end again. The zero value has none.
type Spells struct {
	// Every is about how long there is between two. Zero means that there are none.
	Every time.Duration
	// For is the longest that one lasts.
	For time.Duration
}

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

// random gives the simulated cluster and provider, which are other packages, the world's randomness.
type random struct{ *base }

// Chance returns a number from 0 to n-1.
func (c random) Chance(n int) int { return c.chance(n) }

// UpTo returns a time from 0 to d, by chance.
func (c random) UpTo(d time.Duration) time.Duration { return c.upTo(d) }

// Happens reports true with probability p, and false once faults have stopped.
func (c random) Happens(p float64) bool { return c.happens(p) }

// Stopped reports whether faults have stopped.
func (c random) Stopped() bool { return c.faultsStopped }

// Emit emits an event.
func (c random) Emit(e any) { c.emit(e) }

// intermittentFaults begin and end repeatedly: outages and jumps of the clock.
type intermittentFaults struct {
	*managerClock
	*cloud
	kubelets *kubelets
}

// begin begins all faults that begin and end by themselves.
func (s *intermittentFaults) begin() {
	if s.hazards.Skew != 0 {
		s.count(ClockSkewed)
	}
	s.spell(func(f *Faults) Spells { return f.ControlOutages }, s.StopControl)
	s.spell(func(f *Faults) Spells { return f.TargetOutages }, s.StopTarget)
	s.spell(func(f *Faults) Spells { return f.ZoneOutages }, func(d time.Duration) { s.StopZone(s.chance(max(len(s.zones), 1)), d) })
	s.spell(func(f *Faults) Spells { return f.ClockJumps }, func(d time.Duration) {
		s.JumpClock(d - s.upTo(2*d))
	})
}

// spell starts a fault again and again, as long as there are faults.
func (s *intermittentFaults) spell(of func(*Faults) Spells, begin func(time.Duration)) {
	every := of(s.hazards).Every
	if every <= 0 {
		return
	}
	s.After(s.upTo(2*every), func() {
		if now := of(s.hazards); now.Every > 0 && !s.faultsStopped {
			begin(s.upTo(now.For))
			s.spell(of, begin)
		}
	})
}

// StopControl makes the control plane's API refuse every call for a while, and report no change.
func (s *intermittentFaults) StopControl(d time.Duration) {
	s.count(ControlOutage)
	s.After(d, s.Span(history.Outage, "the control plane"))
	s.stop(controlAPI, d)
}

// StopTarget does the same to the target cluster's API. If it comes back after more than the 40 s
// that clusters wait, all nodes are silent at first.
func (s *intermittentFaults) StopTarget(d time.Duration) {
	s.count(TargetOutage)
	s.After(d, s.Span(history.Outage, "the target cluster"))
	s.stop(targetAPI, d)
	if d <= nodeGrace {
		return
	}
	s.After(d, func() {
		for _, n := range s.kubelets.nodes.all() {
			s.kubelets.flicker(n.Name, s.kubelets.vmOf(n), s.upTo(20*time.Second))
		}
	})
}

// nodeGrace is how long a node may be silent before its cluster records it.
const nodeGrace = 40 * time.Second

// StopZone makes the nodes of a zone silent for a while, and the provider creates no VM there. Each
// class is in a zone of its own; n counts the zones in their order, modulo their number.
func (s *intermittentFaults) StopZone(n int, d time.Duration) {
	if len(s.zones) == 0 {
		return
	}
	zone := s.zones[n%len(s.zones)]
	s.count(ZoneOutage)
	s.After(d, s.Span(history.Outage, "zone "+zone))
	if end := s.Now().Add(d); end.After(s.dark[zone]) {
		s.dark[zone] = end
	}
	if d <= nodeGrace {
		return
	}
	s.After(nodeGrace, func() {
		s.eachIn(zone, func(name, id string) { s.kubelets.ready(name, id, object.Unknown) })
	})
	s.After(d, func() { s.eachIn(zone, s.kubelets.recover) })
}

// end ends the faults that are under way.
func (s *intermittentFaults) end() {
	s.setClock(s.hazards.Skew)
	s.outages, s.dark = [apiCount]downtime{}, map[string]time.Time{}
}
