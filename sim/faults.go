package sim

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
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
