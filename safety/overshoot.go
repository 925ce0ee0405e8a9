package safety

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// OvershootObservation is a deployment with its sets, or a set that has no
// deployment, with their machines. Caches are good enough: nothing is decided
// here that a later look does not put right.
type OvershootObservation struct {
	// Deployment owns the sets. Nil: there is none, and Sets holds one set.
	Deployment *deployment.Deployment
	// Sets are all sets that the deployment owns, in any order. Without a
	// deployment the first one counts.
	Sets []deployment.Children
}

// OvershootWrite is one change in the store: *LabelDeployment, *LabelSet or
// *TellDeployment.
//
//sumtype:decl
type OvershootWrite interface{ overshootWrite() }

// LabelDeployment stores a deployment's metadata.
type LabelDeployment struct{ Deployment *deployment.Deployment }

// LabelSet stores a set's metadata.
type LabelSet struct{ Set *machineset.Set }

// TellDeployment stores a deployment's status.
type TellDeployment struct{ Status deployment.Status }

func (*LabelDeployment) overshootWrite() {}
func (*LabelSet) overshootWrite()        {}
func (*TellDeployment) overshootWrite()  {}

// OvershootPlan is what to do next: Write, or nothing until something changes.
type OvershootPlan struct {
	// Write compares and swaps; what the store answers with takes the place of
	// what was observed. A conflict, or a "not found", ends the pass.
	Write OvershootWrite
	Why   decision.Why
	// Warn is something that the owner should know; zero: nothing.
	Warn decision.Why
}

// Frozen tells whether a deployment or a set is frozen by its label. A set that
// is goes into machineset.Observation.Frozen.
func (p *Policy) Frozen(m *object.Meta) bool {
	if p.Keys.Freeze == "" {
		return false
	}
	frozen, err := strconv.ParseBool(m.Labels[p.Keys.Freeze])
	return err == nil && frozen
}

// DecideOvershoot says whether a fleet freezes because one of its sets has more
// machines than it may ever have, or thaws because it has no longer. Machines
// that a smaller size has just made surplus were ordered, and freeze nothing. It changes
// none of its arguments, and gives the same plan for the same ones. The error is
// for a caller's mistake only.
//
// The deployment's label is the record of what was decided, and is written
// first; its sets follow it, whatever they say themselves, and the deployment's
// condition comes last. So whoever finds a freeze or a thaw half done, after a
// crash or between two writes, goes on in the same direction. Sets are what
// creations are held back by, and they get their label in the same pass.
func DecideOvershoot(o *OvershootObservation, p *Policy, now time.Time) (OvershootPlan, error) {
	if err := p.usable(o != nil && (o.Deployment != nil || len(o.Sets) > 0)); err != nil {
		return OvershootPlan{}, err
	}
	sets := setsOf(o)
	going := o.Deployment == nil && len(sets) == 0 || o.Deployment != nil && o.Deployment.Deleted()
	if p.Keys.Freeze == "" || going {
		return OvershootPlan{Why: decision.Why{Reason: reasonNotWatched}}, nil
	}
	d := overshoot{p: p, now: now, deployment: o.Deployment, sets: sets}
	d.measure()
	plan, busy := decision.FirstOf(&d, (*overshoot).lead, (*overshoot).follow, (*overshoot).tell, (*overshoot).endException)
	if !busy {
		plan.Why = d.standing()
	}
	plan.Warn = d.exception()
	return plan, nil
}

// overshoot is one call of DecideOvershoot.
type overshoot struct {
	p          *Policy
	now        time.Time
	deployment *deployment.Deployment
	sets       []deployment.Children // not being deleted, by name

	upper   int64 // so many machines of one set freeze
	largest int64 // machines of the largest set
	over    bool  // a set has upper machines or more, and not only because its size was lowered
	excused bool  // the unfreeze annotation is on one of the objects
	frozen  bool  // what is to be
	was     bool  // what is recorded
}

// setsOf are the sets that count: by name, without those being deleted, which
// create nothing.
func setsOf(o *OvershootObservation) []deployment.Children {
	var sets []deployment.Children
	for _, c := range o.Sets {
		if c.Set != nil && !c.Set.Deleted() && (o.Deployment == nil || c.Set.OwnedBy(o.Deployment.UID)) {
			sets = append(sets, c)
		}
	}
	if o.Deployment == nil {
		return sets[:min(1, len(sets))]
	}
	slices.SortStableFunc(sets, func(a, b deployment.Children) int { return cmp.Compare(a.Set.Name, b.Set.Name) })
	return sets
}

// measure counts, and decides whether the fleet is to be frozen. Between the two
// numbers it stays as it is.
func (d *overshoot) measure() {
	d.upper = d.bound()
	for i := range d.sets {
		c := &d.sets[i]
		n, grown := d.counted(c)
		d.excused = d.excused || d.asksToUnfreeze(&c.Set.Meta)
		d.largest = max(d.largest, n)
		d.over = d.over || n >= d.upper && grown
	}
	d.excused = d.excused || d.deployment != nil && d.asksToUnfreeze(&d.deployment.Meta)
	d.was = d.p.Frozen(d.recorder())
	switch {
	case d.excused || d.largest <= d.lower():
		d.frozen = false
	case d.over:
		d.frozen = true
	default:
		d.frozen = d.was
	}
}

// counted is how many machines a set has that are not being deleted, and whether
// it has so many because some were made, and not because its size was lowered.
// Machines that a smaller size has made surplus were ordered once: they are given
// up, and are no overshoot.
//
// A deployment's status says since when its size is what it is; machines made
// before are not counted against it. Of a set without a deployment nobody notes
// that: it has grown if it has more machines than its status, which is written
// after this decision, last counted.
func (d *overshoot) counted(c *deployment.Children) (n int64, grown bool) {
	for _, m := range c.Machines {
		if m == nil || m.Deleted() || !m.OwnedBy(c.Set.UID) {
			continue
		}
		n++
		grown = grown || d.deployment != nil && d.isNew(c.Set, m)
	}
	if d.deployment == nil {
		grown = n > int64(c.Set.Status.Replicas)
	}
	return n, grown
}

// madeLate is how long after a deployment's size has changed a machine may still
// be stored that was ordered before. The figure is this library's.
const madeLate = 10 * time.Second

// isNew reports whether a machine was made after its deployment's size changed.
// One that the set named before, and that comes in shortly after, was not.
func (d *overshoot) isNew(s *machineset.Set, m *machine.Machine) bool {
	since := d.deployment.Status.WantedSince
	if since.IsZero() || m.CreatedAt.IsZero() {
		return true
	}
	if !s.Instructions.Reservation.At.After(since) && s.Named(m.Name) {
		since = since.Add(madeLate)
	}
	return m.CreatedAt.After(since)
}

// bound is the number of machines of one set that freezes. While the sets have
// not all been told of a new size yet, the size before it still counts.
func (d *overshoot) bound() int64 {
	if d.deployment == nil {
		return 2*max(int64(d.sets[0].Set.Spec.Replicas), 0) + int64(d.p.SafetyUp)
	}
	s := &d.deployment.Spec
	replicas := max(s.Replicas, 0)
	if told := &d.deployment.Status; !told.WantedSince.IsZero() {
		replicas = max(replicas, told.Wanted)
	}
	surge := int64(0)
	if s.Strategy.Kind != deployment.Recreate {
		surge = int64(rollout.Fenceposts(s.Strategy.MaxSurge, s.Strategy.MaxUnavailable, replicas).Surge)
	}
	return int64(replicas) + surge + int64(d.p.SafetyUp)
}

// lower is the number of machines at which a frozen set thaws.
func (d *overshoot) lower() int64 { return d.upper - int64(d.p.SafetyDown) }

func (d *overshoot) asksToUnfreeze(m *object.Meta) bool {
	if d.p.Keys.Unfreeze == "" {
		return false
	}
	_, asks := m.Annotations[d.p.Keys.Unfreeze]
	return asks
}

// recorder is the object whose label says what was decided.
func (d *overshoot) recorder() *object.Meta {
	if d.deployment != nil {
		return &d.deployment.Meta
	}
	return &d.sets[0].Set.Meta
}

// lead writes what was decided.
func (d *overshoot) lead() (OvershootPlan, bool) {
	if d.was == d.frozen {
		return OvershootPlan{}, false
	}
	why := decision.Why{Reason: ReasonFreeze, Name: d.recorder().Name, Have: d.largest, Want: d.upper}
	switch {
	case !d.frozen && d.largest > d.lower():
		why.Reason = ReasonUnfreeze
	case !d.frozen:
		why.Reason, why.Want = ReasonThaw, d.lower()
	}
	if d.deployment != nil {
		changed := d.deployment.Clone()
		d.label(&changed.Meta)
		return OvershootPlan{Write: &LabelDeployment{changed}, Why: why}, true
	}
	return d.labelSet(d.sets[0].Set, why), true
}

// follow brings the first set in line that is not.
func (d *overshoot) follow() (OvershootPlan, bool) {
	for _, c := range d.sets {
		if d.p.Frozen(&c.Set.Meta) != d.frozen {
			why := decision.Why{Reason: reasonFollowThaw, Name: c.Set.Name}
			if d.frozen {
				why.Reason = reasonFollowFreeze
			}
			return d.labelSet(c.Set, why), true
		}
	}
	return OvershootPlan{}, false
}

func (d *overshoot) labelSet(s *machineset.Set, why decision.Why) OvershootPlan {
	changed := s.Clone()
	d.label(&changed.Meta)
	return OvershootPlan{Write: &LabelSet{changed}, Why: why}
}

func (d *overshoot) label(m *object.Meta) {
	m.Labels = maps.Clone(m.Labels)
	if !d.frozen {
		delete(m.Labels, d.p.Keys.Freeze)
		return
	}
	if m.Labels == nil {
		m.Labels = make(map[string]string, 1)
	}
	m.Labels[d.p.Keys.Freeze] = "True"
}

// tell keeps the deployment's condition; a set tells of its own.
func (d *overshoot) tell() (OvershootPlan, bool) {
	if d.deployment == nil {
		return OvershootPlan{}, false
	}
	have := object.FindCondition(d.deployment.Status.Conditions, machineset.ConditionFrozen)
	if told := have != nil && have.Status == object.True; told == d.frozen {
		return OvershootPlan{}, false
	}
	status := d.deployment.Status.Clone()
	status.Conditions = object.DropCondition(status.Conditions, machineset.ConditionFrozen)
	if d.frozen {
		why := decision.Why{Reason: ReasonFreeze, Name: d.deployment.Name, Have: d.largest, Want: d.upper}
		status.Conditions = object.SetCondition(status.Conditions, object.Condition{
			Type: machineset.ConditionFrozen, Status: object.True, Reason: ReasonFreeze.String(),
			Message: why.String(), Since: stamp(d.now),
		})
	}
	why := decision.Why{Reason: reasonCondition, Name: d.deployment.Name}
	return OvershootPlan{Write: &TellDeployment{status}, Why: why}, true
}

// endException takes the annotation off that kept a fleet from freezing, once
// it would not freeze without: the next overshoot is another one.
func (d *overshoot) endException() (OvershootPlan, bool) {
	if !d.excused || d.largest > d.lower() {
		return OvershootPlan{}, false
	}
	for _, c := range d.sets {
		if d.asksToUnfreeze(&c.Set.Meta) {
			changed := c.Set.Clone()
			delete(changed.Annotations, d.p.Keys.Unfreeze)
			return OvershootPlan{Write: &LabelSet{changed}, Why: decision.Why{Reason: ReasonUnfreezeDone, Name: changed.Name}}, true
		}
	}
	changed := d.deployment.Clone()
	delete(changed.Annotations, d.p.Keys.Unfreeze)
	return OvershootPlan{Write: &LabelDeployment{changed}, Why: decision.Why{Reason: ReasonUnfreezeDone, Name: changed.Name}}, true
}

// exception is the warning about a fleet that would be frozen.
func (d *overshoot) exception() decision.Why {
	if !d.excused || !d.over {
		return decision.Why{}
	}
	return decision.Why{Reason: ReasonUnfreeze, Name: d.recorder().Name, Have: d.largest, Want: d.upper}
}

func (d *overshoot) standing() decision.Why {
	if d.frozen {
		return decision.Why{Reason: reasonStayFrozen, Have: d.largest, Want: d.lower()}
	}
	if d.largest >= d.upper && !d.over {
		return decision.Why{Reason: reasonScalingDown, Have: d.largest, Want: d.upper}
	}
	return decision.Why{Reason: reasonInBounds, Have: d.largest, Want: d.upper}
}
