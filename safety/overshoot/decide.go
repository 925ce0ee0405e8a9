package overshoot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/internal/times"
)

// Decide decides whether a deployment, or a set without one, freezes or thaws. It freezes if one of its sets has
// SafetyUp machines more than it may ever have. It thaws once all sets are SafetyDown below that number, or a
// user forbids the freeze (Keys.Unfreeze). Machines that are surplus only because the size was lowered freeze
// nothing. Decide changes none of its arguments, and returns the same plan for the same arguments. Only a
// caller's mistake is an error.
//
// The deployment's label records the decision, and is written first. Its sets then get the same
// label in the same pass, which stops their creations. The deployment's condition comes last. So a process that
// finds a freeze or a thaw half done, after a crash or between two writes, completes it.
func Decide(o *Observation, p *safety.Policy, now time.Time) (Plan, error) {
	if o == nil || o.Deployment == nil && len(o.Sets) == 0 {
		return Plan{}, fmt.Errorf("overshoot.Decide: %w", decision.ErrNoObservation)
	}
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	p = p.WithDefaults()
	sets := setsOf(o)
	deleting := o.Deployment == nil && len(sets) == 0 || o.Deployment != nil && o.Deployment.Deleted()
	if p.Keys.Freeze == "" || deleting {
		return Plan{Why: decision.Why{Reason: reasonNotWatched}}, nil
	}
	d := decider{p: p, now: now, deployment: o.Deployment, sets: sets}
	d.measure()
	plan, found := decision.FirstOf(&d, (*decider).writeDecision, (*decider).labelNextSet, (*decider).writeCondition, (*decider).endException)
	if !found {
		plan.Why = d.whyIdle()
	}
	plan.Warn = d.exception()
	return plan, nil
}

// decider is one call of Decide.
type decider struct {
	p          *safety.Policy
	now        time.Time
	deployment *deployment.Deployment
	sets       []deployment.Children // not being deleted, by name

	upper      int64 // a set with so many machines freezes the fleet
	largest    int64 // machines of the largest set
	overshoots bool  // a set has upper machines or more, and not only because its size was lowered
	exempted   bool  // the unfreeze annotation is on one of the objects
	frozen     bool  // what should be
	wasFrozen  bool  // what is recorded
}

// setsOf returns the sets that count, by name. Sets being deleted do not count, because they create
// nothing.
func setsOf(o *Observation) []deployment.Children {
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

// measure counts machines, and decides whether the fleet is to be frozen. Nothing changes if the largest set
// is between the two limits, or above them only because its size was lowered.
func (d *decider) measure() {
	d.upper = d.bound()
	for i := range d.sets {
		c := &d.sets[i]
		n, grown := d.counted(c)
		d.exempted = d.exempted || d.asksToUnfreeze(&c.Set.Meta)
		d.largest = max(d.largest, n)
		d.overshoots = d.overshoots || n >= d.upper && grown
	}
	d.exempted = d.exempted || d.deployment != nil && d.asksToUnfreeze(&d.deployment.Meta)
	d.wasFrozen = d.p.Frozen(d.recorder())
	switch {
	case d.exempted || d.largest <= d.lower():
		d.frozen = false
	case d.overshoots:
		d.frozen = true
	default:
		d.frozen = d.wasFrozen
	}
}

// counted returns how many machines a set has that are not being deleted. grown: machines were created since the
// size last changed, so that a surplus is an overshoot. Machines that are surplus because the size was lowered
// will be deleted; they are no overshoot.
//
// A deployment's status says since when it has its size; machines created earlier are not new. A set without a
// deployment has no such record. It has grown if it has more machines than its status says, which is written
// after this decision. If the status is of an earlier spec, that does not count: the machines that it lacks may
// have been ordered for the earlier size.
func (d *decider) counted(c *deployment.Children) (n int64, grown bool) {
	for _, m := range c.Machines {
		if m == nil || m.Deleted() || !m.OwnedBy(c.Set.UID) {
			continue
		}
		n++
		grown = grown || d.deployment != nil && d.isNew(c.Set, m)
	}
	if d.deployment == nil {
		status := &c.Set.Status
		grown = status.ObservedGeneration == c.Set.Generation && n > int64(status.Replicas)
	}
	return n, grown
}

// lateCreation is how long after a change of a deployment's size the store may still receive a machine
// that was ordered before. The figure is this library's.
const lateCreation = 10 * time.Second

// isNew reports whether a machine was ordered after its deployment's size changed. A machine is not new if its
// name was reserved before that, and the store received it shortly after.
func (d *decider) isNew(s *machineset.Set, m *machine.Machine) bool {
	since := d.deployment.Status.WantedSince
	if since.IsZero() || m.CreatedAt.IsZero() {
		return true
	}
	if !m.CreatedAt.After(since) {
		return false
	}
	late := !s.Instructions.Reservation.At.After(since) && s.Named(m.Name)
	return !late || m.CreatedAt.After(since.Add(lateCreation))
}

// bound returns the number of machines of one set that freezes the fleet. It is replicas + surge + SafetyUp or,
// without a deployment, 2 × replicas + SafetyUp. Until all sets have been resized, the earlier number of replicas
// counts if it is larger.
func (d *decider) bound() int64 {
	if d.deployment == nil {
		return 2*max(int64(d.sets[0].Set.Spec.Replicas), 0) + int64(d.p.SafetyUp)
	}
	s := &d.deployment.Spec
	replicas := max(s.Replicas, 0)
	if status := &d.deployment.Status; !status.WantedSince.IsZero() {
		replicas = max(replicas, status.Wanted)
	}
	return int64(replicas) + int64(s.Strategy.Bounds(replicas).Surge) + int64(d.p.SafetyUp)
}

// lower returns the number of machines at which a frozen set thaws.
func (d *decider) lower() int64 { return d.upper - int64(d.p.SafetyDown) }

func (d *decider) asksToUnfreeze(m *object.Meta) bool {
	if d.p.Keys.Unfreeze == "" {
		return false
	}
	_, asks := m.Annotations[d.p.Keys.Unfreeze]
	return asks
}

// recorder returns the object whose label records the decision.
func (d *decider) recorder() *object.Meta {
	if d.deployment != nil {
		return &d.deployment.Meta
	}
	return &d.sets[0].Set.Meta
}

// writeDecision writes the decision to the label that records it.
func (d *decider) writeDecision() (Plan, bool) {
	if d.wasFrozen == d.frozen {
		return Plan{}, false
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
		return Plan{Write: &LabelDeployment{changed}, Why: why}, true
	}
	return d.labelSet(d.sets[0].Set, why), true
}

// labelNextSet corrects the label of the first set whose label differs from the decision.
func (d *decider) labelNextSet() (Plan, bool) {
	for _, c := range d.sets {
		if d.p.Frozen(&c.Set.Meta) != d.frozen {
			why := decision.Why{Reason: reasonFollowThaw, Name: c.Set.Name}
			if d.frozen {
				why.Reason = reasonFollowFreeze
			}
			return d.labelSet(c.Set, why), true
		}
	}
	return Plan{}, false
}

func (d *decider) labelSet(s *machineset.Set, why decision.Why) Plan {
	changed := s.Clone()
	d.label(&changed.Meta)
	return Plan{Write: &LabelSet{changed}, Why: why}
}

func (d *decider) label(m *object.Meta) {
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

// writeCondition writes the deployment's condition. A set writes its own.
func (d *decider) writeCondition() (Plan, bool) {
	if d.deployment == nil {
		return Plan{}, false
	}
	have := object.FindCondition(d.deployment.Status.Conditions, machineset.ConditionFrozen)
	text := decision.Why{Reason: ReasonFreeze, Name: d.deployment.Name, Have: d.largest, Want: d.upper}.String()
	stored := have != nil && have.Status == object.True
	if stored == d.frozen && (!stored || have.Message == text) {
		return Plan{}, false
	}
	status := d.deployment.Status.Clone()
	if !d.frozen {
		status.Conditions = object.DropCondition(status.Conditions, machineset.ConditionFrozen)
	} else {
		status.Conditions = object.SetCondition(status.Conditions, object.Condition{
			Type: machineset.ConditionFrozen, Status: object.True, Reason: ReasonFreeze.String(),
			Message: text, Since: times.Stamp(d.now),
		})
	}
	why := decision.Why{Reason: reasonCondition, Name: d.deployment.Name}
	return Plan{Write: &TellDeployment{status}, Why: why}, true
}

// endException removes the annotation that keeps a fleet from freezing, once the fleet would not freeze without
// it. So the next overshoot freezes the fleet again.
func (d *decider) endException() (Plan, bool) {
	if !d.exempted || d.largest > d.lower() {
		return Plan{}, false
	}
	for _, c := range d.sets {
		if d.asksToUnfreeze(&c.Set.Meta) {
			changed := c.Set.Clone()
			delete(changed.Annotations, d.p.Keys.Unfreeze)
			return Plan{Write: &LabelSet{changed}, Why: decision.Why{Reason: ReasonUnfreezeDone, Name: changed.Name}}, true
		}
	}
	changed := d.deployment.Clone()
	delete(changed.Annotations, d.p.Keys.Unfreeze)
	return Plan{Write: &LabelDeployment{changed}, Why: decision.Why{Reason: ReasonUnfreezeDone, Name: changed.Name}}, true
}

// exception returns the warning about a fleet that would be frozen without its annotation.
func (d *decider) exception() decision.Why {
	if !d.exempted || !d.overshoots {
		return decision.Why{}
	}
	return decision.Why{Reason: ReasonUnfreeze, Name: d.recorder().Name, Have: d.largest, Want: d.upper}
}

// whyIdle returns the reason of a plan that does nothing.
func (d *decider) whyIdle() decision.Why {
	if d.frozen {
		return decision.Why{Reason: reasonStayFrozen, Have: d.largest, Want: d.lower()}
	}
	if d.largest >= d.upper && !d.overshoots {
		return decision.Why{Reason: reasonScalingDown, Have: d.largest, Want: d.upper}
	}
	return decision.Why{Reason: reasonInBounds, Have: d.largest, Want: d.upper}
}

// The reasons of decisions about overshoot.
var (
	ReasonFreeze       = decision.NewReason("Overshoot", "{name} is frozen: it has {have} machines, {want} or more are too many")
	reasonFollowFreeze = decision.NewReason("FrozenWithDeployment", "{name} freezes with its deployment")
	ReasonThaw         = decision.NewReason("OvershootOver", "no set has more than {want} machines any more: thawed")
	reasonFollowThaw   = decision.NewReason("ThawedWithDeployment", "{name} thaws with its deployment")
	ReasonUnfreeze     = decision.NewReason("UnfrozenByUser", "{name} has {have} machines, {want} or more are too many: not frozen, an annotation forbids it")
	ReasonUnfreezeDone = decision.NewReason("UnfreezeDone", "the overshoot of {name} is over: removing the annotation that forbids a freeze")
	reasonCondition    = decision.NewReason("FrozenCondition", "updating the Frozen condition of {name}")
	reasonInBounds     = decision.NewReason("InBounds", "the largest set has {have} machines; {want} would freeze it")
	reasonScalingDown  = decision.NewReason("ScalingDown", "the largest set has {have} machines, all created before it was scaled down; {want} would freeze it if one of them was new")
	reasonStayFrozen   = decision.NewReason("StaysFrozen", "frozen: the largest set has {have} machines; at {want} or less it thaws")
	reasonNotWatched   = decision.NewReason("NotWatched", "being deleted, or overshoot is not watched: nothing to freeze")
)
