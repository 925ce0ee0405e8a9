package deployment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// step is the next step of the rollout: the sizes that it orders, or why it orders none.
type step struct {
	fleet   rollout.Fleet
	scales  []rollout.Scale
	selects []rollout.Select // machines to be updated in place
	why     rollout.Why
}

// waitRemark returns a remark for the reason of a wait: which object that it waits for is paused or not fit for
// an update, and how many machines are too old.
func (d *state) waitRemark() string {
	text := d.pausedRemark()
	if n := d.expired(); n > 0 {
		what := "are being replaced"
		if d.current == nil || d.rolling() || d.deployment.Spec.Paused || d.current.paused {
			what = "have to wait"
		}
		text += fmt.Sprintf("; %d too old: they %s", n, what)
	}
	return text
}

// pausedRemark returns a remark if the set that the deployment waits for has paused machines, or
// unfitRemark's.
func (d *state) pausedRemark() string {
	f := d.setNamed(d.next.why.Set)
	if unfit := d.unfitRemark(); unfit != "" {
		return unfit
	}
	switch {
	case f == nil || f.pausedMachines == 0 || d.next.why.Reason == rollout.ReasonPaused:
		return ""
	case f.pausedMachines == 1:
		return fmt.Sprintf("; machine %s of it is paused", f.firstPaused)
	}
	return fmt.Sprintf("; %d machines of it are paused, such as %s", f.pausedMachines, f.firstPaused)
}

// delayed reports whether some machine was selected, and begins its update once it is healthy again.
func (d *state) delayed() bool {
	return slices.ContainsFunc(d.sets, func(f setState) bool { return f.delayed > 0 && !f.set.Deleted() })
}

// unfitRemark returns a remark that names a machine that can't be updated in place as it is. The rollout waits
// until the machine recovers or is replaced.
func (d *state) unfitRemark() string {
	if d.next.why.Reason != rollout.ReasonUnfit {
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

// restoresOldSet reports whether an old set is raised to keep machines that it is about to delete.
// That order must not wait.
func (d *state) restoresOldSet() bool {
	for _, step := range d.next.scales {
		if f := d.resizable(step.Name); f != nil && f != d.current && step.To > step.From {
			return true
		}
	}
	return false
}

// nextStep computes the next step of the rollout with package rollout.
func (d *state) nextStep() (next step) {
	spec := &d.deployment.Spec
	recreate := spec.Strategy.Kind == Recreate
	next.fleet = rollout.Fleet{
		Replicas: spec.Replicas - d.hiddenMachines(), Bounds: d.bounds, Sets: make([]rollout.Set, len(d.sets)), Apart: recreate,
		StopAfter: d.stopAfter, Failed: d.rolloutFailures.Count,
		NoSelect: d.o.Frozen || d.unusableClass() != "" || d.rolloutFailures.Count > 0 && d.delayed(),
		Strict:   d.p.StrictQuota, Manual: spec.Strategy.Orchestration == Manual, NoRestore: d.o.Frozen || d.p.Keys.RaisedFrom == "",
	}
	for i := range d.sets {
		current := &d.sets[i] == d.current
		next.fleet.Sets[i] = d.sets[i].numbers(current, current && !spec.Paused)
		next.fleet.Sets[i].Behind = d.sets[i].size() - d.sets[i].actingSize(d.p.Keys.RaisedFrom)
	}
	switch {
	case spec.Paused || spec.Template.InvalidEntry() != nil: // only scales: no new machine could replace an old one
		if recreate {
			next.fleet.Bounds = rollout.Bounds{} // with Recreate all may be missing, which scaling alone does not need
		}
		next.scales, next.why = rollout.Resize(next.fleet, nil)
	case recreate:
		next.scales, next.why = rollout.Recreate(next.fleet, nil)
	case spec.Strategy.Kind == InPlaceUpdate:
		next.scales, next.selects, next.why = rollout.InPlace(next.fleet, nil, nil)
	default:
		next.scales, next.why = rollout.Step(next.fleet, nil)
	}
	d.addHidden(next.scales)
	for i := range d.sets {
		if s := d.sets[i].set; s.UID == next.why.Set {
			next.why.Set = s.Name // for people
		}
	}
	return next
}

// scale orders the sizes of the rollout's next step. While the fleet is frozen, it raises no set.
func (d *state) scale() (Plan, bool) {
	if d.held() {
		return Plan{}, false
	}
	var plan Plan
	for _, step := range d.next.scales {
		if f := d.resizable(step.Name); f != nil && !(d.o.Frozen && step.To > step.From) {
			changed := d.resized(f, step.To, f.choicesFor(step.To))
			closeRestored(changed, &step)
			d.reserveNames(f, changed)
			why := decision.Why{Reason: ReasonScale, Name: f.set.Name, Have: int64(step.From), Want: int64(step.To), Cause: step.Why}
			plan.Scale = append(plan.Scale, Order{changed, why})
		}
	}
	if len(plan.Scale) == 0 {
		d.batchSince = time.Time{}
		return d.repair()
	}
	if !d.restoresOldSet() && d.batchOrders() {
		return Plan{}, false
	}
	plan.Why = plan.Scale[0].Why
	return plan, true
}

// repair gives a set whose size is negative, which is invalid, the size that the rollout assumes for it.
func (d *state) repair() (Plan, bool) {
	var plan Plan
	for i := range d.sets {
		f := &d.sets[i]
		if f.set.Deleted() || f.paused || f.set.Spec.Replicas >= 0 {
			continue
		}
		why := decision.Why{Reason: ReasonRepair, Name: f.set.Name, Have: int64(f.set.Spec.Replicas), Want: int64(f.size())}
		plan.Scale = append(plan.Scale, Order{d.resized(f, f.size(), nil), why})
	}
	if len(plan.Scale) == 0 {
		return Plan{}, false
	}
	plan.Why = plan.Scale[0].Why
	return plan, true
}

// These errors of ScaleDown say why it is refused, for errors.Is. The error names the object.
var (
	// ErrDeleting: the deployment is being deleted.
	ErrDeleting = errors.New("it is being deleted")
	// ErrSize: the size is negative, or above the present one.
	ErrSize = errors.New("the size must be from 0 to the present one")
	// ErrTooMany: more machines are named than replicas are removed.
	ErrTooMany = errors.New("more machines are named than replicas are removed")
	// ErrNotMember: a named machine is not the deployment's.
	ErrNotMember = errors.New("the deployment has no such machine")
	// ErrMachineDeleting: a named machine is being deleted already, or was chosen for deletion before. It can't be
	// deleted twice.
	ErrMachineDeleting = errors.New("it is being deleted, or chosen for deletion, already")
	// ErrNamedTwice: a machine is named twice.
	ErrNamedTwice = errors.New("it is named twice")
	// ErrNoKey: Keys.DeletionCandidates is empty, so machines can't be named.
	ErrNoKey = errors.New("the policy has no annotation key for deletion candidates")
)

// ScaleDown returns the deployment of the observation with the given size, and with the named machines
// chosen for deletion. Both are one update, so that neither is ever seen without the other. The update
// also has the time of the change (Keys.ScaledAt). The observation must be read live; only Deployment and
// Sets are used. If the deployment already has this size and these names, it is returned unchanged, so that a
// caller whose answer was lost may call it again.
//
// The named machines are deleted first, within the bounds of the deployment's strategy. If one can't
// be deleted because availability would fall below the floor, another one is deleted.
func ScaleDown(o *Observation, names []string, size int32, p *Policy, now time.Time) (*Deployment, error) {
	if o == nil || o.Deployment == nil {
		return nil, fmt.Errorf("deployment.ScaleDown: %w", decision.ErrNoObservation)
	}
	d, p := o.Deployment, p.WithDefaults()
	refuse := func(err error) (*Deployment, error) {
		return nil, fmt.Errorf("scaling deployment %s from %d to %d: %w", d.Key, d.Spec.Replicas, size, err)
	}
	if d.Deleted() {
		return refuse(ErrDeleting)
	}
	listed, _ := parseDeletionCandidates(d.Annotations[p.Keys.DeletionCandidates])
	if size == d.Spec.Replicas && allListed(listed, names) {
		return d, nil
	}
	if bad := o.checkScaleDown(names, size, p.Keys.DeletionCandidates, listed); bad != nil {
		return refuse(bad)
	}
	changed := d.Clone()
	changed.Spec.Replicas = size
	if len(names) > 0 {
		at := now.Truncate(time.Second)
		if before := d.scaledAt(p); before.After(at) { // the clock of another scaler is ahead
			at = before
		}
		for _, name := range names {
			listed = append(listed, machineset.DeletionCandidate{Name: name, At: at})
		}
		changed.Annotations = withDeletionCandidates(d.Annotations, p.Keys.DeletionCandidates, listed)
		if p.Keys.ScaledAt != "" {
			changed.Annotations[p.Keys.ScaledAt] = at.UTC().Format(time.RFC3339)
		}
	}
	return changed, nil
}

func allListed(listed []machineset.DeletionCandidate, names []string) bool {
	for _, name := range names {
		if !slices.ContainsFunc(listed, func(v machineset.DeletionCandidate) bool { return v.Name == name }) {
			return false
		}
	}
	return true
}

// checkScaleDown returns why the named machines can't be chosen for deletion when the deployment is scaled down
// to a size. Nil: they can.
func (o *Observation) checkScaleDown(names []string, size int32, key string, listed []machineset.DeletionCandidate) error {
	replicas := o.Deployment.Spec.Replicas
	switch {
	case size < 0 || size > replicas:
		return ErrSize
	case len(names) > 0 && key == "":
		return ErrNoKey
	case int64(len(names)) > int64(replicas)-int64(size):
		return ErrTooMany
	}
	for i, name := range names {
		bad := o.checkCandidate(name, listed)
		if slices.Contains(names[:i], name) {
			bad = ErrNamedTwice
		}
		if bad != nil {
			return fmt.Errorf("machine %s: %w", name, bad)
		}
	}
	return nil
}

// checkCandidate returns why a machine can't be chosen for deletion. Nil: it can.
func (o *Observation) checkCandidate(name string, listed []machineset.DeletionCandidate) error {
	owner, m := o.find(name)
	switch {
	case m == nil:
		return ErrNotMember
	case m.Deleted() || owner.Deleted():
		return ErrMachineDeleting
	}
	named := func(v machineset.DeletionCandidate) bool { return v.Name == name }
	if slices.ContainsFunc(listed, named) || slices.ContainsFunc(owner.Instructions.DeletionCandidates, named) {
		return ErrMachineDeleting
	}
	return nil
}

// find returns the machine with this name, and its set. Nil: the deployment has no such machine.
func (o *Observation) find(name string) (*machineset.Set, *machine.Machine) {
	key := object.Key{Namespace: o.Deployment.Namespace, Name: name}
	for _, c := range o.Sets {
		if c.Set == nil || !c.Set.OwnedBy(o.Deployment.UID) {
			continue
		}
		for _, m := range c.Machines {
			if m != nil && m.Key == key && m.OwnedBy(c.Set.UID) {
				return c.Set, m
			}
		}
	}
	return nil, nil
}

// batchOrders reports whether orders of a rolling update wait for others that are about to join them, for
// Policy.Gather at most. The machines of a wave become available one by one; with a wait, all of them take one
// write of a set instead of several. Orders do not wait after a change of the spec, or if no others are
// expected.
func (d *state) batchOrders() bool {
	spec := &d.deployment.Spec
	rolling := spec.Strategy.Kind != Recreate && spec.Strategy.Kind != InPlaceUpdate && !spec.Paused
	if d.p.Gather == 0 || d.specChanged() || !rolling || !d.moreOrdersExpected() {
		return false
	}
	since := d.o.Gathering
	if since.IsZero() {
		since = d.now
	}
	wait := d.p.Gather
	if deadline := spec.ProgressDeadline; deadline > 0 {
		wait = min(wait, deadline/2) // the wait must not exceed the deadline
	}
	until := since.Add(wait)
	if since.After(d.now) || !d.now.Before(until) { // since is in the future if the clock was set back
		return false
	}
	d.batchSince, d.batchWait = since, until.Sub(d.now)
	d.wakeBy(until)
	return true
}

// specChanged reports whether the spec has changed since the last status was written. While the next status is
// delayed, a stored generation that is behind does not show that, so only a change of the size counts.
func (d *state) specChanged() bool {
	s := &d.deployment.Status
	resized := !s.WantedSince.IsZero() && s.Wanted != d.deployment.Spec.Replicas
	return resized || s.ObservedGeneration != d.deployment.Generation && !d.now.Before(d.statusAt(max(d.p.StatusInterval, 0)))
}

// moreOrdersExpected reports whether the rollout will probably give more orders soon: new machines are not
// available yet, or surplus machines still exist.
func (d *state) moreOrdersExpected() bool {
	for i := range d.sets {
		f, numbers := &d.sets[i], &d.next.fleet.Sets[i]
		if f == d.current && numbers.Available < numbers.Spec || numbers.Actual > numbers.Spec ||
			d.p.StrictQuota && numbers.Terminating > 0 {
			return true
		}
	}
	return false
}
