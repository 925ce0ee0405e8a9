package deployment

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
)

// resizing is the next step of the rollout, and the sizes that it orders.
type resizing struct {
	*summary
	scaler *scaler

	fleet     rollout.Fleet
	step      rollout.Why
	selects   []rollout.Select // what the step wants updated in place
	gathering time.Time        // since when orders wait for others; zero: they do not
	gathered  time.Duration    // for how long they still do; zero: they do not
}

// remark returns what else to say of a deployment that waits: that the object it waits for is
// paused, and that machines are too old.
func (d *resizing) remark() string {
	text := d.keptRemark()
	if n := d.expired(); n > 0 {
		what := "are being replaced"
		if d.current == nil || d.rolling() || d.deployment.Spec.Paused || d.current.paused {
			what = "have to wait"
		}
		text += fmt.Sprintf("; %d too old: they %s", n, what)
	}
	return text
}

// keptRemark returns a remark if the set that the deployment waits for has paused machines.
func (d *resizing) keptRemark() string {
	f := d.family(d.step.Set)
	if unfit := d.unfitRemark(); unfit != "" {
		return unfit
	}
	switch {
	case f == nil || f.spared == 0 || d.step.Reason == rollout.ReasonPaused:
		return ""
	case f.spared == 1:
		return fmt.Sprintf("; machine %s of it is paused", f.firstKept)
	}
	return fmt.Sprintf("; %d machines of it are paused, such as %s", f.spared, f.firstKept)
}

// delayed reports whether some machine was selected and has yet to begin when it is healthy again.
func (d *summary) delayed() bool {
	return slices.ContainsFunc(d.sets, func(f family) bool { return f.delayed > 0 && !f.set.Deleted() })
}

// unfitRemark names a machine that can't be updated in place as it is. The rollout waits until it
// recovers, or is replaced for its health.
func (d *resizing) unfitRemark() string {
	if d.step.Reason != rollout.ReasonUnfit {
		return ""
	}
	for i := range d.sets {
		f := &d.sets[i]
		if m := f.unfit; m != nil && f != d.current {
			return fmt.Sprintf("; machine %s is %s", m.Name, cmp.Or(string(m.Status.Phase), "new"))
		}
	}
	return ""
}

// givesBack reports whether an old set is raised to keep machines that it is about to delete. It
// must know at once.
func (d *resizing) givesBack(steps []rollout.Scale) bool {
	for _, step := range steps {
		if f := d.resizable(step.Name); f != nil && f != d.current && step.To > step.From {
			return true
		}
	}
	return false
}

// nextStep converts the sets to a rollout's numbers, and asks the strategy what is next.
func (d *resizing) nextStep() (steps []rollout.Scale) {
	spec := &d.deployment.Spec
	recreate := spec.Strategy.Kind == Recreate
	d.scaler.readChoices()
	d.scaler.offer()
	d.fleet = rollout.Fleet{
		Replicas: spec.Replicas - d.asideAll(), Bounds: d.bounds, Sets: make([]rollout.Set, len(d.sets)), Apart: recreate,
		StopAfter: d.stopAfter, Failed: d.rolloutFailures.Count, NoSelect: d.o.Frozen || d.unusableClass() != "" || d.rolloutFailures.Count > 0 && d.delayed(),
		Strict: d.p.StrictQuota, Manual: spec.Strategy.Orchestration == Manual, NoGiveBack: d.o.Frozen || d.p.Keys.RaisedFrom == "",
	}
	for i := range d.sets {
		current := &d.sets[i] == d.current
		d.fleet.Sets[i] = d.sets[i].numbers(current, current && !spec.Paused)
		d.fleet.Sets[i].Behind = d.sets[i].size() - d.sets[i].actsOn(d.p.Keys.RaisedFrom)
	}
	switch {
	case spec.Paused || spec.Template.InvalidEntry() != nil: // no machine is made that could take another's place
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
func (d *resizing) scale() (Plan, bool) {
	steps := d.nextStep()
	if d.held() {
		return Plan{}, false
	}
	d.scaler.handOver(steps)
	var plan Plan
	for _, step := range steps {
		if f := d.resizable(step.Name); f != nil && !(d.o.Frozen && step.To > step.From) {
			s, write := f.set, setWrite{d.summary, f}
			changed := write.resized(step.To)
			keepOnly(changed, &step)
			write.nameNew(changed)
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

// repair gives a set of negative size, which is invalid, the size that the rollout has assumed for
// it.
func (d *resizing) repair() (Plan, bool) {
	var plan Plan
	for i := range d.sets {
		f := &d.sets[i]
		if f.set.Deleted() || f.paused || f.set.Spec.Replicas >= 0 {
			continue
		}
		why := decision.Why{Reason: ReasonRepair, Name: f.set.Name, Have: int64(f.set.Spec.Replicas), Want: int64(f.size())}
		plan.Scale = append(plan.Scale, Order{setWrite{d.summary, f}.resized(f.size()), why})
	}
	if len(plan.Scale) == 0 {
		return Plan{}, false
	}
	plan.Why = plan.Scale[0].Why
	return plan, true
}
