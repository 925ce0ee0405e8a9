package deployment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
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
	// Revision is the revision of the new set, see machineset.Set. It is written with the metadata and is
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
	// Paused stops whatever replaces machines: no set is created for a changed template, nothing is
	// rolled out, and no rollback is done. The deployment still scales to Replicas, and changes that
	// replace no machine still go to the new set.
	Paused bool
	// RevisionHistoryLimit is how many old sets are kept for rollbacks. Older ones are deleted once
	// they are empty and the rollout is complete or paused. Not negative; 0: none is kept. Nil: all are.
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
	// Revision is the revision of the set. 0: the highest one with another template than the present
	// one. If no set has the revision, the answer is a warning.
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

// Strategy says how a rollout replaces machines. The zero Strategy is one that is not set: it means
// DefaultStrategy, which is RollingUpdate with a surge of 25% and 25% unavailable.
//
// The bounds are for RollingUpdate and InPlaceUpdate; Recreate ignores them. They have no defaults of their
// own: once any field is set, a bound of 0 means 0. So a program that computes bounds, which may both be 0, must
// set Kind, too, as Rolling does. If both are 0 machines, one machine may be unavailable. If both are set to 0,
// as in Strategy{Kind: RollingUpdate}, a warning says so.
type Strategy struct {
	Kind           StrategyKind
	MaxSurge       rollout.IntOrPercent // of Replicas, rounded up
	MaxUnavailable rollout.IntOrPercent // of Replicas, rounded down
	// Orchestration is for InPlaceUpdate. Zero: Automatic.
	Orchestration Orchestration
	// StopAfter is the number of failures that stops the rollout. A percentage is of Replicas, rounded
	// up. At most 100 count. Not negative. More than Replicas: the rollout never stops.
	//
	// With InPlaceUpdate that is Automatic, consecutive failures count: updates that fail, and new machines
	// in phase Failed. Zero: as many as may be out of service at a time: surge and unavailable together. A
	// rollout that has stopped selects no machine.
	//
	// With RollingUpdate, new machines in phase Failed count. Zero: it never stops. A rollout that has
	// stopped replaces no old machine, and the new set creates none.
	//
	// Other strategies ignore it. See Status.RolloutFailures for what ends the stop.
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
	// Expired counts the machines of Replicas that are older than Spec.MaxAge and about to
	// be replaced.
	Expired int32
	// InPlace counts the machines of Replicas by the stage of their update in place.
	InPlace InPlaceCounts
	// Outdated counts the machines of the new set whose VMs differ from their class and are
	// still to be updated, without a replacement.
	Outdated int32
	// Collisions counts how often another set held the name of a new one.
	Collisions int32
	Conditions []object.Condition
	// Failed are machines of all sets whose last operation failed, the newest first, at most
	// Policy.FailedSummaries. See machineset.Status.Failed.
	Failed []machineset.FailedMachine
	// Failing counts all failed machines, including those that Failed does not list.
	Failing int32
	// ProgressedAt is when the rollout last made progress, began or was resumed. The progress
	// deadline counts from it. Whole seconds. Zero: not known.
	ProgressedAt time.Time
	// RolloutSince is when the rollout that is under way began. Whole seconds. Zero: none is, or it is
	// not known.
	RolloutSince time.Time
	// Wanted is the last number of replicas for which the sets have got all their orders. WantedSince is
	// when this was recorded; a scaler's earlier choices have been used or are out of date. Whole
	// seconds. Zero: not known.
	Wanted      int32
	WantedSince time.Time
	// ScaledAt is the annotation Keys.ScaledAt when Wanted was last confirmed: a time of the
	// scaler's clock. Whole seconds. Zero: not known.
	ScaledAt time.Time
	// RolloutFailures are the machines that failed in the rollout that is under way. When their number
	// reaches Strategy.StopAfter, the rollout stops. It continues with another template, when failed
	// machines recover or an update succeeds, when StopAfter is raised, and after the deployment was
	// paused and resumed.
	RolloutFailures RolloutFailures
}

// InPlaceCounts are machines by the stage of their update in place. Each counts once, at its last
// stage.
type InPlaceCounts struct {
	Candidates int32 // to be updated later
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
	// ConditionClassMissing is True while the class that the template names does not exist, and absent
	// otherwise. No VM is created meanwhile.
	ConditionClassMissing = "ClassMissing"
	// ConditionClassInvalid is True while no machine could be created from the template's class, and
	// absent otherwise. It is only found out for deployments that are updated in place. No machine is
	// selected meanwhile.
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
	return s.ObservedGeneration == t.ObservedGeneration && s.sameCounts(t) && s.InPlace == t.InPlace &&
		s.Collisions == t.Collisions && s.RolloutFailures.Equal(&t.RolloutFailures) &&
		s.ProgressedAt.Equal(t.ProgressedAt) && s.RolloutSince.Equal(t.RolloutSince) && s.sameWanted(t) &&
		slices.EqualFunc(s.Conditions, t.Conditions, sameCondition) &&
		slices.EqualFunc(s.Failed, t.Failed, sameFailedMachine)
}

// sameWanted reports whether both have the same Wanted, WantedSince and ScaledAt.
func (s *Status) sameWanted(t *Status) bool {
	return s.Wanted == t.Wanted && s.WantedSince.Equal(t.WantedSince) && s.ScaledAt.Equal(t.ScaledAt)
}

// sameCounts reports whether all counts of machines are the same.
func (s *Status) sameCounts(t *Status) bool {
	return s.Replicas == t.Replicas && s.Updated == t.Updated && s.Ready == t.Ready && s.Available == t.Available &&
		s.Unavailable == t.Unavailable && s.Preserved == t.Preserved && s.PreservedFailed == t.PreservedFailed &&
		s.Expired == t.Expired && s.Outdated == t.Outdated &&
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

// sameTemplate reports whether machines of both templates are interchangeable, so that one is never
// replaced by the other. The hash label does not count, nor do fields that can be changed on an
// existing machine.
func sameTemplate(a, b *machineset.Template, hashLabel string) bool {
	return a.Spec.Class.APIGroup == b.Spec.Class.APIGroup && a.Spec.Class.Name == b.Spec.Class.Name &&
		sameLabels(a.Labels, b.Labels, hashLabel) && maps.Equal(a.Annotations, b.Annotations)
}

// Wants reports whether a set has the deployment's present template, so that its machines are new
// ones. The label with a template's hash is not compared.
func (p *Policy) Wants(d *Deployment, s *machineset.Set) bool {
	return sameTemplate(&s.Spec.Template, &d.Spec.Template, p.Keys.TemplateHash)
}

// sameLabels compares two maps as if neither had the key.
func sameLabels(a, b map[string]string, key string) bool {
	rest := len(b)
	if _, ok := b[key]; ok {
		rest--
	}
	for k, v := range a {
		if k == key {
			continue
		}
		if w, ok := b[k]; !ok || w != v {
			return false
		}
		rest--
	}
	return rest == 0
}

// withEntry returns a copy of m in which key has this value.
func withEntry(m map[string]string, key, value string) map[string]string {
	c := make(map[string]string, len(m)+1)
	maps.Copy(c, m)
	c[key] = value
	return c
}

// withoutEntry returns a copy of m in which the key is missing.
func withoutEntry(m map[string]string, key string) map[string]string {
	c := maps.Clone(m)
	delete(c, key)
	return c
}

// outdatedField names the first field that a set must still copy from its deployment. No such field replaces
// a machine. Empty: none.
func outdatedField(s *machineset.Set, d *Deployment) string {
	have, want := &s.Spec.Template.Spec, &d.Spec.Template.Spec
	switch {
	case !have.NodeTemplate.Equal(&want.NodeTemplate):
		return "node template"
	case !have.Config.Equal(&want.Config):
		return "configuration"
	case have.Class.Kind != want.Class.Kind:
		return "class kind"
	case s.Spec.MinReady != d.Spec.MinReady:
		return "minimum ready time"
	case s.Spec.MaxAge != d.Spec.MaxAge:
		return "maximum age"
	}
	return ""
}

// syncSet copies all fields that outdatedField compares.
func syncSet(s *machineset.Set, d *Deployment) {
	have, want := &s.Spec.Template.Spec, d.Spec.Template.Spec.Clone()
	have.NodeTemplate = want.NodeTemplate
	have.Config = want.Config
	have.Class.Kind = want.Class.Kind
	s.Spec.MinReady, s.Spec.MaxAge = d.Spec.MinReady, d.Spec.MaxAge
}

// letters can't be mistaken for each other or, without vowels, form a word.
const letters = "bcdfghjklmnpqrstvwxz2456789"

// hashLength is the number of letters in a hash: 27^10 is a bit more than 2^47.
const hashLength = 10

// templateHash returns the hash in the name and the label of the set for a template. It depends on the fields
// that decide whether two templates are the same, and on collisions, which separates sets whose names would be
// the same otherwise. It must be the same in every process and every version of this library, because the
// names of existing sets depend on it. So the serialization is explicit: a map is its number of entries and
// then the entries by key, a string is its length and then its bytes, a number is eight bytes, the highest first.
func templateHash(t *machineset.Template, hashLabel string, collisions int32) string {
	h := digest{fnv.New64a()}
	h.dictionary(withoutEntry(t.Labels, hashLabel))
	h.dictionary(t.Annotations)
	h.text(t.Spec.Class.APIGroup)
	h.text(t.Spec.Class.Name)
	h.number(int64(collisions))

	sum := h.Sum64()
	var out [hashLength]byte
	for i := range out {
		out[i] = letters[sum%uint64(len(letters))]
		sum /= uint64(len(letters))
	}
	return string(out[:])
}

type digest struct{ hash.Hash64 }

func (h digest) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:]) // never fails
}

func (h digest) text(s string) {
	h.number(int64(len(s)))
	h.Write([]byte(s))
}

func (h digest) dictionary(m map[string]string) {
	h.number(int64(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		h.text(k)
		h.text(m[k])
	}
}

// A set reserves the names of its machines before it creates them (machineset.Reservation). In a rolling
// update, the deployment can reserve names in the write of the new size, which saves a write of the set. That
// is as safe: the write compares and swaps like the set's own, everything was read live before, and the set
// reads its machines again before it creates. If the set does not use the names at once, they are given up
// later, like those of a process that died, and no others are used until then. So the deployment reserves none
// if the size may soon be lowered again, or if creations are delayed.

// creationDelays are the conditions under which a set delays the creation of its machines.
var creationDelays = [...]string{ConditionCreationSlowed, ConditionReplacementSlowed, machineset.ConditionFrozen}

// reserveNames reserves names for the machines that a set is going to create for its new size in a rolling
// update.
func (d *state) reserveNames(f *setState, changed *machineset.Set) {
	delayed := slices.ContainsFunc(creationDelays[:], func(typ string) bool { return f.condition(typ) != nil })
	n := min(d.p.Names, changed.Spec.Replicas-f.actual)
	if n <= 0 || delayed || !f.namesDone() || f.actual < f.size() || d.p.StrictQuota || !d.rolling() ||
		d.deployment.Spec.Paused || d.deployment.Spec.Strategy.Kind == InPlaceUpdate {
		return
	}
	changed.Instructions.Reservation = changed.Instructions.Reservation.Next(int64(n), d.stamp())
}

// Validate returns an *object.FieldError that names the first invalid field, or else the first entry of
// the node template that no API server accepts. With such an entry no machine is created and nothing is
// rolled out. Bounds above 100 %, or both zero, are valid.
func (d *Deployment) Validate(keys Keys) error {
	err := d.invalidField(keys)
	if err == nil {
		err = d.Spec.Template.InvalidEntry()
	}
	if err == nil {
		return nil
	}
	return err.Of("deployment", d.Key)
}

func (d *Deployment) invalidField(keys Keys) *object.FieldError {
	// The deployment's own set must follow the same rules, under the same names.
	set := machineset.Set{Meta: d.Meta, Spec: machineset.Spec{
		Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template, MinReady: d.Spec.MinReady,
		MaxAge: d.Spec.MaxAge,
	}}
	set.Spec.Template.Spec.NodeTemplate = machine.NodeTemplate{} // checked by Validate: it only prevents creations
	var bad *object.FieldError
	if errors.As(set.Validate(), &bad) {
		return bad.Of("", object.Key{})
	}
	if bad := selectsByHash(&d.Spec.Selector, keys.TemplateHash); bad != nil {
		return bad
	}
	switch limit := d.Spec.RevisionHistoryLimit; {
	case limit != nil && *limit < 0:
		return object.Invalid("spec.revisionHistoryLimit", "must not be negative")
	case d.Spec.AutoPreserve < 0:
		return object.Invalid("spec.autoPreserve", "must not be negative")
	case d.Spec.ProgressDeadline < 0:
		return object.Invalid("spec.progressDeadline", "must not be negative")
	case d.Spec.ProgressDeadline > 0 && d.Spec.ProgressDeadline < time.Second:
		return object.Invalid("spec.progressDeadline", "must be at least a second")
	}
	return d.Spec.Strategy.invalidField()
}

// selectsByHash rejects a selector that uses the hash label. The label's value differs in each set,
// so a deployment would release sets that it has just created.
func selectsByHash(s *object.Selector, label string) *object.FieldError {
	_, found := s.Labels[label]
	if !found && !slices.ContainsFunc(s.Requirements, func(r object.Requirement) bool { return r.Key == label }) {
		return nil
	}
	return object.Invalid("spec.selector", fmt.Sprintf("must not select by %q, which tells the deployment's own sets apart", label))
}

func (s *Strategy) invalidField() *object.FieldError {
	switch s.Kind {
	case RollingUpdate, Recreate, InPlaceUpdate, "":
	default:
		return object.Invalid("spec.strategy.kind", fmt.Sprintf("%q is unknown", string(s.Kind)))
	}
	switch {
	case s.Orchestration != Automatic && s.Orchestration != Manual:
		return object.Invalid("spec.strategy.orchestration", fmt.Sprintf("%q is unknown", string(s.Orchestration)))
	case s.MaxSurge.Problem() != "":
		return object.Invalid("spec.strategy.maxSurge", s.MaxSurge.Problem())
	case s.MaxUnavailable.Problem() != "":
		return object.Invalid("spec.strategy.maxUnavailable", s.MaxUnavailable.Problem())
	case s.StopAfter.Problem() != "":
		return object.Invalid("spec.strategy.stopAfter", s.StopAfter.Problem())
	}
	return nil
}

// warning returns a warning about a strategy that works but is probably a mistake. Zero: none.
func (s *Strategy) warning() decision.Why {
	const surge, unavailable = "spec.strategy.maxSurge", "spec.strategy.maxUnavailable"
	switch {
	case s.Kind == Recreate:
	case s.MaxSurge.Over100() && s.MaxUnavailable.Over100():
		return decision.Why{
			Reason: reasonOver100, Name: surge + " and " + unavailable,
			Detail: s.MaxSurge.String() + " and " + s.MaxUnavailable.String(),
		}
	case s.MaxSurge.Over100():
		return decision.Why{Reason: reasonOver100, Name: surge, Detail: s.MaxSurge.String()}
	case s.MaxUnavailable.Over100():
		return decision.Why{Reason: reasonOver100, Name: unavailable, Detail: s.MaxUnavailable.String()}
	case !s.unset() && s.MaxSurge.Value == 0 && s.MaxUnavailable.Value == 0:
		return decision.Why{Reason: reasonBothZero}
	}
	return decision.Why{}
}

// DefaultStrategy returns the strategy that the zero Strategy means.
func DefaultStrategy() Strategy {
	quarter := rollout.IntOrPercent{Value: 25, Percent: true}
	return Strategy{Kind: RollingUpdate, MaxSurge: quarter, MaxUnavailable: quarter}
}

// Rolling returns a rolling update with exactly these bounds, even if both are zero. (A Strategy without a Kind
// and with both bounds zero means DefaultStrategy.)
func Rolling(maxSurge, maxUnavailable rollout.IntOrPercent) Strategy {
	return Strategy{Kind: RollingUpdate, MaxSurge: maxSurge, MaxUnavailable: maxUnavailable}
}

// unset reports whether nothing of the strategy is set.
func (s *Strategy) unset() bool { return *s == Strategy{} }

// Bounds returns the strategy's surge and unavailable for a number of replicas, in machines.
func (s *Strategy) Bounds(replicas int32) rollout.Bounds {
	switch {
	case s.Kind == Recreate:
		return rollout.Bounds{Unavailable: max(replicas, 0)}
	case s.unset():
		d := DefaultStrategy()
		return d.Bounds(replicas)
	}
	return rollout.Fenceposts(s.MaxSurge, s.MaxUnavailable, replicas)
}

// bounds returns the strategy's surge and unavailable, in machines.
func (s *Spec) bounds() rollout.Bounds { return s.Strategy.Bounds(s.Replicas) }
