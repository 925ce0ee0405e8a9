package machineset

import (
	"time"

	"github.com/millwright-go/millwright/object"
)

// AgeOrder says which of two machines is deleted first if nothing else tells them apart.
type AgeOrder string

// The orders by age.
const (
	OldestFirst AgeOrder = "" // the default
	NewestFirst AgeOrder = "Newest"
	// RandomAge disregards age: an order shuffled by Policy.Seed, the same
	// for the same seed.
	RandomAge AgeOrder = "Random"
)

// Policy says how to treat sets. A setting that is zero means its default, so the
// zero Policy is DefaultPolicy. The figures are those of machine-controller-manager,
// unless another source is named.
type Policy struct {
	// Burst is how many machines one plan creates, deletes or changes at most. It bounds one step,
	// so that a plan and its answers stay small, and is no brake: the next plan follows at once, and
	// one pass of a set of 250 may create all of them. How many calls reach the provider at a time is
	// limited elsewhere, see manager.Options.Tuning.Workers and driver.Limit. From 1 to 10,000;
	// default 100.
	Burst int32
	// RequestTimeout is how long after it was issued a create may still take
	// effect, even if its process has died. For as long after a
	// reservation its names are used; they are done with after twice this
	// time and a second. The clocks of processes must not differ by more. At
	// least 10 s; default 2 min, twice what an API server allows a request.
	RequestTimeout time.Duration
	// SettleWithin is how long after a reservation it may stay open though all of
	// its names became machines, for a process that remembers it
	// (Observation.Created): the next write of the set settles it in passing. Not
	// negative; no longer than until its names are done with, see
	// RequestTimeout. Default 0: it is settled at once.
	SettleWithin time.Duration
	// StatusInterval is the least time between two writes of a status by one
	// process; a refused order is written at once. Not negative; default 1 s,
	// this library's. object.Off: no limit.
	StatusInterval time.Duration
	// ProgressInterval is the same for a status of a deployment's set that differs
	// in the numbers of machines and the generation observed alone; the deployment's
	// status has the numbers, too. Not negative; below StatusInterval it is that.
	// Default 0.
	ProgressInterval time.Duration
	// Resync is the longest time until a set is looked at again. At least a
	// second; default 10 min.
	Resync time.Duration
	// RetryBase is how long after a refused order the next is given, doubled
	// with each pass that ended so, up to RetryMax. RetryBase is at least a
	// second and at most RetryMax; defaults 5 s and 3 min, this library's.
	RetryBase time.Duration
	RetryMax  time.Duration
	// CrashLoopBase is how long a set waits before it replaces machines that failed twice
	// in a row before they were ready. Each further failure doubles the wait, up to
	// CrashLoopMax. At least a second, at most CrashLoopMax; defaults 1 min and
	// 30 min, this library's. object.Off: no wait.
	CrashLoopBase time.Duration
	CrashLoopMax  time.Duration
	// Age orders the machines to delete that priority, phase and readiness leave equal.
	Age AgeOrder
	// Seed of RandomAge.
	Seed uint64
	// StrictQuota has machines that are being deleted count: none is made
	// while the set has as many as it should have, those among them. Default:
	// no.
	StrictQuota bool
	// IgnoreMinReady has a machine count as available as soon as it is ready:
	// Spec.MinReady stays on the set, and nothing waits for it. Default: no.
	IgnoreMinReady bool
	// ExpireAtOnce is how many machines a set replaces at a time for their age
	// (Spec.MaxAge), however far the surge allowance reaches. From 1 to 10,000; default 10,
	// this library's.
	ExpireAtOnce int32
	// MaxReplicas is the largest size of a set without a deployment. A set that
	// asks for more is not acted upon: it neither grows nor shrinks, and its
	// condition SpecValid is False. At least 1; default 10,000, this library's, so that a slip
	// of the pen orders no million of VMs. object.Off: no limit. deployment.Policy has the same
	// for deployments.
	MaxReplicas int32
	Keys        Keys
}

// Keys are the names by which users and other programs speak to this package.
// The zero Keys are those of DefaultPolicy. In others, an empty key switches its
// feature off.
type Keys struct {
	Priority        string // annotation on a machine: its deletion priority
	ScaleUpDisabled string // label on a set, "true": no machine is created
	Replace         string // annotation on a machine, "true": it is to be replaced
	Paused          string // annotation on a set or a machine, "true": it is left as it is
	Preserve        string // annotation on a machine: it is to be kept; must be that of the machines' policy
}

// DefaultPolicy returns the established settings.
func DefaultPolicy() *Policy {
	return &Policy{
		Burst:          100,
		RequestTimeout: 2 * time.Minute,
		StatusInterval: time.Second,
		Resync:         10 * time.Minute,
		RetryBase:      5 * time.Second,
		RetryMax:       3 * time.Minute,
		CrashLoopBase:  time.Minute,
		CrashLoopMax:   30 * time.Minute,
		ExpireAtOnce:   10,
		MaxReplicas:    10_000,
		Keys: Keys{
			Priority:        "machinepriority.machine.sapcloud.io",
			ScaleUpDisabled: "node.machine.sapcloud.io/scale-up-disabled",
			Replace:         "millwright-go/replace",
			Paused:          "millwright-go/paused",
			Preserve:        "node.machine.sapcloud.io/preserve",
		},
	}
}

var defaults = DefaultPolicy()

// WithDefaults returns p with the default in place of each setting that is zero: p itself if there is none, and
// DefaultPolicy if p is nil.
func (p *Policy) WithDefaults() *Policy {
	return object.WithDefaults(p, defaults)
}

// Validate returns an *object.FieldError for the first setting out of range.
func (p *Policy) Validate() error {
	p = p.WithDefaults()
	switch {
	case p.Burst < 1 || p.Burst > 10_000:
		return object.Invalid("policy.burst", "must be from 1 to 10000")
	case p.ExpireAtOnce < 1 || p.ExpireAtOnce > 10_000:
		return object.Invalid("policy.expireAtOnce", "must be from 1 to 10000")
	case p.MaxReplicas < 1 && p.MaxReplicas != object.Off:
		return object.Invalid("policy.maxReplicas", "must be at least 1, or off")
	case p.RequestTimeout < 10*time.Second:
		return object.Invalid("policy.requestTimeout", "must be at least 10 s")
	case p.SettleWithin < 0:
		return object.Invalid("policy.settleWithin", "must not be negative")
	case p.StatusInterval != object.Off && p.StatusInterval < 0:
		return object.Invalid("policy.statusInterval", "must not be negative, or off")
	case p.ProgressInterval < 0:
		return object.Invalid("policy.progressInterval", "must not be negative")
	case p.Resync < time.Second:
		return object.Invalid("policy.resync", "must be at least a second")
	}
	switch p.Age {
	case OldestFirst, NewestFirst, RandomAge:
		return p.validateWaits()
	}
	return object.Invalid("policy.age", "is unknown: "+string(p.Age))
}

// validateWaits looks at what happens after failures.
func (p *Policy) validateWaits() error {
	switch {
	case p.RetryBase < time.Second:
		return object.Invalid("policy.retryBase", "must be at least a second")
	case p.RetryMax < p.RetryBase:
		return object.Invalid("policy.retryMax", "must be at least policy.retryBase")
	case p.CrashLoopBase != object.Off && p.CrashLoopBase < time.Second:
		return object.Invalid("policy.crashLoopBase", "must be at least a second, or off")
	case p.CrashLoopMax < max(p.CrashLoopBase, 0):
		return object.Invalid("policy.crashLoopMax", "must be at least policy.crashLoopBase")
	}
	return nil
}

// backoff is how long to wait after so many consecutive failures; a count that
// was lost is zero and waits the base.
func (p *Policy) backoff(failures int) time.Duration {
	wait := p.RetryBase
	for ; failures > 1 && wait < p.RetryMax; failures-- {
		wait *= 2
	}
	return min(wait, p.RetryMax)
}
