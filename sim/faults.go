package sim

import "time"

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
	// Call is how likely a call to the provider fails, with any code.
	Call float64
	// LostCall is how likely a call to the provider is carried out and
	// answered with an error.
	LostCall float64
	// Capacity is how many VMs there can be; zero: any number.
	Capacity int
	// Eventually is how long the provider denies a VM that it has just made.
	Eventually time.Duration

	// SlowBoot is the longest time a VM takes above Options.Boot.
	SlowBoot time.Duration
	// DeadBoot is how likely a VM never joins.
	DeadBoot float64
	// Flap is how likely a node is not ready for up to 15 min once in its
	// life, FlapForGood how likely it then stays so.
	Flap        float64
	FlapForGood float64

	// BadUpdate is how likely an update in place fails, DeadUpdate how likely
	// its agent never answers.
	BadUpdate, DeadUpdate float64

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
