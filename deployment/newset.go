package deployment

import (
	"strings"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// ensureNewSet creates the new set, without machines, unless there is one, the deployment is paused or
// frozen, or no API server accepts its node template.
func (d *state) ensureNewSet() (Plan, bool) {
	if d.current != nil || d.held() || d.deployment.Spec.Paused || d.o.Frozen || d.deployment.Spec.Template.InvalidEntry() != nil {
		return Plan{}, false
	}
	set := d.newSetObject()
	switch holder := d.holder(set.Name); {
	case holder != nil && !d.usableAsNewSet(holder):
		return d.nextName(holder), true
	case holder != nil:
		return d.retryName(reasonSeen, set.Name)
	case d.o.Taken != nil && d.o.Taken.Name == set.Name:
		return d.retryName(reasonNameFree, set.Name)
	}
	why := decision.Why{Reason: ReasonCreate, Name: set.Name}
	return Plan{Create: []Order{{set, why}}, Why: why}, true
}

// retryName ends the orders of this pass. The next pass finds out which set has the name now.
func (d *state) retryName(reason decision.Reason, name string) (Plan, bool) {
	wait := codes.Conflict.Backoff(d.o.Failures, 0)
	d.hold = decision.Why{Reason: reason, Name: name, For: wait}
	d.wakeBy(d.now.Add(wait))
	return Plan{}, false
}

// newSetObject returns the set to be created for the deployment's template. It shares nothing with the
// deployment.
func (d *state) newSetObject() *machineset.Set {
	spec, label := &d.deployment.Spec, d.p.Keys.TemplateHash
	hash := templateHash(&spec.Template, label, d.deployment.Status.Collisions)

	set := &machineset.Set{}
	set.Namespace = d.deployment.Namespace
	set.Name = setName(d.deployment.Name, hash)
	set.Labels = withEntry(spec.Template.Labels, label, hash)
	set.AddFinalizer(machineset.Finalizer)
	set.Owner = d.owner()
	set.Revision = d.revision
	set.Spec = machineset.Spec{Selector: spec.Selector.Clone(), Template: spec.Template.Clone(), MinReady: spec.MinReady, MaxAge: spec.MaxAge}
	set.Spec.Selector.Labels = withEntry(spec.Selector.Labels, label, hash)
	set.Spec.Template.Labels = withEntry(spec.Template.Labels, label, hash)
	d.annotateReplicas(set)
	return set
}

// setName returns the name of a new set: the deployment's name and the hash. A long name is cut, so that the
// names of the set's machines fit into a host name (machineset.LongestName). Existing sets keep their names.
func setName(deployment, hash string) string {
	if room := machineset.LongestName - len("-") - len(hash); len(deployment) > room {
		deployment = strings.TrimRight(deployment[:room], "-.")
	}
	return deployment + "-" + hash
}

// holder returns the set that has a name: one of this deployment, an orphan, or the one in Observation.Taken.
// Nil: none is known.
func (d *state) holder(name string) *machineset.Set {
	for i := range d.sets {
		if d.sets[i].set.Name == name {
			return d.sets[i].set
		}
	}
	for _, s := range d.o.Orphans {
		if s != nil && s.Name == name && s.Namespace == d.deployment.Namespace {
			return s
		}
	}
	if t := d.o.Taken; t != nil && t.Name == name {
		return t.Set
	}
	return nil
}

// usableAsNewSet reports whether a set that has the new set's name is the new set, or an orphan that can
// become it.
func (d *state) usableAsNewSet(holder *machineset.Set) bool {
	ours := holder.OwnedBy(d.deployment.UID) && !holder.Deleted() && d.wanted(holder)
	return ours || d.adoptable(holder)
}

// nextName counts a collision, which changes the name of the new set.
func (d *state) nextName(holder *machineset.Set) Plan {
	why := decision.Why{Reason: reasonNameTaken, Name: holder.Name}
	if holder.Deleted() {
		why.Detail = " by a set that is being deleted"
	}
	status := d.deployment.Status.Clone()
	status.Collisions++
	return Plan{Write: &UpdateStatus{Status: status}, Why: why}
}

// syncTemplates copies changes of the template that replace no machine to the new set. An old set whose node
// template has an entry that no API server accepts gets the new node template, too: without a valid one, its
// machines that have no VM yet would wait for ever, because they neither fail nor can be updated in place.
func (d *state) syncTemplates() (Plan, bool) {
	if d.current == nil || d.held() {
		return Plan{}, false
	}
	var plan Plan
	for i := range d.sets {
		f := &d.sets[i]
		what := d.outdatedFields(f)
		if what == "" {
			continue
		}
		changed := f.set.Clone()
		if f == d.current {
			syncSet(changed, d.deployment)
		} else {
			changed.Spec.Template.Spec.NodeTemplate = d.deployment.Spec.Template.Spec.NodeTemplate.Clone()
		}
		d.addPending(f, changed, nil)
		plan.Push = append(plan.Push, Order{changed, decision.Why{Reason: reasonSyncTemplate, Name: changed.Name, Detail: what}})
	}
	if len(plan.Push) == 0 {
		return Plan{}, false
	}
	plan.Why = plan.Push[0].Why
	return plan, true
}

// outdatedFields returns what syncTemplates copies to a set. Empty: nothing.
func (d *state) outdatedFields(f *setState) string {
	have, want := &f.set.Spec.Template, &d.deployment.Spec.Template
	switch {
	case f == d.current:
		return outdatedField(f.set, d.deployment)
	case f.set.Deleted() || have.InvalidEntry() == nil || want.InvalidEntry() != nil:
		return ""
	}
	return "node template"
}

// begun reports whether a machine's update has begun, so that removing the request does not cancel it.
func begun(m *machine.Machine) bool {
	return m.Status.Phase == machine.PhaseInPlaceUpdating || updated(m)
}

// updated reports whether a machine's update was successful.
func updated(m *machine.Machine) bool { return m.Status.Phase == machine.PhaseInPlaceUpdateSuccessful }

// inUpdate reports whether a machine is being updated, or is about to be, and will then move to another set. A
// machine that was selected, here or by another program, and is not healthy, does not count: it begins when it
// is healthy again. Neither does one without a request: it stays in its set.
func inUpdate(m *machine.Machine) bool {
	if m.Spec.InPlace == machine.InPlaceNone {
		return false
	}
	return begun(m) || m.Ready() && (m.Spec.InPlace == machine.InPlaceSelected || selectedElsewhere(m))
}

// selectedElsewhere reports whether the node's condition says that its update has begun although the machine's
// request does not: then another program has selected it.
func selectedElsewhere(m *machine.Machine) bool {
	c := object.FindCondition(m.Status.Conditions, machine.NodeInPlaceUpdate)
	if c == nil || c.Status != object.True {
		return false
	}
	switch c.Reason {
	case machine.ReasonSelectedForUpdate, machine.ReasonDrainSuccessful, machine.ReasonReadyForUpdate:
		return true
	}
	return false
}

// delayed reports whether a machine was selected and begins when it is healthy again.
func delayed(m *machine.Machine) bool {
	return m.Status.Phase == machine.PhaseUnknown && m.Spec.InPlace == machine.InPlaceSelected
}

// selectable reports whether a machine that is available can be selected. A machine without a node
// has no agent that could update it.
func selectable(m *machine.Machine) bool {
	return m.Status.Phase == machine.PhaseRunning && m.Spec.InPlace != machine.InPlaceSelected
}

// countInPlace counts a machine that is not being deleted.
func (f *setState) countInPlace(m *machine.Machine, available, paused bool) {
	under := inUpdate(m)
	if under {
		f.underWay++
	} else if !m.Ready() && !begun(m) && (f.unfit == nil || m.Name < f.unfit.Name) {
		f.unfit = m
	}
	if available {
		f.available++
		if under {
			f.leaving++
		} else if selectable(m) && !paused {
			f.selectable++
		}
	}
	if delayed(m) {
		f.delayed++
	}
	countUpdate(&f.inPlace, m)
}

// countUpdate counts a machine by how far its update is.
func countUpdate(c *InPlaceCounts, m *machine.Machine) {
	switch {
	case m.Status.Phase == machine.PhaseInPlaceUpdating:
		c.Updating++
	case updated(m):
		c.Updated++
	case m.Status.Phase == machine.PhaseInPlaceUpdateFailed:
		c.Failed++
	case m.Spec.InPlace == machine.InPlaceSelected:
		c.Selected++
	case m.Spec.InPlace == machine.InPlaceCandidate, m.Spec.InPlace == machine.InPlaceWaiting:
		c.Candidates++
	}
}
