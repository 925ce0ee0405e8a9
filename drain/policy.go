package drain

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/object"
)

// Slot is the length of a time slot, in each of which the drain tries to evict a pod once. It is also the least
// time between two attempts for one pod (PodEvictionRetryInterval of machine-controller-manager).
const Slot = 20 * time.Second

// Policy says how to drain nodes. A setting that is zero means its default, so the zero Policy is
// DefaultPolicy. The figures are those of machine-controller-manager.
type Policy struct {
	// Timeout ends a drain that has no Observation.Deadline. The drain then deletes the remaining
	// pods with their own grace, and does not wait for them. It counts from the drain's start.
	// At least a second; default 2 h. object.Off: no end.
	Timeout time.Duration
	// MaxEvictRetries is the number of slots of length Slot, from the drain's start, in which the drain
	// tries to evict a pod. After them it deletes the pod with its own grace. Zero, the default:
	// until the drain's deadline. Observation.MaxEvictRetries replaces it for one drain.
	MaxEvictRetries int
	// TerminationBuffer is how much longer than its grace a pod may take to terminate. Not negative;
	// default 30 s. object.Off: no longer.
	TerminationBuffer time.Duration
	// DetachTimeout is how long the detachment of a pod's volumes may take, from the end of its
	// grace; for Detach, from Observation.Asked. At least a second; default 2 min. machine.Policy has
	// a DetachTimeout, too: that is for all volumes of a machine together, after force.
	DetachTimeout time.Duration
	// ReattachTimeout is how long the attachment of volumes to another node may take, from their
	// detachment. At least a second; default 90 s.
	ReattachTimeout time.Duration
	// ForceBound is how long force is tried if deletions are not accepted. At least a second;
	// default 1 min. It also limits the attempts after the drain's deadline.
	ForceBound time.Duration
	// RetryDelete is how long to wait after a deletion that failed. At least a
	// second; default 5 s.
	RetryDelete time.Duration
	// Unresponsive is how long a node must be not Ready, or read-only, to count as not
	// answering. At least a second; default 5 min.
	Unresponsive time.Duration
	// OutOfService makes force put the taint node.kubernetes.io/out-of-service on a node that does
	// not answer, before its volumes are detached. Only for providers whose unresponsive nodes are
	// known to be down.
	OutOfService bool
	// Rules are tried in order. The first rule that selects a pod counts.
	Rules []Rule
	// AtTimeout is what happens at the drain's deadline to pods that must not be evicted before: protected
	// ones, and those that the drain lets complete. Default DeletePods.
	AtTimeout Treatment
	Keys      Keys
}

// Treatment is what happens at the drain's deadline to a pod that must not be evicted before.
type Treatment string

// The treatments.
const (
	// DeletePods treats them like any other pod: the drain tries eviction once, then deletes them with
	// their own grace.
	DeletePods Treatment = "Delete"
	// KeepWaiting waits without end. Only force overrides it.
	KeepWaiting Treatment = "Wait"
	// LeavePods ends the drain without them.
	LeavePods Treatment = "Leave"
)

// Keys are the annotations with which users and other programs control a drain. The zero Keys are those of
// DefaultPolicy. If any key is set, an empty key switches its feature off.
type Keys struct {
	// DoNotDisrupt are annotations on pods. If the value is true, the pod is not evicted before the
	// drain's deadline. A duration, such as 4h, protects the pod for that long after its creation. An
	// invalid value counts as true, and Blocked says so. False does not protect.
	DoNotDisrupt []string
	// SafeToEvict are annotations on pods. If the value is false or invalid, the pod is protected as
	// by DoNotDisrupt. None by default; the one of the cluster autoscaler is
	// cluster-autoscaler.kubernetes.io/safe-to-evict.
	SafeToEvict []string
	// PreDrainHook is the prefix of annotation keys on nodes. While a node has such an annotation, and until
	// the drain's deadline, no pod is evicted.
	PreDrainHook string
}

// Behaviour is what a Rule makes a drain do with pods.
type Behaviour string

// The behaviours of rules.
const (
	// InOrder evicts the pods with the others of the same Order.
	InOrder Behaviour = "Drain"
	// Skip leaves the pods alone, and does not wait for them.
	Skip Behaviour = "Skip"
	// WaitCompleted evicts nothing and waits for the pods to finish.
	WaitCompleted Behaviour = "WaitCompleted"
)

// Rule says how to drain the pods that its selector picks.
type Rule struct {
	// Selector picks by labels; it must not be empty.
	Selector object.Selector
	// Namespaces are those that the pods may be in. Empty: any.
	Namespaces []string
	Behaviour  Behaviour
	// Order is for pods drained InOrder: pods with a lower order are evicted first, and the next ones when
	// they are gone. Pods without a rule have order 0.
	Order int32
}

// DefaultPolicy returns the default settings.
func DefaultPolicy() *Policy {
	return &Policy{
		Timeout:           2 * time.Hour,
		TerminationBuffer: 30 * time.Second,
		DetachTimeout:     2 * time.Minute,
		ReattachTimeout:   90 * time.Second,
		ForceBound:        time.Minute,
		RetryDelete:       5 * time.Second,
		Unresponsive:      5 * time.Minute,
		AtTimeout:         DeletePods,
		Keys: Keys{
			DoNotDisrupt: []string{"millwright-go/do-not-disrupt", "karpenter.sh/do-not-disrupt"},
			PreDrainHook: "pre-drain.millwright-go/",
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
	case p.Timeout != object.Off && p.Timeout < time.Second:
		return object.Invalid("policy.timeout", "must be at least a second, or off")
	case p.MaxEvictRetries < 0:
		return object.Invalid("policy.maxEvictRetries", "must not be negative")
	case p.TerminationBuffer != object.Off && p.TerminationBuffer < 0:
		return object.Invalid("policy.terminationBuffer", "must not be negative, or off")
	case p.AtTimeout != DeletePods && p.AtTimeout != KeepWaiting && p.AtTimeout != LeavePods:
		return object.Invalid("policy.atTimeout", fmt.Sprintf("%q is unknown", p.AtTimeout))
	case slices.Contains(p.Keys.DoNotDisrupt, ""):
		return object.Invalid("policy.keys.doNotDisrupt", "must not hold an empty key")
	case slices.Contains(p.Keys.SafeToEvict, ""):
		return object.Invalid("policy.keys.safeToEvict", "must not hold an empty key")
	}
	if err := p.validateWaits(); err != nil {
		return err
	}
	for i := range p.Rules {
		if err := p.Rules[i].validate(); err != nil {
			err.Field = fmt.Sprintf("policy.rules[%d].%s", i, err.Field)
			return err
		}
	}
	return nil
}

func (p *Policy) validateWaits() error {
	const problem = "must be at least a second"
	switch {
	case p.DetachTimeout < time.Second:
		return object.Invalid("policy.detachTimeout", problem)
	case p.ReattachTimeout < time.Second:
		return object.Invalid("policy.reattachTimeout", problem)
	case p.ForceBound < time.Second:
		return object.Invalid("policy.forceBound", problem)
	case p.RetryDelete < time.Second:
		return object.Invalid("policy.retryDelete", problem)
	case p.Unresponsive < time.Second:
		return object.Invalid("policy.unresponsive", problem)
	}
	return nil
}

func (r *Rule) validate() *object.FieldError {
	switch r.Behaviour {
	case InOrder:
	case Skip, WaitCompleted:
		if r.Order != 0 {
			return object.Invalid("order", "must be zero for behaviour "+string(r.Behaviour))
		}
	default:
		return object.Invalid("behaviour", fmt.Sprintf("%q is unknown", r.Behaviour))
	}
	if r.Selector.Empty() {
		return object.Invalid("selector", "must not be empty")
	}
	var bad *object.FieldError
	if errors.As(r.Selector.Validate("selector"), &bad) {
		return bad
	}
	return nil
}

// rule returns the first rule that selects the pod, or nil.
func (p *Policy) rule(pod *Pod) *Rule {
	for i := range p.Rules {
		r := &p.Rules[i]
		if (len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, pod.Namespace)) && r.Selector.Matches(pod.Labels) {
			return r
		}
	}
	return nil
}

// terminationBuffer returns how much longer than its grace a pod may take to terminate.
func (p *Policy) terminationBuffer() time.Duration { return max(p.TerminationBuffer, 0) }
