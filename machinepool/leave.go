package machinepool

import (
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Instances that the library chooses to remove, and those that the provider removes after a drain,
// are drained first. The list of them is stored before anything is done to them, with the time that
// their drain timeout counts from.

// updateLeaving updates the list of leaving instances.
func (d *state) updateLeaving() (Plan, bool) {
	have := d.s.Status.Leaving
	if len(have) == 0 && !d.anyToLeave() {
		return Plan{}, false
	}
	want, back := d.leaving()
	if slices.Equal(want, have) {
		return Plan{}, false
	}
	if len(want) > 0 && !d.o.Looked { // chosen from the current group
		return d.readGroup(), true
	}
	if len(back) > 0 && !d.o.NoDrain && (d.o.Kept == nil || d.o.Kept.Code != codes.OK) {
		why := decision.Why{Reason: reasonUncordon, Name: back[0], Count: int64(len(back))}
		if kept := d.o.Kept; kept != nil {
			why.Reason, why.Code, why.Detail = reasonUncordonFailed, kept.Code, kept.Message
			return Plan{At: d.now.Add(d.p.Poll), Why: why, Warn: why}, true
		}
		if !d.o.Fresh {
			return readLive(), true
		}
		return Plan{Effect: &KeepNodes{ProviderIDs: back}, Why: why}, true
	}
	why := decision.Why{Reason: reasonLeft}
	if len(want) > 0 {
		why = decision.Why{Reason: reasonLeaving, Count: int64(len(want)), All: int64(len(d.instances))}
		why.Name, why.Detail = want[len(want)-1].ProviderID, string(want[len(want)-1].Exit)
	}
	return d.setStatus(why, func(s *Status) { s.Leaving = want }), true
}

// anyToLeave reports whether an instance has to leave. It is asked while the list is empty.
func (d *state) anyToLeave() bool {
	if d.surplus() > 0 || d.toReplace() != "" {
		return true
	}
	for i := range d.instances {
		if d.instances[i].AwaitsDrain && !d.instances[i].Terminating {
			return true
		}
	}
	return false
}

// leaving returns the list as it should be, and the instances of the stored list that stay after
// all. An instance stays on the list while its reason lasts.
func (d *state) leaving() (want []Leaving, back []string) {
	surplus, unlisted := d.surplus(), 0
	for _, l := range d.s.Status.Leaving {
		i, there := d.instance(l.ProviderID)
		if !there || i.Terminating || contains(want, l.ProviderID) {
			continue
		}
		switch {
		case d.isUnlisted(l.ProviderID): // it stays on the list until it is known whether it is gone
			unlisted++
		case !d.lasts(l, i, surplus):
			back = append(back, l.ProviderID)
			continue
		case l.Exit == ExitScaleDown:
			surplus--
		}
		if l.Since.After(d.now) {
			l.Since = d.stamp() // the length of its wait would be unknown
		}
		want = append(want, l)
	}
	want = d.withAwaited(want)
	for _, id := range d.choose(max(0, surplus-unlisted), want) {
		want = append(want, Leaving{id, ExitScaleDown, d.stamp()})
	}
	if id := d.toReplace(); id != "" && len(want) == 0 {
		want = append(want, Leaving{id, ExitReplace, d.stamp()})
	}
	back = slices.DeleteFunc(back, func(id string) bool { return contains(want, id) })
	return want, back
}

// withAwaited adds the instances whose drain the provider waits for.
func (d *state) withAwaited(want []Leaving) []Leaving {
	for i := range d.instances {
		if in := &d.instances[i]; in.AwaitsDrain && !in.Terminating && !contains(want, in.ProviderID) {
			want = append(want, Leaving{in.ProviderID, ExitProvider, d.stamp()})
		}
	}
	return want
}

// lasts reports whether an instance still has its reason to leave.
func (d *state) lasts(l Leaving, i Instance, surplus int) bool {
	switch l.Exit {
	case ExitScaleDown:
		return surplus > 0
	case ExitReplace:
		return d.o.Features.ReplaceInstance && d.asksReplacement(l.ProviderID)
	case ExitProvider:
		return i.AwaitsDrain
	}
	return false
}

func contains(list []Leaving, id string) bool {
	return slices.ContainsFunc(list, func(l Leaving) bool { return l.ProviderID == id })
}

// toReplace returns the next instance whose node asks for a replacement: one at a time, and only while
// the pool is Running and the group has the wanted size.
func (d *state) toReplace() string {
	if !d.o.Features.ReplaceInstance || d.o.Nodes == nil || d.s.Status.Phase != PhaseRunning || d.wanted() != max(0, d.o.Group.Target) {
		return ""
	}
	for i := range d.instances {
		if id := d.instances[i].ProviderID; !d.instances[i].Terminating && !d.isUnlisted(id) && d.asksReplacement(id) && d.node(id) != nil {
			return id
		}
	}
	return ""
}

// asksReplacement reports whether the node of an instance asks for a replacement. An instance whose
// node is not known still asks if it did before.
func (d *state) asksReplacement(id string) bool {
	n, key := d.node(id), d.p.Keys.Replace
	return key != "" && (n == nil || n.Annotations[key] == "true")
}

// deletionCandidate is an instance that may be chosen to be removed.
type deletionCandidate struct {
	id      string
	class   int       // 0: no node, 1: not ready, 2: ready, 3: may have a node that is not known
	created time.Time // of the node
}

func (v deletionCandidate) compare(w deletionCandidate) int {
	switch {
	case v.class != w.class:
		return v.class - w.class
	case !v.created.Equal(w.created):
		return v.created.Compare(w.created)
	}
	return strings.Compare(v.id, w.id)
}

// choose picks n instances that are not on the list yet: those without a node first, then those
// that are not ready, then the oldest. Last are those that may have a node that is not known, because
// it could not be drained. It picks none while the scale-down is held (ConditionScaleDownHeld).
func (d *state) choose(n int, listed []Leaving) []string {
	if n == 0 || d.scaleDownHeld() {
		return nil
	}
	var all []deletionCandidate
	free := d.unmatchedIDs()
	for i := range d.instances {
		in := &d.instances[i]
		if in.Terminating || contains(listed, in.ProviderID) || d.isUnlisted(in.ProviderID) {
			continue
		}
		v := deletionCandidate{id: in.ProviderID}
		if node := d.node(in.ProviderID); node != nil {
			v.class, v.created = 1, node.CreatedAt
			if ready := object.FindCondition(node.Conditions, machine.NodeReady); ready != nil && ready.Status == object.True {
				v.class = 2
			}
		} else if d.unsure(v.id, &free) {
			v.class = 3
		}
		all = append(all, v)
	}
	slices.SortFunc(all, deletionCandidate.compare)
	ids := make([]string, 0, n)
	for _, v := range all[:min(n, len(all))] {
		ids = append(ids, v.id)
	}
	return ids
}

// readLive plans a live read of the pool itself.
func readLive() Plan { return Plan{Effect: ReadPool{}, Why: decision.Why{Reason: reasonReadPool}} }

// drain drains the leaving instances, and removes them when they are empty or their time is over.
func (d *state) drain() (Plan, bool) {
	list := d.listed(d.s.Status.Leaving)
	if len(list) == 0 {
		return Plan{}, false
	}
	if !d.o.NoDrain && d.o.Drain == nil {
		if !d.o.Fresh { // an old list may name instances that stay
			return readLive(), true
		}
		return Plan{
			Effect: &DrainNodes{Leaving: slices.Clone(list)},
			Why:    decision.Why{Reason: reasonDrain, Name: list[0].ProviderID, Count: int64(len(list))},
		}, true
	}
	for _, exit := range [...]Exit{ExitScaleDown, ExitReplace, ExitProvider} {
		if ids := d.removable(exit); len(ids) > 0 {
			return d.removeInstances(exit, ids), true
		}
	}
	at := d.now.Add(d.p.Poll)
	why := decision.Why{Reason: reasonDraining, Name: list[0].ProviderID, Count: int64(len(list)), For: d.overdueAt(&list[0]).Sub(d.now)}
	if a := d.o.Drain; a != nil {
		why.Detail = a.Detail
		if !a.At.IsZero() && a.At.Before(at) {
			at = a.At
		}
	}
	for i := range list {
		if due := d.overdueAt(&list[i]); due.Before(at) {
			at = due
		}
	}
	return Plan{At: at, Why: why}, true
}

// listed returns the leaving instances that are in the provider's last answer. It returns the same slice if
// that is all of them.
func (d *state) listed(list []Leaving) []Leaving {
	if len(d.unlisted) == 0 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(l Leaving) bool { return d.isUnlisted(l.ProviderID) })
}

// overdueAt returns when an instance is removed even if it is not empty.
func (d *state) overdueAt(l *Leaving) time.Time {
	since := l.Since
	if led := d.o.LedSince; led.After(since) && !led.After(d.now) {
		since = led
	}
	return since.Add(d.p.DrainTimeout).Add(time.Second)
}

// removable returns the instances that leave for that reason and may be removed now.
func (d *state) removable(exit Exit) []string {
	var ids []string
	for i := range d.s.Status.Leaving {
		l := &d.s.Status.Leaving[i]
		if l.Exit != exit || d.isUnlisted(l.ProviderID) {
			continue
		}
		drained := d.o.Drain != nil && slices.Contains(d.o.Drain.Done, l.ProviderID)
		if d.o.NoDrain || d.nodeless(l.ProviderID) || drained || !d.now.Before(d.overdueAt(l)) {
			ids = append(ids, l.ProviderID)
		}
	}
	return ids
}

// removeInstances orders the removal of instances, by the call for their reason to leave.
func (d *state) removeInstances(exit Exit, ids []string) Plan {
	if !d.o.Looked {
		return d.readGroup()
	}
	why := decision.Why{Reason: reasonRemoveInstances, Name: ids[0], Count: int64(len(ids)), Detail: string(exit)}
	switch exit {
	case ExitReplace:
		return d.order(ReplaceInstance, ReplaceOne{ProviderID: ids[0]}, why)
	case ExitProvider:
		return d.order(InstancesDrained, &ReportDrained{ProviderIDs: ids}, why)
	case ExitScaleDown:
	}
	return d.order(DeleteInstances, &RemoveInstances{ProviderIDs: ids}, why)
}

// remove decides about a pool whose deletion was asked for. The group is deleted first,
// then the bootstrap data of its machines, then the record. After a crash, steps are repeated without
// effect.
func (d *state) remove() Plan {
	if !d.s.HasFinalizer(Finalizer) {
		return Plan{Why: decision.Why{Reason: reasonNotOurs}}
	}
	if d.s.Status.Phase != PhaseDeleting {
		return d.deleting()
	}
	if !d.s.Status.NeverCreated {
		var answer *machine.Outcome
		if d.o.GroupDeleted != nil {
			answer = &d.o.GroupDeleted.Outcome
		}
		if d.o.Class == nil && answer == nil {
			return Plan{At: d.now.Add(d.p.Period), Why: decision.Why{Reason: reasonClassGone, Name: d.s.Spec.Template.Class.Name}}
		}
		if plan, found := d.deleteUntilGone(DeletePool, answer, DeleteGroup{}); found {
			return plan
		}
	}
	if d.s.Spec.Template.Bootstrap.Config != "" {
		if plan, found := d.deleteUntilGone(DeleteBootstrap, d.o.BootstrapDeleted, RemoveBootstrap{}); found {
			return plan
		}
	}
	if plan, found := d.removeToken(); found {
		return plan
	}
	changed := d.s.Clone()
	changed.RemoveFinalizer(Finalizer)
	return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonReleased}, Warn: d.tokenLeft()}
}

// removeToken deletes the token that the machines of the pool joined with. A failure holds nothing up,
// because the token expires.
func (d *state) removeToken() (Plan, bool) {
	if b := d.o.Bootstrap; b == nil || !b.OwnToken || d.o.TokenRemoved != nil {
		return Plan{}, false
	}
	if !d.o.Fresh {
		return readLive(), true
	}
	return Plan{Effect: RemoveToken{}, Why: decision.Why{Reason: reasonRemoveToken}}, true
}

// tokenLeft returns a warning about a token that could not be deleted. Zero: none.
func (d *state) tokenLeft() decision.Why {
	answer := d.o.TokenRemoved
	if answer == nil || answer.Code == codes.OK || answer.Code == codes.NotFound {
		return decision.Why{}
	}
	return decision.Why{Reason: reasonTokenLeft, Code: answer.Code, Detail: answer.Message}
}

// deleting enters the phase Deleting. If no create was ever announced, the pool has no group, and deleting
// records that: otherwise the deletion could wait for a class that never existed.
func (d *state) deleting() Plan {
	s := &d.s.Status
	from := Phase(phases.State(string(s.Phase)))
	to, _ := phases.Next(string(from), eventDelete)
	never := s.LastOperation == (Operation{}) && s.GroupID == "" && s.Replicas == 0 && !s.InfrastructureReady &&
		len(d.s.Spec.ProviderIDs) == 0
	plan := d.setStatus(decision.Why{Reason: reasonDeleting, Name: string(from)}, func(s *Status) {
		s.Phase, s.Since, s.NeverCreated = Phase(to), d.stamp(), never
	})
	plan.Move = machine.Move{Table: phases.Name, From: string(from), On: eventDelete, To: to}
	return plan
}

// deleteUntilGone calls a deletion until its answer is that the object is gone.
func (d *state) deleteUntilGone(call Call, answer *machine.Outcome, effect Effect) (Plan, bool) {
	if answer != nil && (answer.Code == codes.OK || answer.Code == codes.NotFound) {
		return Plan{}, false
	}
	if answer != nil {
		next := d.s.Status
		if d.o.GroupDeleted != nil {
			recordMessage(&next, d.o.GroupDeleted)
		}
		if why := d.recordFailedCall(&next, call, *answer); why != (decision.Why{}) {
			return Plan{Write: &UpdateStatus{next.Clone()}, Why: why, Warn: why}, true
		}
	}
	if plan, found := d.retryLater(call); found {
		return plan, true
	}
	if !d.o.Fresh { // the pool may be gone, and the group may belong to another pool of its name
		return readLive(), true
	}
	return Plan{Effect: effect, Why: decision.Why{Reason: reasonDelete, Name: string(call)}}, true
}
