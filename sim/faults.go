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
// With Options.Driver, the requests of that driver to its provider fail (see World.Request), and not
// the driver's own answers.
type Faults struct {
	// Latency is the longest time that a call to a store or the provider, and its answer, are under
	// way. Other passes go on meanwhile.
	Latency time.Duration
	// CacheLag is the longest time until a change reaches the caches.
	CacheLag time.Duration
	// Repeat is the probability that a change is delivered twice. It is also the probability that a
	// call which changes something, and which a driver of Options.Driver has answered with OK, is made
	// again with the same request.
	Repeat float64
	// LostAnswer is the probability that a call to a store is carried out and answered with an
	// error.
	LostAnswer float64

	// CallTime is the longest time the provider takes for a call.
	CallTime time.Duration
	// Call is the probability that the provider refuses a call, with one of Codes. If Codes is nil, it
	// uses the codes that a healthy provider may answer now and then. It never falsely answers NOT_FOUND
	// where the manager has to believe it: to the deletion or update of a VM, and to the deletion or the
	// status of a group.
	Call  float64
	Codes []codes.Code
	// LostCall is the probability that a call to the provider is carried out and answered with an
	// error.
	LostCall float64
	// Hang is the probability that the provider ignores a call's deadline. Such a call takes up to
	// HangFor longer than its caller waits. It hangs before or after it takes effect.
	Hang    float64
	HangFor time.Duration
	// CallsPerMinute is how many calls about machines the provider answers in a minute. It refuses
	// further ones with RESOURCE_EXHAUSTED or UNAVAILABLE. Zero means no limit.
	CallsPerMinute int
	// Capacity is how many VMs there can be. Zero means no limit.
	Capacity int
	// Eventually is how long the provider answers that a new VM is not found, and leaves it out of its
	// lists.
	Eventually time.Duration
	// Spelling is the probability that a list names all VMs in another spelling than the answer to
	// their creation: in upper case, with a slash. The provider accepts both.
	Spelling float64
	// NodeSpelling is the probability that a kubelet registers its node with the VM's ID in another
	// spelling or, in half of the cases, without it. Then a controller adds it within five minutes.
	NodeSpelling float64

	// SlowBoot is the longest time that a VM takes beyond Options.Boot.
	SlowBoot time.Duration
	// NoStartupTaint makes kubelets register their nodes without the startup taint, so that pods are
	// bound to a node as soon as it is ready.
	NoStartupTaint bool
	// DeadBoot is the probability that a VM never joins.
	DeadBoot float64
	// Flap is the probability that a node is not ready once in its life, for up to 15 min. FlapForGood
	// is the probability that it then never becomes ready again.
	Flap        float64
	FlapForGood float64

	// LostVM is the probability that a VM vanishes without a request, up to an hour after its
	// creation.
	LostVM float64

	// ControlOutages and TargetOutages are outages of the APIs of the control plane and of the target
	// cluster, and ZoneOutages of the zones of the provider.
	ControlOutages, TargetOutages, ZoneOutages Spells
	// ClockJumps set the manager's clock ahead of the world's or behind it, by up to Spells.For,
	// until the next jump.
	ClockJumps Spells
	// Skew is how far the manager's clock is always ahead of those of the API servers, nodes and pods,
	// or behind them if it is negative.
	Skew time.Duration

	// BadUpdate is the probability that an update in place fails. DeadUpdate is the probability
	// that its agent never answers.
	BadUpdate, DeadUpdate float64
	// LateUpdate is the probability that an agent takes up to two hours longer, and answers even if its
	// update has been withdrawn or given up. UpdateReboot is the probability that the node restarts
	// meanwhile and is NotReady for up to 15 min; its agent then begins again. SecondAnswer is the
	// probability that within half an hour after an update has failed, its agent says that it has
	// succeeded.
	LateUpdate, UpdateReboot, SecondAnswer float64

	// SlowVolume is the longest time beyond the usual that it takes to detach a volume from a node.
	// StuckVolume is the probability that a volume is never detached from a running node.
	SlowVolume  time.Duration
	StuckVolume float64

	// PodEnd is the longest time between the end of a pod's containers and the deletion of its object:
	// since Kubernetes 1.27, kubelets report first that a terminating pod has finished. Zero means that
	// the object is deleted at once.
	PodEnd time.Duration
	// KeptPod is the probability that a finalizer, such as the one by which Jobs count their pods,
	// keeps the object of a finished pod for up to KeptPodFor.
	KeptPod    float64
	KeptPodFor time.Duration
	// FailedPod is the probability that a pod fails by itself, up to an hour after it became
	// healthy. Its object stays as a failed one until its controller, or a drain, deletes it.
	FailedPod float64

	// Kills is how many times the manager is killed: each time at one of its next KillWithin calls,
	// before or after that call takes effect. Another manager starts within Restart.
	Kills      int
	KillWithin int
	Restart    time.Duration
	// Late is the probability that a call whose caller dies is carried out nevertheless, up to LateBy
	// later.
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

// Spells says how often faults occur that last for a while. The zero value means never.
type Spells struct {
	// Every is the approximate time between two of them. Zero means never.
	Every time.Duration
	// For is the longest time that one of them lasts.
	For time.Duration
}

// Fault is a kind of fault. The zero value is ConflictAnswered.
type Fault int

// These are the kinds of faults: of stores and caches, of the provider, of nodes and pods, and of the
// manager itself.
const (
	// ConflictAnswered: a write failed because its object had changed.
	ConflictAnswered Fault = iota
	// StoreAnswerLost: a store carried a call out, and the caller got no answer.
	StoreAnswerLost
	// StaleRead: a cache answered that had not received all changes yet.
	StaleRead
	// ChangeDelayed: a change reached a cache late.
	ChangeDelayed
	// ChangeRepeated: a change reached a cache twice.
	ChangeRepeated
	// ControlOutage: the control plane's API stopped answering for a while.
	ControlOutage
	// TargetOutage: the target cluster's API stopped answering for a while.
	TargetOutage
	// ClockJump: the manager's clock jumped, forward or back.
	ClockJump
	// ClockSkewed: the manager's clock differed from the other clocks from the beginning.
	ClockSkewed

	// CallFailed: the provider refused a call with a code drawn at random.
	CallFailed
	// CallAnswerLost: the provider carried a call out, and its answer was lost.
	CallAnswerLost
	// CallHung: the provider ignored a call's deadline.
	CallHung
	// CallThrottled: the provider refused a call because there were too many in a minute.
	CallThrottled
	// CapacityOut: the provider had no room for another VM.
	CapacityOut
	// StatusLagged: the provider answered that a new VM was not found.
	StatusLagged
	// ListLagged: the provider left a new VM out of a list.
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
	// ZoneOutage: a zone's nodes were NotReady for a while, and no VM could be created in it.
	ZoneOutage
	// UpdateFailed: an update in place failed.
	UpdateFailed
	// UpdateSilent: the agent of an update in place never answered.
	UpdateSilent
	// UpdateLate: the agent of an update in place took hours.
	UpdateLate
	// UpdateRebooted: a node restarted amid its update in place.
	UpdateRebooted
	// UpdateMended: an agent said that its update had succeeded after it had said that it failed.
	UpdateMended
	// VolumeSlow: it took longer than usual to detach a volume from a node.
	VolumeSlow
	// VolumeStuck: a volume was never detached from a running node.
	VolumeStuck
	// PodFinished: a terminated pod had finished, and its object still existed.
	PodFinished
	// PodKept: a finalizer kept the object of a finished pod.
	PodKept
	// PodFailed: a pod failed by itself.
	PodFailed
	// PodCompleted: a pod of a Job had done its work.
	PodCompleted

	// KilledBefore: the manager died at a call that was not carried out.
	KilledBefore
	// KilledAfter: the manager died at a call that was carried out.
	KilledAfter
	// CallLate: a call was carried out some time after its caller had died.
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

// traced says which faults Options.Tell and recorders are told of. The others occur too often.
var traced = func() (all [faultCount]bool) {
	for f := range AllFaults() {
		all[f] = f != StaleRead && f != ChangeDelayed && f != ChangeRepeated && f != SlowBoot && f != VolumeSlow && f != ConflictAnswered &&
			f != PodFinished && f != PodCompleted && f != CallThrottled
	}
	return all
}()

// random gives the world's randomness to the simulated cluster and provider, which are other packages.
type random struct{ *base }

// Chance returns a number from 0 to n-1.
func (c random) Chance(n int) int { return c.chance(n) }

// UpTo returns a random time from 0 to d.
func (c random) UpTo(d time.Duration) time.Duration { return c.upTo(d) }

// Happens reports true with probability p, and false once faults have stopped.
func (c random) Happens(p float64) bool { return c.happens(p) }

// Stopped reports whether faults have stopped.
func (c random) Stopped() bool { return c.faultsStopped }

// Emit emits an event.
func (c random) Emit(e any) { c.emit(e) }

// intermittentFaults makes the faults that begin and end repeatedly: outages and jumps of the clock.
type intermittentFaults struct {
	*managerClock
	*cloud
	kubelets *kubelets
}

// begin schedules the outages and jumps that Faults ask for.
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

// spell starts a fault again and again, until the faults stop.
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

// StopTarget does the same to the target cluster's API. If the outage is longer than the 40 s that
// clusters wait for kubelets, all nodes are NotReady for a moment when the API is back.
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

// nodeGrace is how long a node may be silent before its cluster sets it to NotReady.
const nodeGrace = 40 * time.Second

// StopZone makes the nodes of a zone NotReady for a while. Meanwhile, the provider creates no VM there.
// Each class has its own zone; n says which zone, modulo their number.
func (s *intermittentFaults) StopZone(n int, d time.Duration) {
	if len(s.zones) == 0 {
		return
	}
	zone := s.zones[n%len(s.zones)]
	s.count(ZoneOutage)
	s.After(d, s.Span(history.Outage, "zone "+zone))
	if end := s.Now().Add(d); end.After(s.zoneOutUntil[zone]) {
		s.zoneOutUntil[zone] = end
	}
	if d <= nodeGrace {
		return
	}
	s.After(nodeGrace, func() {
		s.eachIn(zone, func(name, id string) { s.kubelets.ready(name, id, object.Unknown) })
	})
	s.After(d, func() { s.eachIn(zone, s.kubelets.recover) })
}

// end ends the outages and the jump that are under way.
func (s *intermittentFaults) end() {
	s.setClock(s.hazards.Skew)
	s.outages, s.zoneOutUntil = [apiCount]downtime{}, map[string]time.Time{}
}
