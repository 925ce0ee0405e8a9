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
	// Burst is how many machines one plan creates, deletes or changes at most, so that a plan and its
	// answers stay small. Where a twentieth of the set is more, it is that, up to 10,000: a plan counts
	// all machines of its set, so 20 plans for a whole set cost the same for each machine, however large
	// the set is. It does not slow a set down: the next plan follows at once, and one pass of a
	// set of 250 may create all of them. For limits of calls to the provider at a time, see
	// manager.Options.Tuning.Workers and driver.Limit. From 1 to 10,000; default 100.
	Burst int32
	// RequestTimeout is how long a create may still take effect after it was issued,
	// even if its process has died. Creates under reserved names are issued for this long after
	// the reservation; the names are given up after twice this time and a second. The clocks
	// of processes must not differ by more than this. At least 10 s; default 2 min, twice what an
	// API server allows a request.
	RequestTimeout time.Duration
	// SettleWithin is how long a reservation may stay open after all its names became machines,
	// counted from the reservation, so that the next write of the set settles it, too. This is
	// only for a process that knows of all these machines (Observation.Created). Not negative;
	// it has no effect after the names are given up, see RequestTimeout. Default 0: the reservation is
	// settled at once.
	SettleWithin time.Duration
	// StatusInterval is the least time between two writes of a status by one
	// process; a refused order is written at once. Not negative; default 1 s,
	// this library's. object.Off: no limit.
	StatusInterval time.Duration
	// ProgressInterval is the same for a set with a deployment, if only the numbers of
	// machines and the observed generation differ: the deployment's status has the numbers,
	// too. Not negative; if it is below StatusInterval, StatusInterval applies. Default 0.
	ProgressInterval time.Duration
	// Resync is the longest time until the next decision about a set. At least a
	// second; default 10 min.
	Resync time.Duration
	// RetryBase is how long a set waits after an order was refused. The wait doubles
	// with each further pass in which an order is refused, up to RetryMax. RetryBase is at least a
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
	// Seed determines the order if Age is RandomAge.
	Seed uint64
	// StrictQuota counts machines that are being deleted towards the set's size: none
	// is created in their place before they are gone. Default: no.
	StrictQuota bool
	// IgnoreMinReady counts a machine as available as soon as it is ready, whatever
	// Spec.MinReady says. Default: no.
	IgnoreMinReady bool
	// ExpireAtOnce is how many machines a set replaces at a time for their age
	// (Spec.MaxAge), even if the surge allowance is larger. From 1 to 10,000; default 10,
	// this library's.
	ExpireAtOnce int32
	// MaxReplicas is the largest size of a set without a deployment. A larger set
	// is invalid: it neither grows nor shrinks, and its condition SpecValid is False. At
	// least 1; default 10,000, this library's, so that a typing error does not order a million
	// VMs. object.Off: no limit. deployment.Policy has the same for deployments.
	MaxReplicas int32
	Keys        Keys
}

// Keys are the annotations and labels with which users and other programs control this package.
// The zero Keys are those of DefaultPolicy. If any key is set, an empty key switches its feature off.
type Keys struct {
	Priority        string // annotation on a machine: its deletion priority
	ScaleUpDisabled string // label on a set, "true": no machine is created
	Replace         string // annotation on a machine, "true": it is to be replaced
	Paused          string // annotation on a set or a machine, "true": nothing is created, deleted or changed
	Preserve        string // annotation on a machine: it is to be preserved; must be the key in machine.Policy
}

// DefaultPolicy returns the default settings.
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
	case p.Burst < 1 || p.Burst > maxBurst:
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

// validateWaits checks the waits after failures.
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

// backoff returns how long to wait after a number of consecutive failures. After a restart the count is zero,
// and the wait is RetryBase.
func (p *Policy) backoff(failures int) time.Duration {
	wait := p.RetryBase
	for ; failures > 1 && wait < p.RetryMax; failures-- {
		wait *= 2
	}
	return min(wait, p.RetryMax)
}
