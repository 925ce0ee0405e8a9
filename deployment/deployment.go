package deployment

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// Finalizer keeps a deployment until its sets are gone.
const Finalizer = machineset.Finalizer

// OwnerKind is the Owner.Kind of a set that belongs to a deployment.
const OwnerKind = "MachineDeployment"

// Deployment keeps a fleet of machines and rolls it to a new template when
// that changes.
type Deployment struct {
	object.Meta
	Spec   Spec
	Status Status
}

// Spec says what a fleet should be.
type Spec struct {
	Replicas int32 // not negative
	Selector object.Selector
	Template machineset.Template
	Strategy Strategy
	// MinReady is how long a machine must be ready to count as available.
	MinReady time.Duration
}

// StrategyKind says how a changed template reaches the machines.
type StrategyKind string

// RollingUpdate replaces machines a few at a time. It is what an empty kind means.
const RollingUpdate StrategyKind = "RollingUpdate"

// Strategy of a rollout. Both bounds zero means one machine may be unavailable.
type Strategy struct {
	Kind           StrategyKind
	MaxSurge       rollout.IntOrPercent // of Replicas, rounded up
	MaxUnavailable rollout.IntOrPercent // of Replicas, rounded down
}

// Status is what is known of a deployment. Only the library writes it.
type Status struct {
	ObservedGeneration int64
	Replicas           int32 // machines of all sets that are not being deleted
	Updated            int32 // of these, in the new set
	Ready              int32
	Available          int32
	Unavailable        int32 // missing to full availability
	// Collisions counts how often another set held the name of a new one.
	Collisions int32
	Conditions []object.Condition
	Failed     []machineset.Summary
}

// Condition types of a deployment.
const (
	ConditionAvailable      = "Available"
	ConditionProgressing    = "Progressing"
	ConditionReplicaFailure = machineset.ConditionReplicaFailure
	ConditionSpecValid      = machineset.ConditionSpecValid
)

// Clone implements object.Object.
func (d *Deployment) Clone() *Deployment {
	c := &Deployment{Meta: d.CloneMeta(), Spec: d.Spec}
	c.Spec.Selector = d.Spec.Selector.Clone()
	c.Spec.Template = d.Spec.Template.Clone()
	c.CopyStatus(d)
	return c
}

// CopyStatus implements object.Object.
func (d *Deployment) CopyStatus(from *Deployment) { d.Status = from.Status.Clone() }

// Clone returns a copy that shares nothing with s.
func (s *Status) Clone() Status {
	c := *s
	c.Conditions = slices.Clone(s.Conditions)
	c.Failed = slices.Clone(s.Failed)
	return c
}

// Equal tells whether both say the same.
func (s *Status) Equal(t *Status) bool {
	return s.ObservedGeneration == t.ObservedGeneration && s.Replicas == t.Replicas &&
		s.Updated == t.Updated && s.Ready == t.Ready && s.Available == t.Available &&
		s.Unavailable == t.Unavailable && s.Collisions == t.Collisions &&
		slices.EqualFunc(s.Conditions, t.Conditions, sameCondition) &&
		slices.EqualFunc(s.Failed, t.Failed, sameSummary)
}

// sameCondition takes times for what they mean: a store may return one in
// another location, and a status that is stored must not look changed.
func sameCondition(a, b object.Condition) bool {
	same := a.Since.Equal(b.Since)
	a.Since, b.Since = time.Time{}, time.Time{}
	return same && a == b
}

func sameSummary(a, b machineset.Summary) bool {
	same := a.LastOperation.Time.Equal(b.LastOperation.Time)
	a.LastOperation.Time, b.LastOperation.Time = time.Time{}, time.Time{}
	return same && a == b
}

// SpecEqual implements object.Object.
func (d *Deployment) SpecEqual(e *Deployment) bool {
	a, b := &d.Spec, &e.Spec
	return a.Replicas == b.Replicas && a.Strategy == b.Strategy && a.MinReady == b.MinReady &&
		a.Selector.Equal(&b.Selector) && a.Template.Equal(&b.Template)
}
