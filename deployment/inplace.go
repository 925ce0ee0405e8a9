package deployment

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
)

// In an update in place, machines of old sets are marked as candidates. Some are selected, no more
// than may be unavailable. A selected machine updates itself and then moves to the new set
// (moving.go). Package rollout computes how many (rollout.InPlace). There are more rules:
//
//   - An update that has begun is not cancelled. The machine records for which set it was selected,
//     and moves there when it is done, even if another template is wanted by then.
//   - A machine that was selected and has not begun is deselected when its set has the wanted
//     template again.
//   - While the deployment is paused, none is selected; updates that have begun are finished, and their
//     machines moved. None is selected either while a set may be deleting a machine to replace it, while
//     the fleet is frozen, or while no machine could be created from the template's class.
//   - A machine that is not ready, or whose update failed, counts against MaxUnavailable. The update
//     does not delete it. Like any unhealthy machine, it fails after the health timeout, within the
//     budget of replacements; then its set deletes it and the new set replaces it.
//   - When too many updates have failed, none is selected (failures.go).
//   - Old sets are closed: machines that they lose are replaced in the new set.

// classRetry is how soon a deployment checks again a class or a secret that is missing or invalid, unless
// a change of another object wakes it before.
const classRetry = 30 * time.Second

// unusableClass returns why no machine could be created from the template's class. Then no machine is updated
// to it in place either. Empty: the class is usable as far as is known, or no update in place is under way.
func (d *state) unusableClass() string {
	switch {
	case d.deployment.Spec.Strategy.Kind != InPlaceUpdate || d.current == nil || !d.rolling():
		return ""
	case d.o.ClassMissing:
		return "class " + d.deployment.Spec.Template.Spec.Class.Name + " does not exist"
	}
	return d.o.ClassInvalid
}

// markBurst is how many machines one plan changes at most: the default of machineset.Policy.Burst.
const markBurst = 100

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

// withdraw removes requests from machines that are not to be updated: those that have the wanted
// template again, and all if the strategy is not InPlaceUpdate. A machine whose update has begun
// finishes it first. A failed machine keeps its request as long as it is failed.
func (d *state) withdraw() (Plan, bool) {
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
			detail = "the strategy has changed"
		}
		withdrawable := func(m *machine.Machine) bool { return m.Spec.InPlace != machine.InPlaceNone && d.withdrawable(f, m) }
		for _, m := range f.oldest(markBurst-len(orders), withdrawable) {
			why := decision.Why{Reason: reasonWithdraw, Name: m.Name, Detail: detail}
			orders = append(orders, MachineOrder{d.withRequest(m, machine.InPlaceNone, ""), why})
		}
	}
	return markPlan(orders)
}

// withdrawable reports whether a machine's request may be removed.
func (d *state) withdrawable(f *setState, m *machine.Machine) bool {
	switch {
	case updated(m):
		return d.target(f, m) == nil
	case begun(m):
		return false
	}
	return m.Status.Phase != machine.PhaseInPlaceUpdateFailed
}

func markPlan(orders []MachineOrder) (Plan, bool) {
	if len(orders) == 0 {
		return Plan{}, false
	}
	return Plan{Mark: orders, Why: orders[0].Why}, true
}

// withRequest returns a copy of a machine with another request. target is the set whose template it
// is to be updated to. Empty: none.
func (d *state) withRequest(m *machine.Machine, request machine.InPlaceRequest, target string) *machine.Machine {
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

// markMachines selects machines as the rollout's next step wants, records the target set of machines
// that somebody else selected, and makes all other machines of old sets candidates. While the deployment is
// paused it changes no mark. It selects no machine while a set may be deleting others to replace them. While
// the template's class can't be used, it makes no candidates, because users could select them.
func (d *state) markMachines() (Plan, bool) {
	if d.held() || !d.updatesInPlace() {
		return Plan{}, false
	}
	var orders []MachineOrder
	selects := d.next.selects
	if slices.ContainsFunc(d.sets, func(f setState) bool { return f.mayBeReplacing() }) {
		selects = nil
	}
	for _, s := range selects {
		for _, m := range d.machinesToSelect(s) {
			why := decision.Why{Reason: ReasonSelect, Name: m.Name, Cause: s.Why}
			orders = append(orders, MachineOrder{d.withRequest(m, machine.InPlaceSelected, d.current.set.Name), why})
		}
	}
	chosen, usable := orders, d.unusableClass() == ""
	for i := range d.sets {
		f := &d.sets[i]
		if f == d.current || f.set.Deleted() {
			continue
		}
		unmarked := func(m *machine.Machine) bool {
			return d.needsMark(m) && !isChosen(chosen, m) && (usable || m.Spec.InPlace != machine.InPlaceNone || inUpdate(m))
		}
		for _, m := range f.oldest(markBurst-len(orders), unmarked) {
			orders = append(orders, d.markOf(m))
		}
	}
	return markPlan(orders)
}

func isChosen(orders []MachineOrder, m *machine.Machine) bool {
	return slices.ContainsFunc(orders, func(o MachineOrder) bool { return o.Machine.UID == m.UID && o.Machine.Name == m.Name })
}

// needsMark reports whether a machine of an old set lacks the mark that markOf returns. A machine that is
// being updated without a request was selected by another program. It continues its update like one that
// a user has selected.
func (d *state) needsMark(m *machine.Machine) bool {
	if d.deselects(m) {
		return true
	}
	if inUpdate(m) {
		key := d.p.Keys.InPlaceTarget
		return key != "" && m.Annotations[key] == ""
	}
	return m.Spec.InPlace != machine.InPlaceSelected && m.Spec.InPlace != d.candidate() && !updated(m)
}

// candidate returns the request of a machine that is not selected. With Manual, users may select it by a label
// on its node, and may select any number at once.
func (d *state) candidate() machine.InPlaceRequest {
	if d.deployment.Spec.Strategy.Orchestration == Manual {
		return machine.InPlaceCandidate
	}
	return machine.InPlaceWaiting
}

// deselects reports whether to deselect a machine, which only Automatic does. A preserved one is deselected,
// because it could begin its update at any time. Once updates have failed, so is one that has to become
// healthy before it can begin.
func (d *state) deselects(m *machine.Machine) bool {
	if d.deployment.Spec.Strategy.Orchestration != Automatic {
		return false
	}
	return m.Preserved(d.now) && m.Spec.InPlace == machine.InPlaceSelected && m.Status.Phase == machine.PhaseRunning ||
		d.rolloutFailures.Count > 0 && delayed(m)
}

// markOf returns the mark of a machine of an old set that is not selected now.
func (d *state) markOf(m *machine.Machine) MachineOrder {
	if inUpdate(m) && !d.deselects(m) {
		name := d.current.set.Name
		why := decision.Why{Reason: reasonTarget, Name: m.Name, Detail: name}
		return MachineOrder{d.withRequest(m, m.Spec.InPlace, name), why}
	}
	why := decision.Why{Reason: reasonCandidate, Name: m.Name}
	return MachineOrder{d.withRequest(m, d.candidate(), ""), why}
}

// machinesToSelect returns the machines of a set to select now: available and selectable ones, the oldest
// first, no more than a plan may hold.
func (d *state) machinesToSelect(s rollout.Select) []*machine.Machine {
	f := d.resizable(s.Name)
	if f == nil {
		return nil
	}
	return f.oldest(int(min(s.Count, markBurst)), func(m *machine.Machine) bool {
		return selectable(m) && !d.isPaused(&m.Meta) && d.available(m)
	})
}
