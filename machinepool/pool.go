package machinepool

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Finalizer keeps a pool's record for as long as a group of it may exist.
const Finalizer = machine.Finalizer

// Pool is a number of worker machines that the provider manages as one group.
type Pool struct {
	object.Meta
	Spec   Spec
	Status Status
}

// Spec says what a pool should be. ProviderIDs is filled in by the library, and
// Replicas too while the provider owns it (see Policy.Autoscaled).
type Spec struct {
	// ClusterName is the cluster that the machines belong to. Required.
	ClusterName string
	// Replicas is how many machines are wanted, not negative; nil: 1.
	Replicas *int32
	// MinReady is for how long a node has to be ready until it counts as
	// available. Not negative; zero: at once.
	MinReady time.Duration
	// FailureDomains are the zones, or what the provider calls them, that the
	// machines are spread over. Empty: the provider's choice.
	FailureDomains []string
	Template       Template
	// ProviderIDs names every instance that the group has, each once, sorted.
	ProviderIDs []string
}

// Template describes each machine of a pool. What becomes of machines that were
// made from an earlier one is the provider's business.
type Template struct {
	// Class is the infrastructure: what the group is made from. A class that is
	// not named yet, or does not exist, is waited for.
	Class machine.ClassRef
	// NodeTemplate is what nodes should carry from their beginning; whoever
	// makes the bootstrap data, or the provider, puts it there.
	NodeTemplate machine.NodeTemplate
	Bootstrap    Bootstrap
}

// Bootstrap says where a machine's first program comes from. All machines of
// a pool share it.
type Bootstrap struct {
	// Config names what makes the bootstrap data for this pool alone; it goes
	// with the pool. Empty: nobody makes them, DataSecret is a user's own.
	Config string
	// DataSecret names the secret with the bootstrap data. Nil: somebody else
	// will set it, and it is waited for. Empty: there is nothing to bootstrap.
	DataSecret *string
}

// Wanted is the number of machines that the spec asks for, never negative.
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
	if s.Replicas != nil {
		n := *s.Replicas
		c.Replicas = &n
	}
	c.FailureDomains = slices.Clone(s.FailureDomains)
	c.Template = s.Template.Clone()
	c.ProviderIDs = slices.Clone(s.ProviderIDs)
	return c
}

// Equal tells whether both ask for the same in the same words: replicas that
// are nil differ from the 1 they stand for.
func (s *Spec) Equal(t *Spec) bool {
	return s.ClusterName == t.ClusterName && samePointer(s.Replicas, t.Replicas) && s.MinReady == t.MinReady &&
		slices.Equal(s.FailureDomains, t.FailureDomains) && s.Template.Equal(&t.Template) &&
		slices.Equal(s.ProviderIDs, t.ProviderIDs)
}

// Clone returns a copy that shares nothing changeable with t.
func (t *Template) Clone() Template {
	c := *t
	c.NodeTemplate = t.NodeTemplate.Clone()
	if t.Bootstrap.DataSecret != nil {
		name := *t.Bootstrap.DataSecret
		c.Bootstrap.DataSecret = &name
	}
	return c
}

// Equal tells whether both describe the same machine.
func (t *Template) Equal(u *Template) bool {
	return t.Class == u.Class && t.NodeTemplate.Equal(&u.NodeTemplate) &&
		t.Bootstrap.Config == u.Bootstrap.Config && samePointer(t.Bootstrap.DataSecret, u.Bootstrap.DataSecret)
}

func samePointer[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
