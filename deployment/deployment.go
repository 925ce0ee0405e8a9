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
	// Revision is that of its new set, see machineset.Set. It is written with
	// the metadata and is not part of the spec. Zero: there was no set yet.
	Revision int64
	Spec     Spec
	Status   Status
}

// Spec says what a fleet should be.
type Spec struct {
	Replicas int32 // not negative
	Selector object.Selector
	Template machineset.Template
	Strategy Strategy
	// MinReady is how long a machine must be ready to count as available.
	MinReady time.Duration
	// MaxAge is how old a machine gets before it is replaced, up to a tenth
	// earlier or later: see machineset.ExpiresAt. That is no rollout: it goes on
	// within the strategy's bounds while there is none, and waits while there is
	// one or the deployment is paused. Not negative, and at least a minute; zero:
	// as old as it likes.
	MaxAge time.Duration
	// Paused holds back what replaces machines: no set is made for a changed
	// template, nothing is rolled, and no rollback is done. Replicas is still
	// followed, and what replaces no machine still goes to the new set.
	Paused bool
	// RevisionHistoryLimit is how many old sets are kept to return to; older
	// ones go once they are empty and the rollout is complete. Not negative;
	// 0: none is kept. Nil: all are.
	RevisionHistoryLimit *int32
	// RollbackTo asks for an earlier template; the answer takes it away. Nil:
	// nothing is asked for.
	RollbackTo *Rollback
	// ProgressDeadline is how long a rollout may get no further before
	// ConditionProgressing says so; it goes on all the same. Zero: for ever.
	// Not negative, and at least a second: what it counts from is stored in
	// whole seconds.
	ProgressDeadline time.Duration
	// AutoPreserve is how many machines that failed are kept for inspection at
	// a time, in all sets, instead of being replaced. Not negative; zero: none.
	AutoPreserve int32
}

// Rollback is the request to return to the template of an old set. The set's
// annotations come back too, without taking away others of the deployment's.
type Rollback struct {
	// Revision is that of the set. 0: the last one whose template is another
	// than the present one. One that no set has is answered with a warning.
	Revision int64
}

// StrategyKind says how a changed template reaches the machines.
type StrategyKind string

// The strategies.
const (
	// RollingUpdate replaces machines a few at a time. It is what an empty
	// kind means.
	RollingUpdate StrategyKind = "RollingUpdate"
	// Recreate lets all machines of old templates go, also those that are
	// being deleted, before the first of the new one comes.
	Recreate StrategyKind = "Recreate"
	// InPlaceUpdate keeps the machines: each is asked to update itself, and
	// moved to the new set when it has. New ones are made for a surge, and in
	// place of what is lost.
	InPlaceUpdate StrategyKind = "InPlaceUpdate"
)

// Orchestration says who decides which machine is updated in place, and when.
type Orchestration string

// The orchestrations.
const (
	// Automatic lets the deployment select machines, within the bounds.
	Automatic Orchestration = ""
	// Manual leaves it to others: they set machine.InPlaceSelected on
	// machines that are machine.InPlaceCandidate. The bounds are theirs to
	// keep, but for new machines and surplus ones.
	Manual Orchestration = "Manual"
)

// Strategy of a rollout. The bounds are for RollingUpdate and InPlaceUpdate;
// both zero means one machine may be unavailable. Recreate does not look at
// them.
type Strategy struct {
	Kind           StrategyKind
	MaxSurge       rollout.IntOrPercent // of Replicas, rounded up
	MaxUnavailable rollout.IntOrPercent // of Replicas, rounded down
	// Orchestration is for InPlaceUpdate. Zero: Automatic.
	Orchestration Orchestration
}

// Status is what is known of a deployment. Only the library writes it.
type Status struct {
	ObservedGeneration int64
	Replicas           int32 // machines of all sets that are not being deleted
	Updated            int32 // of these, in the new set
	Ready              int32
	Available          int32
	Preserved          int32 // kept for inspection; none of them counts as available
	PreservedFailed    int32 // of these, in phase Failed
	// Unavailable is how many machines the sets were told to have, all together, beyond
	// those available. While a rollout surges that is more than what Spec.Replicas lacks.
	Unavailable int32
	// Expired are those of Replicas that are older than Spec.MaxAge and about to
	// be replaced.
	Expired int32
	// InPlace counts the machines of Replicas that concern an update in place.
	InPlace InPlaceCounts
	// Outdated counts the machines of the new set whose VMs are yet to be
	// updated, without being replaced, to what their class says.
	Outdated int32
	// Collisions counts how often another set held the name of a new one.
	Collisions int32
	Conditions []object.Condition
	// Failed are machines of all sets as machineset.Status.Failed are those of
	// one: the newest, as many as Policy.FailedSummaries says.
	Failed []machineset.FailedMachine
	// Failing counts all of those, whether Failed lists them or not.
	Failing int32
	// ProgressedAt is when the rollout last got further, began or was resumed;
	// the progress deadline counts from it. Whole seconds. Zero: not known.
	ProgressedAt time.Time
	// Wanted is how many machines were wanted when the sets were last seen to
	// have their orders for that, and WantedSince is when it became so: what
	// a scaler has chosen up to then has been used or is out of date. Whole
	// seconds. Zero: not known.
	Wanted      int32
	WantedSince time.Time
	// ScaledAt is the annotation Keys.ScaledAt as it was when Wanted was last
	// found right: a time of the scaler's clock. Whole seconds. Zero: not known.
	ScaledAt time.Time
}

// InPlaceCounts are machines by how far their update in place is; each counts
// once, as the last that is true of it.
type InPlaceCounts struct {
	Candidates int32 // to be updated some time
	Selected   int32 // to be updated now
	Updating   int32 // under way
	Updated    int32 // successful, and about to be moved or to return to work
	Failed     int32 // failed: they stay in their set until they are replaced
}

// Condition types of a deployment.
const (
	ConditionAvailable      = "Available"
	ConditionProgressing    = "Progressing"
	ConditionReplicaFailure = machineset.ConditionReplicaFailure
	ConditionSpecValid      = machineset.ConditionSpecValid
	// ConditionVMsOutdated is True while VMs are to be updated without being
	// replaced, and absent otherwise.
	ConditionVMsOutdated = "VMsOutdated"
)

// Clone implements object.Object.
func (d *Deployment) Clone() *Deployment {
	c := &Deployment{Meta: d.CloneMeta(), Revision: d.Revision, Spec: d.Spec}
	c.Spec.Selector = d.Spec.Selector.Clone()
	c.Spec.Template = d.Spec.Template.Clone()
	c.Spec.RevisionHistoryLimit = copied(d.Spec.RevisionHistoryLimit)
	c.Spec.RollbackTo = copied(d.Spec.RollbackTo)
	c.CopyStatus(d)
	return c
}

// copied is a pointer to a copy of what p points to, if to anything.
func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// sameValue tells whether both are nil, or both point to the same value.
func sameValue[T comparable](p, q *T) bool {
	return p == q || p != nil && q != nil && *p == *q
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
	return s.ObservedGeneration == t.ObservedGeneration && s.sameCounts(t) && s.InPlace == t.InPlace && s.Collisions == t.Collisions &&
		s.ProgressedAt.Equal(t.ProgressedAt) && s.Wanted == t.Wanted && s.WantedSince.Equal(t.WantedSince) && s.ScaledAt.Equal(t.ScaledAt) &&
		slices.EqualFunc(s.Conditions, t.Conditions, sameCondition) &&
		slices.EqualFunc(s.Failed, t.Failed, sameFailedMachine)
}

// sameCounts tells whether both count the same machines.
func (s *Status) sameCounts(t *Status) bool {
	return s.Replicas == t.Replicas && s.Updated == t.Updated && s.Ready == t.Ready && s.Available == t.Available &&
		s.Unavailable == t.Unavailable && s.Preserved == t.Preserved && s.PreservedFailed == t.PreservedFailed && s.Expired == t.Expired && s.Outdated == t.Outdated &&
		s.Failing == t.Failing
}

// sameCondition takes times for what they mean: a store may return one in
// another location, and a status that is stored must not look changed.
func sameCondition(a, b object.Condition) bool {
	same := a.Since.Equal(b.Since)
	a.Since, b.Since = time.Time{}, time.Time{}
	return same && a == b
}

func sameFailedMachine(a, b machineset.FailedMachine) bool {
	same := a.LastOperation.Time.Equal(b.LastOperation.Time)
	a.LastOperation.Time, b.LastOperation.Time = time.Time{}, time.Time{}
	return same && a == b
}

// SpecEqual implements object.Object.
func (d *Deployment) SpecEqual(e *Deployment) bool {
	a, b := &d.Spec, &e.Spec
	return a.Replicas == b.Replicas && a.Strategy == b.Strategy && a.MinReady == b.MinReady &&
		a.MaxAge == b.MaxAge && a.Paused == b.Paused && a.AutoPreserve == b.AutoPreserve && a.ProgressDeadline == b.ProgressDeadline &&
		sameValue(a.RevisionHistoryLimit, b.RevisionHistoryLimit) && sameValue(a.RollbackTo, b.RollbackTo) &&
		a.Selector.Equal(&b.Selector) && a.Template.Equal(&b.Template)
}
