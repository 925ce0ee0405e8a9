package deployment

import (
	"math"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machineset"
)

// nextStep converts the sets to a rollout's numbers, and asks the strategy what is next.
func (d *decider) nextStep() (steps []rollout.Scale) {
	spec := &d.deployment.Spec
	recreate := spec.Strategy.Kind == Recreate
	d.readChoices()
	d.offer()
	d.fleet = rollout.Fleet{
		Replicas: spec.Replicas - d.asideAll(), Bounds: d.bounds, Sets: make([]rollout.Set, len(d.sets)), Apart: recreate,
		Strict: d.p.StrictQuota, Manual: spec.Strategy.Orchestration == Manual, NoGiveBack: d.o.Frozen || d.p.Keys.RaisedFrom == "",
	}
	for i := range d.sets {
		current := &d.sets[i] == d.current
		d.fleet.Sets[i] = d.sets[i].numbers(current, current && !spec.Paused)
		d.fleet.Sets[i].Behind = d.sets[i].size() - d.sets[i].actsOn(d.p.Keys.RaisedFrom)
	}
	switch {
	case spec.Paused:
		if recreate {
			d.fleet.Bounds = rollout.Bounds{} // scaling alone needs no missing machine
		}
		steps, d.step = rollout.Resize(d.fleet, nil)
	case recreate:
		steps, d.step = rollout.Recreate(d.fleet, nil)
	case spec.Strategy.Kind == InPlaceUpdate:
		steps, d.selects, d.step = rollout.InPlace(d.fleet, nil, nil)
	default:
		steps, d.step = rollout.Step(d.fleet, nil)
	}
	d.addAside(steps)
	for i := range d.sets {
		if s := d.sets[i].set; s.UID == d.step.Set {
			d.step.Set = s.Name // for people
		}
	}
	return steps
}

// scale orders what the rollout's next step asks for. If there is no order, it keeps the reason for
// that. While the fleet is frozen, no set is raised.
func (d *decider) scale() (Plan, bool) {
	steps := d.nextStep()
	if d.held() {
		return Plan{}, false
	}
	d.handOver(steps)
	var plan Plan
	for _, step := range steps {
		if f := d.resizable(step.Name); f != nil && !(d.o.Frozen && step.To > step.From) {
			s, changed := f.set, d.resized(f, step.To)
			d.keepOnly(changed, &step)
			d.nameNew(changed, f)
			why := decision.Why{Reason: ReasonScale, Name: s.Name, Have: int64(step.From), Want: int64(step.To), Cause: step.Why}
			plan.Scale = append(plan.Scale, Order{changed, why})
		}
	}
	if len(plan.Scale) == 0 {
		d.gathering = time.Time{}
		return d.repair()
	}
	if !d.givesBack(steps) && d.gather() {
		return Plan{}, false
	}
	plan.Why = plan.Scale[0].Why
	return plan, true
}

// resizable returns the set with this UID, if it can be resized.
func (d *decider) resizable(uid string) *family {
	for i := range d.sets {
		if f := &d.sets[i]; f.set.UID == uid && !f.set.Deleted() {
			return f
		}
	}
	return nil
}

// repair gives a set of negative size, which is invalid, the size that the rollout has assumed for
// it.
func (d *decider) repair() (Plan, bool) {
	var plan Plan
	for i := range d.sets {
		f := &d.sets[i]
		if f.set.Deleted() || f.paused || f.set.Spec.Replicas >= 0 {
			continue
		}
		why := decision.Why{Reason: ReasonRepair, Name: f.set.Name, Have: int64(f.set.Spec.Replicas), Want: int64(f.size())}
		plan.Scale = append(plan.Scale, Order{d.resized(f, f.size()), why})
	}
	if len(plan.Scale) == 0 {
		return Plan{}, false
	}
	plan.Why = plan.Scale[0].Why
	return plan, true
}

// resized returns a set with another size. It also settles the names that became machines.
func (d *decider) resized(f *family, size int32) *machineset.Set {
	changed := f.set.Clone()
	changed.Spec.Replicas = size
	if f.namesDone() {
		changed.Instructions.Reservation = changed.Instructions.Reservation.Next(0, time.Time{})
	}
	d.carry(changed, f.set)
	d.annotate(changed)
	d.noteRaise(changed, f)
	return changed
}

// annotate notes R and R + S on a set that is being written anyway, unless another program has
// written them.
func (d *decider) annotate(s *machineset.Set) {
	replicas := int64(d.deployment.Spec.Replicas)
	for _, note := range [...]struct {
		key string
		n   int64
	}{
		{d.p.Keys.DesiredReplicas, replicas},
		{d.p.Keys.MaxReplicas, min(replicas+int64(d.bounds.Surge), math.MaxInt32)},
	} {
		if note.key == "" {
			continue
		}
		if s.Annotations == nil {
			s.Annotations = make(map[string]string, 2)
		}
		s.Annotations[note.key] = strconv.FormatInt(note.n, 10)
	}
}
