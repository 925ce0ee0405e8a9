package sim

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
)

// Faults say what goes wrong, and how often. Probabilities are from 0 to 1; the
// zero value is a world without any.
type Faults struct {
	// Latency is the longest time a call to a store or the provider, and its
	// answer, are under way. Others go on meanwhile.
	Latency time.Duration
	// CacheLag is the longest time until a change reaches the caches.
	CacheLag time.Duration
	// Repeat is how likely a change is delivered twice.
	Repeat float64
	// LostAnswer is how likely a call to a store is carried out, and answered
	// with an error.
	LostAnswer float64

	// CallTime is the longest time the provider takes for a call.
	CallTime time.Duration
	// Call is how likely a call to the provider is refused, with one of Codes;
	// nil: those that a healthy provider may answer now and then. The one answer
	// that would be a lie with consequences is not given: that a VM to be deleted
	// is not found.
	Call  float64
	Codes []codes.Code
	// LostCall is how likely a call to the provider is carried out and
	// answered with an error.
	LostCall float64
	// Capacity is how many VMs there can be; zero: any number.
	Capacity int
	// Eventually is how long the provider denies a VM that it has just made, and
	// leaves it out of its lists.
	Eventually time.Duration

	// SlowBoot is the longest time a VM takes above Options.Boot.
	SlowBoot time.Duration
	// DeadBoot is how likely a VM never joins.
	DeadBoot float64
	// Flap is how likely a node is not ready for up to 15 min once in its
	// life, FlapForGood how likely it then stays so.
	Flap        float64
	FlapForGood float64

	// LostVM is how likely a VM is gone one day, up to an hour after its making,
	// though nobody has asked for it.
	LostVM float64

	// Outages of the APIs of the control plane and of the target cluster, and
	// of the zones of the provider.
	ControlOutages, TargetOutages, ZoneOutages Spells
	// ClockJumps set the manager's clock to be ahead of the world's or behind,
	// by up to Spells.For, until the next one.
	ClockJumps Spells

	// BadUpdate is how likely an update in place fails, DeadUpdate how likely
	// its agent never answers.
	BadUpdate, DeadUpdate float64

	// SlowVolume is the longest time a volume takes to leave a node above the
	// usual, StuckVolume how likely it never leaves one that runs.
	SlowVolume  time.Duration
	StuckVolume float64

	// PodEnd is the longest time the object of a pod stays that has ended, as a finished
	// one: since Kubernetes 1.27 kubelets report the end of a pod that was told to go
	// before its object goes. Zero: the object goes with its containers.
	PodEnd time.Duration
	// KeptPod is how likely a finalizer keeps the object of a pod that has ended, such as
	// the one by which Jobs count, for up to KeptPodFor.
	KeptPod    float64
	KeptPodFor time.Duration
	// FailedPod is how likely a pod fails by itself, up to an hour after it became healthy.
	// Its object stays as a failed one until its controller, or a drain, deletes it.
	FailedPod float64

	// Kills is how many times the manager is killed: each time at one of its
	// next KillWithin calls, before or after that takes effect. Another one
	// begins within Restart.
	Kills      int
	KillWithin int
	Restart    time.Duration
	// Late is how likely a call that was under way when its caller died is
	// carried out all the same, up to LateBy later.
	Late   float64
	LateBy time.Duration
}

// String names the fields that are not zero, with their values.
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
