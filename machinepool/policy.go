package machinepool

import (
	"time"

	"github.com/millwright-go/millwright/object"
)

// Policy says how to treat pools. A setting that is zero means its default, so the zero Policy is
// DefaultPolicy.
type Policy struct {
	// Period is how often the group of a settled pool is read, because a provider does not report what
	// happens to it. A pool is settled while it is Running, and no instance leaves or is missing in the
	// last answer. At least a second; default 1 min.
	Period time.Duration
	// Poll is Period for a pool that is not settled. At least a second; default
	// 15 s.
	Poll time.Duration
	// DrainTimeout is how long a leaving instance is drained. After that it is removed even if it is not
	// empty. At least a second; default 2 h.
	DrainTimeout time.Duration
	// TokenTTL is the lifetime that a renewal gives a bootstrap token. TokenRenew is the remaining
	// lifetime at which the token is renewed. TokenRenew is at least a second and less than
	// TokenTTL; defaults 15 min and 5 min.
	TokenTTL, TokenRenew time.Duration
	// QuotaRetry is how long to wait after RESOURCE_EXHAUSTED. At least a second; default the long
	// class of the recovery table, 10 min.
	QuotaRetry time.Duration
	// WaitForChange: a call to the provider that failed with a code that is not to be retried
	// (codes.Recovery.AutoRetry) is made again only after pool, class or secret have changed. Other
	// calls about the pool, such as reads of its group, are made as usual. A deletion may then wait
	// without end, while its group costs money. Default: such calls are made again, slowly.
	WaitForChange bool
	// Autoscaled: the provider owns the size of every pool, not only of those with the annotation
	// Keys.Autoscaled. Spec.Replicas is the size a group is created with, and follows the group's
	// size from then on.
	Autoscaled bool
	Keys       Keys
}

// Keys are the annotations that users set on pools and their nodes for this library. The zero Keys
// are those of DefaultPolicy. If any key is set, an empty one switches its feature off.
type Keys struct {
	Autoscaled string // annotation on a pool, "true": as Policy.Autoscaled, for this one
	Replace    string // annotation on a node, "true": its instance is replaced
}

// DefaultPolicy returns the usual settings.
func DefaultPolicy() *Policy {
	return &Policy{
		Period:       time.Minute,
		Poll:         15 * time.Second,
		DrainTimeout: 2 * time.Hour,
		TokenTTL:     15 * time.Minute,
		TokenRenew:   5 * time.Minute,
		Keys: Keys{
			Autoscaled: "millwright-go/autoscaled",
			Replace:    "millwright-go/replace",
		},
	}
}

var defaults = DefaultPolicy()

// WithDefaults returns p with the default in place of each setting that is zero: p itself if no setting is
// zero, and DefaultPolicy if p is nil.
func (p *Policy) WithDefaults() *Policy {
	return object.WithDefaults(p, defaults)
}

// Validate returns an *object.FieldError for the first setting out of range.
func (p *Policy) Validate() error {
	p = p.WithDefaults()
	switch {
	case p.Period < time.Second:
		return object.Invalid("policy.period", "must be at least a second")
	case p.Poll < time.Second:
		return object.Invalid("policy.poll", "must be at least a second")
	case p.DrainTimeout < time.Second:
		return object.Invalid("policy.drainTimeout", "must be at least a second")
	case p.TokenRenew < time.Second:
		return object.Invalid("policy.tokenRenew", "must be at least a second")
	case p.TokenTTL <= p.TokenRenew:
		return object.Invalid("policy.tokenTTL", "must be more than policy.tokenRenew")
	case p.QuotaRetry < 0 || p.QuotaRetry > 0 && p.QuotaRetry < time.Second:
		return object.Invalid("policy.quotaRetry", "must be at least a second")
	}
	return nil
}
