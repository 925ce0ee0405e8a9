package deployment

import (
	"cmp"
	"slices"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// In an update in place, machines of old sets are marked as candidates. Some are selected, no more
// than may be unavailable. A selected machine updates itself and then moves to the new set
// (moving.go). Package rollout has the arithmetic (rollout.InPlace). The rules beside it:
//
//   - An update that has begun is not called off. The machine records for which set it was selected,
//     and moves there when it is done, even if another template is wanted by then.
//   - A machine that was selected and has not begun is deselected when its set has the wanted
//     template again.
//   - While the deployment is paused, none is selected; what has begun is finished and moved. None
//     is selected either while a set may be deleting a machine for a replacement.
//   - A machine whose update failed stays as long as it blocks no other. If it uses up the allowed
//     unavailability, it is deleted and replaced; the last ones wait for the end of their health
//     timeout. With Manual, none is deleted for that.
//   - Old sets are closed: what they lose is replaced in the new set.

// markBurst is how many machines one plan changes at most, the same as for sets.
const markBurst = 100

// begun reports whether a machine's update can't be cancelled any more by removing the request. Its
// outcome is known when it is over.
func begun(m *machine.Machine) bool {
	return m.Status.Phase == machine.PhaseInPlaceUpdating || updated(m)
}

// updated reports whether a machine's update was successful.
func updated(m *machine.Machine) bool { return m.Status.Phase == machine.PhaseInPlaceUpdateSuccessful }

// inUpdate reports whether a machine is being updated, or about to be, and will move then. A
// machine that was selected, here or by another program, and is not healthy begins, if ever, when
// it is healthy again. A machine without a request returns to work where it is.
func inUpdate(m *machine.Machine) bool {
	if m.Spec.InPlace == machine.InPlaceNone {
		return false
	}
	return begun(m) || m.Ready() && (m.Spec.InPlace == machine.InPlaceSelected || selectedElsewhere(m))
}

// selectedElsewhere reports whether a machine's node says that its update has begun. If the update
// began here, the machine says so itself before.
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

// selectable reports whether a machine that is available can be selected. A machine without a node
// has no agent that could update it.
func selectable(m *machine.Machine) bool {
	return m.Status.Phase == machine.PhaseRunning && m.Spec.InPlace != machine.InPlaceSelected
}

// countInPlace counts a machine that is not being deleted.
func (f *family) countInPlace(m *machine.Machine, available, paused bool) {
	under := inUpdate(m)
	if under {
		f.underWay++
	} else if !m.Ready() && !begun(m) {
		f.broken++
	}
	if available {
		f.available++
		if under {
			f.leaving++
		} else if selectable(m) && !paused {
			f.selectable++
		}
	}
	c := &f.inPlace
	switch {
	case m.Status.Phase == machine.PhaseInPlaceUpdating:
		c.Updating++
	case updated(m):
		c.Updated++
	case m.Status.Phase == machine.PhaseInPlaceUpdateFailed:
		c.Failed++
	case m.Spec.InPlace == machine.InPlaceSelected:
		c.Selected++
	case m.Spec.InPlace == machine.InPlaceCandidate:
		c.Candidates++
	}
}

func (c *InPlaceCounts) add(other *InPlaceCounts) {
	c.Candidates += other.Candidates
	c.Selected += other.Selected
	c.Updating += other.Updating
	c.Updated += other.Updated
	c.Failed += other.Failed
}

// furtherThan reports whether some machine is further with its update than in another count. A
// failed machine is not.
func (c *InPlaceCounts) furtherThan(b *InPlaceCounts) bool {
	return c.Updated > b.Updated || c.Updating > b.Updating || c.Selected > b.Selected
}

// updatesInPlace reports whether machines of old sets are being updated in place.
func (d *decider) updatesInPlace() bool {
	spec := &d.deployment.Spec
	return spec.Strategy.Kind == InPlaceUpdate && !spec.Paused && d.current != nil
}

// gate keeps old sets from creating machines while theirs are updated in place. It opens sets that
// were closed for that, or when machines were given back to them. A closed set's size may be larger
// than what it has, because other sets may have replaced the rest already. So it is opened at what
// it has, in the same write. A paused set stays closed, because it keeps its size. If another
// manager has labelled the current set to make no machines, gate removes the label.
func (d *decider) gate() (Plan, bool) {
	if d.held() {
		return Plan{}, false
	}
	var plan Plan
	for i := range d.sets {
		f := &d.sets[i]
		why := decision.Why{Reason: reasonOpen, Name: f.set.Name}
		closed, barred := d.updatesInPlace() && f != d.current, f == d.current && d.barred(f.set)
		if closed {
			why.Reason = reasonClose
		}
		if f.set.Deleted() || f.set.Instructions.Handover.Closed == closed && !barred || !d.mayGate(f, closed) {
			continue
		}
		changed := f.set.Clone()
		if barred {
			changed.Labels = withoutEntry(changed.Labels, d.p.Keys.ScaleUpDisabled)
		}
		changed.Instructions.Handover.Closed, changed.Instructions.Marks, changed.Instructions.SurgeAllowance = closed, d.marks(f.set), d.surgeAllowance(f)
		if !closed {
			changed.Spec.Replicas -= int32(f.vacant())
		}
		if f == d.current {
			changed.Revision = d.revision
		}
		plan.Push = append(plan.Push, Order{changed, why})
	}
	if len(plan.Push) == 0 {
		return Plan{}, false
	}
	plan.Why = plan.Push[0].Why
	return plan, true
}

// mayGate reports whether a set may be closed or opened. An empty one need not be closed: it makes none.
func (d *decider) mayGate(f *family, closed bool) bool {
	if closed {
		return f.size() != 0
	}
	return d.mayOpen(f)
}

// barred reports whether another manager has labelled a set so that it makes no
// machines. It does so to old sets, and leaves the label there.
func (d *decider) barred(s *machineset.Set) bool {
	_, labelled := s.Labels[d.p.Keys.ScaleUpDisabled]
	return labelled && d.p.Keys.ScaleUpDisabled != ""
}

// withdraw removes requests from machines that are not to be updated: those that have the wanted
// template again, and all if the strategy is another one. A machine whose update has begun finishes
// it, and its place is decided afterwards. A failed machine keeps its request as long as it is
// failed.
func (d *decider) withdraw() (Plan, bool) {
	if d.held() {
		return Plan{}, false
	}
	var orders []MachineOrder
	inPlace := d.deployment.Spec.Strategy.Kind == InPlaceUpdate
	for i := range d.sets {
		f := &d.sets[i]
		if f.set.Deleted() || inPlace && f != d.current {
			continue
		}
		detail := "it has the wanted template"
		if !inPlace {
			detail = "the strategy is another one"
		}
		idle := func(m *machine.Machine) bool { return m.Spec.InPlace != machine.InPlaceNone && d.withdrawable(f, m) }
		for _, m := range f.first(markBurst-len(orders), idle) {
			why := decision.Why{Reason: reasonWithdraw, Name: m.Name, Detail: detail}
			orders = append(orders, MachineOrder{d.requested(m, machine.InPlaceNone, ""), why})
		}
	}
	return markPlan(orders)
}

// withdrawable reports whether a request may be removed from a machine, for any reason.
func (d *decider) withdrawable(f *family, m *machine.Machine) bool {
	switch {
	case updated(m):
		return d.target(f, m) == nil
	case begun(m):
		return false
	}
	return m.Status.Phase != machine.PhaseInPlaceUpdateFailed
}

// owns reports whether a machine counts as one of the set.
func (f *family) owns(m *machine.Machine) bool {
	return m != nil && m.OwnedBy(f.set.UID) && !m.Deleted()
}

func markPlan(orders []MachineOrder) (Plan, bool) {
	if len(orders) == 0 {
		return Plan{}, false
	}
	return Plan{Mark: orders, Why: orders[0].Why}, true
}

// requested returns a copy of a machine with another request. target is the set whose template it
// is to be updated to. Empty: none.
func (d *decider) requested(m *machine.Machine, request machine.InPlaceRequest, target string) *machine.Machine {
	changed := m.Clone()
	changed.Spec.InPlace = request
	switch key := d.p.Keys.InPlaceTarget; {
	case key == "":
	case target == "":
		delete(changed.Annotations, key)
	default:
		changed.Annotations = withEntry(changed.Annotations, key, target)
	}
	return changed
}

// markMachines selects machines as the rollout's next step wants, records what those that others
// selected are updated to, and makes all other machines of old sets candidates. While paused it
// marks nothing, and marks stay. It selects none while a set may be deleting others to replace
// them.
func (d *decider) markMachines() (Plan, bool) {
	if d.held() || !d.updatesInPlace() {
		return Plan{}, false
	}
	var orders []MachineOrder
	selects := d.selects
	if slices.ContainsFunc(d.sets, func(f family) bool { return f.taking() }) {
		selects = nil
	}
	for _, s := range selects {
		for _, m := range d.chosen(s) {
			why := decision.Why{Reason: ReasonSelect, Name: m.Name, Cause: s.Why}
			orders = append(orders, MachineOrder{d.requested(m, machine.InPlaceSelected, d.current.set.Name), why})
		}
	}
	chosen := orders
	for i := range d.sets {
		f := &d.sets[i]
		if f == d.current || f.set.Deleted() {
			continue
		}
		unmarked := func(m *machine.Machine) bool { return d.unmarked(m) && !isChosen(chosen, m) }
		for _, m := range f.first(markBurst-len(orders), unmarked) {
			orders = append(orders, d.note(m))
		}
	}
	return markPlan(orders)
}

func isChosen(orders []MachineOrder, m *machine.Machine) bool {
	return slices.ContainsFunc(orders, func(o MachineOrder) bool { return o.Machine.UID == m.UID && o.Machine.Name == m.Name })
}

// unmarked reports whether a machine of an old set lacks the mark that note returns. If a machine
// is being updated without a request, another program selected it. It continues its update like one
// that a user has selected.
func (d *decider) unmarked(m *machine.Machine) bool {
	if d.deselects(m) {
		return true
	}
	if inUpdate(m) {
		key := d.p.Keys.InPlaceTarget
		return key != "" && m.Annotations[key] == ""
	}
	return m.Spec.InPlace == machine.InPlaceNone && !updated(m)
}

// deselects reports whether to deselect a machine, because it is kept for inspection and could
// begin its update at any time otherwise.
func (d *decider) deselects(m *machine.Machine) bool {
	return m.Preserved(d.now) && m.Spec.InPlace == machine.InPlaceSelected && m.Status.Phase == machine.PhaseRunning &&
		d.deployment.Spec.Strategy.Orchestration == Automatic
}

// note returns the mark of a machine of an old set that is not selected now.
func (d *decider) note(m *machine.Machine) MachineOrder {
	if inUpdate(m) && !d.deselects(m) {
		name := d.current.set.Name
		why := decision.Why{Reason: reasonTarget, Name: m.Name, Detail: name}
		return MachineOrder{d.requested(m, m.Spec.InPlace, name), why}
	}
	why := decision.Why{Reason: reasonCandidate, Name: m.Name}
	return MachineOrder{d.requested(m, machine.InPlaceCandidate, ""), why}
}

// chosen returns the machines of a set that are selected, no more than a plan may hold: those that
// are available and selectable, the oldest first, equal ones by name.
func (d *decider) chosen(s rollout.Select) []*machine.Machine {
	f := d.resizable(s.Name)
	if f == nil {
		return nil
	}
	return f.first(int(min(s.Count, markBurst)), func(m *machine.Machine) bool {
		return selectable(m) && !d.leaves(&m.Meta) && d.available(m)
	})
}

// first returns the oldest of a set's machines, by age and then by name, that are wanted and not
// being deleted.
func (f *family) first(limit int, wanted func(*machine.Machine) bool) []*machine.Machine {
	var out []*machine.Machine
	for _, m := range f.machines {
		if m == nil || !wanted(m) || !f.owns(m) { // the owner is another read of memory for each machine
			continue
		}
		if limit <= 0 || len(out) == limit && olderMachine(out[limit-1], m) <= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(out, m, olderMachine)
		out = slices.Insert(out, at, m)
		out = out[:min(len(out), limit)]
	}
	return out
}

func olderMachine(a, b *machine.Machine) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// family returns the set of that name that can be given orders.
func (d *decider) family(name string) *family {
	for i := range d.sets {
		if f := &d.sets[i]; f.set.Name == name && !f.set.Deleted() {
			return f
		}
	}
	return nil
}

// target returns the set that an updated machine belongs to: the one it was selected for or, if
// that is not known or gone, the new one. Nil: it is there already, or there is none.
func (d *decider) target(f *family, m *machine.Machine) *family {
	to := d.current
	if key := d.p.Keys.InPlaceTarget; key != "" && m.Annotations[key] != "" {
		if noted := d.family(m.Annotations[key]); noted != nil {
			to = noted
		}
	}
	if to == f {
		return nil
	}
	return to
}

// moved returns a copy of a machine as a set would have created it. It keeps what is its own: its
// identity, and what others put on it.
func (d *decider) moved(m *machine.Machine, from, to *machineset.Set) *machine.Machine {
	c := m.Clone()
	have, want := &from.Spec.Template, to.Spec.Template.Clone()
	c.Owner.Name, c.Owner.UID, c.Owner.Kind = to.Name, to.UID, machineset.OwnerKind
	c.Labels = exchanged(c.Labels, have.Labels, want.Labels)
	if !to.Spec.Selector.Matches(c.Labels) {
		c.Labels = want.Labels // what others put there would make it a stray
	}
	c.Annotations = exchanged(c.Annotations, have.Annotations, want.Annotations)
	delete(c.Annotations, d.p.Keys.InPlaceTarget)
	id, node := c.Spec.ProviderID, c.Spec.NodeName
	c.Spec = want.Spec
	c.Spec.ProviderID, c.Spec.NodeName, c.Spec.InPlace = id, node, machine.InPlaceNone
	return c
}

// exchanged returns m with the entries of a new template in place of those of an old one.
func exchanged(m, old, add map[string]string) map[string]string {
	out := make(map[string]string, len(m)+len(add))
	for k, v := range m {
		if was, ok := old[k]; !ok || was != v {
			out[k] = v
		}
	}
	for k, v := range add {
		out[k] = v
	}
	return out
}
