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

// Deployment keeps a fleet of machines and rolls it to a new template when that changes.
type Deployment struct {
	object.Meta
	// Revision is that of its new set, see machineset.Set. It is written with the metadata and is
	// not part of the spec. Zero: there has been no set yet.
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
	// MaxAge is the age at which a machine is replaced, up to a tenth earlier or later: see
	// machineset.ExpiresAt. That is no rollout. It happens within the strategy's bounds, and waits
	// while there is a rollout or the deployment is paused. Not negative, and at least a minute.
	// Zero: no limit.
	MaxAge time.Duration
	// Paused holds back what replaces machines: no set is created for a changed template, nothing
	// is rolled, and no rollback is done. Replicas is still followed, and changes that replace no
	// machine still go to the new set.
	Paused bool
	// RevisionHistoryLimit is how many old sets are kept for rollbacks. Older ones are deleted once
	// they are empty and the rollout is complete. Not negative; 0: none is kept. Nil: all are.
	RevisionHistoryLimit *int32
	// RollbackTo asks for an earlier template. The answer removes it. Nil: nothing is asked for.
	RollbackTo *Rollback
	// ProgressDeadline is how long a rollout may make no progress before ConditionProgressing says
	// so. The rollout continues. Zero: no limit. Not negative, and at least a second, because its
	// start is stored in whole seconds. It begins again when an outage of an API server ends.
	ProgressDeadline time.Duration
	// AutoPreserve is how many failed machines are kept for inspection at a time, in all sets,
	// instead of being replaced. Not negative; zero: none.
	AutoPreserve int32
}

// Rollback is the request to return to the template of an old set. The set's annotations come back
// too; other annotations of the deployment stay.
type Rollback struct {
	// Revision is that of the set. 0: the last one with another template than the present one. The
	// answer to a revision that no set has is a warning.
	Revision int64
}

// StrategyKind says how a changed template reaches the machines.
type StrategyKind string

// The strategies.
const (
	// RollingUpdate replaces machines a few at a time. An empty kind means the same.
	RollingUpdate StrategyKind = "RollingUpdate"
	// Recreate deletes all machines of old templates, and waits for those being deleted, before it
	// creates the first of the new one.
	Recreate StrategyKind = "Recreate"
	// InPlaceUpdate keeps the machines. Each is asked to update itself, and moves to the new set
	// afterwards. New machines are created for a surge, and to replace lost ones.
	InPlaceUpdate StrategyKind = "InPlaceUpdate"
)

// Orchestration says who decides which machine is updated in place, and when.
type Orchestration string

// The orchestrations.
const (
	// Automatic lets the deployment select machines, within the bounds. The others are
	// machine.InPlaceWaiting.
	Automatic Orchestration = ""
	// Manual leaves the selection to others: they set machine.InPlaceSelected on machines that are
	// machine.InPlaceCandidate. They must keep the bounds, except for new machines and surplus
	// ones.
	Manual Orchestration = "Manual"
)

// Strategy of a rollout. The zero Strategy is one that is not set: it means DefaultStrategy, which is
// RollingUpdate with a surge of 25% and 25% unavailable.
//
// The bounds are for RollingUpdate and InPlaceUpdate. Once anything is set, they are what they say. So a
// program whose bounds may both be 0, such as those of its own settings, must set Kind too: Rolling does.
// If both come out as zero, one machine may be unavailable. If both are zero, as in
// Strategy{Kind: RollingUpdate}, a warning says so. Recreate ignores them.
type Strategy struct {
	Kind           StrategyKind
	MaxSurge       rollout.IntOrPercent // of Replicas, rounded up
	MaxUnavailable rollout.IntOrPercent // of Replicas, rounded down
	// Orchestration is for InPlaceUpdate. Zero: Automatic.
	Orchestration Orchestration
	// StopAfter is how many machines may fail until the rollout stops, of Replicas, rounded up, and
	// 100 at most. Not negative. More than Replicas: it never stops.
	//
	// InPlaceUpdate that is Automatic: so many updates in a row. Zero: as many as may be out of
	// service at a time, which are S + U. A rollout that has stopped selects no machine.
	//
	// RollingUpdate: so many new machines in phase Failed. Zero: it never stops. A rollout that has
	// stopped replaces no old machine, and the new set creates none.
	//
	// Others ignore it. See Status.RolloutFailures for what ends the stop.
	StopAfter rollout.IntOrPercent
}

// Status is what is known of a deployment. Only the library writes it.
type Status struct {
	ObservedGeneration int64
	Replicas           int32 // machines of all sets that are not being deleted
	Updated            int32 // of these, in the new set, also those without a VM yet
	Ready              int32
	Available          int32
	Preserved          int32 // kept for inspection; none of them counts as available
	PreservedFailed    int32 // of these, in phase Failed
	// Unavailable is the number of machines ordered in all sets less the available ones. While a
	// rollout surges, that is more than what Spec.Replicas lacks.
	Unavailable int32
	// Expired are those of Replicas that are older than Spec.MaxAge and about to
	// be replaced.
	Expired int32
	// InPlace counts the machines of Replicas that concern an update in place.
	InPlace InPlaceCounts
	// Outdated counts the machines of the new set whose VMs still need an update, without being
	// replaced, to what their class says.
	Outdated int32
	// Collisions counts how often another set held the name of a new one.
	Collisions int32
	Conditions []object.Condition
	// Failed are machines of all sets, as machineset.Status.Failed are those of one: the newest, as
	// many as Policy.FailedSummaries says.
	Failed []machineset.FailedMachine
	// Failing counts all failed machines, including those that Failed does not list.
	Failing int32
	// ProgressedAt is when the rollout last made progress, began or was resumed. The progress
	// deadline counts from it. Whole seconds. Zero: not known.
	ProgressedAt time.Time
	// RolloutSince is when the rollout that is under way began. Whole seconds. Zero: none is, or it is
	// not known.
	RolloutSince time.Time
	// Wanted is how many machines were wanted when the sets last had all their orders for that
	// number. WantedSince is when that number became wanted. Earlier choices of a scaler have been
	// used or are out of date. Whole seconds. Zero: not known.
	Wanted      int32
	WantedSince time.Time
	// ScaledAt is the annotation Keys.ScaledAt when Wanted was last confirmed: a time of the
	// scaler's clock. Whole seconds. Zero: not known.
	ScaledAt time.Time
	// RolloutFailures are the machines that failed in the rollout that is under way. It has stopped
	// if they are as many as Strategy.StopAfter says. It goes on with another template, when failed
	// machines recover or an update succeeds, when StopAfter is raised, and after the deployment
	// was paused and resumed.
	RolloutFailures RolloutFailures
}

// InPlaceCounts are machines by the stage of their update in place. Each counts once, at its last
// stage.
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
	// ConditionVMsOutdated is True while VMs still need an update without being replaced, and
	// absent otherwise.
	ConditionVMsOutdated = "VMsOutdated"
	// ConditionClassMissing is True while there is no class of the name in the template, and absent
	// otherwise. No VM is created meanwhile.
	ConditionClassMissing = "ClassMissing"
	// ConditionClassInvalid is True while no machine could be created from the template's class, and
	// absent otherwise. It is known of deployments that are updated in place. No machine is selected
	// meanwhile.
	ConditionClassInvalid = "ClassInvalid"
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

// copied returns a pointer to a copy of what p points to, or nil.
func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// sameValue reports whether both are nil, or both point to the same value.
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
	c.RolloutFailures = s.RolloutFailures.Clone()
	return c
}

// Equal reports whether both are the same.
func (s *Status) Equal(t *Status) bool {
	return s.ObservedGeneration == t.ObservedGeneration && s.sameCounts(t) && s.InPlace == t.InPlace && s.Collisions == t.Collisions &&
		s.RolloutFailures.Equal(&t.RolloutFailures) && s.ProgressedAt.Equal(t.ProgressedAt) && s.RolloutSince.Equal(t.RolloutSince) && s.Wanted == t.Wanted && s.WantedSince.Equal(t.WantedSince) && s.ScaledAt.Equal(t.ScaledAt) &&
		slices.EqualFunc(s.Conditions, t.Conditions, sameCondition) &&
		slices.EqualFunc(s.Failed, t.Failed, sameFailedMachine)
}

// sameCounts reports whether both count the same machines.
func (s *Status) sameCounts(t *Status) bool {
	return s.Replicas == t.Replicas && s.Updated == t.Updated && s.Ready == t.Ready && s.Available == t.Available &&
		s.Unavailable == t.Unavailable && s.Preserved == t.Preserved && s.PreservedFailed == t.PreservedFailed && s.Expired == t.Expired && s.Outdated == t.Outdated &&
		s.Failing == t.Failing
}

// sameCondition compares times by their instant: a store may return one in another location, and a
// status that is stored must not look changed.
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
