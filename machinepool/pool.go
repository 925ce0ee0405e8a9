package machinepool

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Finalizer keeps a pool's record as long as a group of it may exist.
const Finalizer = machine.Finalizer

// Pool is a number of worker machines that the provider manages as one group.
type Pool struct {
	object.Meta
	Spec   Spec
	Status Status
}

// Spec says what a pool should be. The library fills in ProviderIDs, and Replicas too while the
// provider owns it (see Policy.Autoscaled).
type Spec struct {
	// ClusterName is the cluster that the machines belong to. Required.
	ClusterName string
	// Replicas is how many machines are wanted, not negative; nil: 1.
	Replicas *int32
	// MinReady is how long a node must be ready until it counts as available. Not negative; zero:
	// at once.
	MinReady time.Duration
	// FailureDomains are the zones, or what the provider calls them, over which the machines are
	// spread. Empty: the provider's choice.
	FailureDomains []string
	// RollingUpdate bounds how the provider replaces instances that were made from an earlier template.
	// Nil: the provider's own choice, or the provider spec's.
	RollingUpdate *RollingUpdate
	Template      Template
	// ProviderIDs names every instance that the group has, each once, sorted.
	ProviderIDs []string
}

// RollingUpdate bounds a provider's update. What is not set is 0, and with neither, one instance may be
// missing.
type RollingUpdate struct {
	// MaxSurge is how many instances more than wanted there may be, rounded up.
	MaxSurge rollout.IntOrPercent
	// MaxUnavailable is how many of the wanted instances may be missing or not ready, rounded down.
	MaxUnavailable rollout.IntOrPercent
}

// Bounds returns surge and unavailable for a group of that target, in instances; never both 0.
func (r *RollingUpdate) Bounds(target int32) rollout.Bounds {
	return rollout.Fenceposts(r.MaxSurge, r.MaxUnavailable, target)
}

// Template describes each machine of a pool. The provider decides what happens to machines that
// were made from an earlier template, within Spec.RollingUpdate.
type Template struct {
	// Class is the infrastructure: what the group is made from. The pool waits for a class that is
	// not named yet, or does not exist.
	Class machine.ClassRef
	// NodeTemplate is what nodes should carry from their beginning. The maker of the bootstrap
	// data, or the provider, puts it there.
	NodeTemplate machine.NodeTemplate
	Bootstrap    Bootstrap
}

// Bootstrap says where a machine's first program comes from. All machines of a pool share it.
type Bootstrap struct {
	// Config names the object that makes the bootstrap data for this pool alone. It is deleted with
	// the pool. Empty: there is no such object, and DataSecret is the user's own.
	Config string
	// DataSecret names the secret with the bootstrap data. Nil: another program will set it, and
	// the pool waits for that. Empty: there is nothing to bootstrap.
	DataSecret *string
}

// Wanted returns the number of machines that the spec asks for, never negative.
func (s *Spec) Wanted() int32 {
	if s.Replicas == nil {
		return 1
	}
	return max(0, *s.Replicas)
}

// Clone implements object.Object.
func (s *Pool) Clone() *Pool {
	c := &Pool{Meta: s.CloneMeta(), Spec: s.Spec.Clone()}
	c.CopyStatus(s)
	return c
}

// CopyStatus implements object.Object.
func (s *Pool) CopyStatus(from *Pool) { s.Status = from.Status.Clone() }

// SpecEqual implements object.Object.
func (s *Pool) SpecEqual(t *Pool) bool { return s.Spec.Equal(&t.Spec) }

// Clone returns a copy that shares nothing changeable with s.
func (s *Spec) Clone() Spec {
	c := *s
	c.Replicas = copied(s.Replicas)
	c.FailureDomains = slices.Clone(s.FailureDomains)
	c.RollingUpdate = copied(s.RollingUpdate)
	c.Template = s.Template.Clone()
	c.ProviderIDs = slices.Clone(s.ProviderIDs)
	return c
}

// Equal reports whether both are the same, field by field: nil replicas differ from the 1 they
// stand for.
func (s *Spec) Equal(t *Spec) bool {
	return s.ClusterName == t.ClusterName && samePointer(s.Replicas, t.Replicas) && s.MinReady == t.MinReady &&
		slices.Equal(s.FailureDomains, t.FailureDomains) && samePointer(s.RollingUpdate, t.RollingUpdate) && s.Template.Equal(&t.Template) &&
		slices.Equal(s.ProviderIDs, t.ProviderIDs)
}

// Clone returns a copy that shares nothing changeable with t.
func (t *Template) Clone() Template {
	c := *t
	c.NodeTemplate = t.NodeTemplate.Clone()
	c.Bootstrap.DataSecret = copied(t.Bootstrap.DataSecret)
	return c
}

// Equal reports whether both describe the same machine.
func (t *Template) Equal(u *Template) bool {
	return t.Class == u.Class && t.NodeTemplate.Equal(&u.NodeTemplate) &&
		t.Bootstrap.Config == u.Bootstrap.Config && samePointer(t.Bootstrap.DataSecret, u.Bootstrap.DataSecret)
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

func samePointer[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
