package machine

import (
	"strconv"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// syncForUpdate brings a node to the stage of its update: its marks (labels and cordon), and the reason of
// its condition. The marks are written before an agent is told to work. They are removed after it is told to
// stop. It finds no plan if the node is in sync.
func (d *decider) syncForUpdate(n *Node, reason string) (Plan, bool) {
	due, out := n.conditionDue(reason), d.outOfSync(n)
	if !due && !out {
		return Plan{}, false
	}
	updating := d.m.Status.Phase == PhaseInPlaceUpdating
	if updating {
		if plan, found := d.updateStepBackoff(); found {
			return plan, true
		}
	}
	if d.o.Node.cached() {
		return d.readNode(false), true
	}
	conditionFirst := due && !(out && d.marksFirst(n, reason))
	return d.writeForUpdate(n, reason, conditionFirst, updating), true
}

// writeForUpdate writes the condition, if that comes first, or the rest of a node.
func (d *decider) writeForUpdate(n *Node, reason string, conditionFirst, updating bool) Plan {
	answer := d.o.NodeSynced
	if conditionFirst {
		answer = d.updateConditionAnswer(n, reason)
	}
	switch {
	case answer != nil:
		return d.retrySyncForUpdate(n, conditionFirst, *answer)
	case !conditionFirst && d.syncDelayed(n):
		return d.retrySync(n, Plan{Why: d.whyOutOfSync(n)})
	case updating && !d.o.Fresh || d.statusMayBeStale(n):
		return d.confirmStatus(n)
	case conditionFirst:
		return d.updateCondition(n, reason)
	}
	return d.syncNode(n)
}

// updateConditionAnswer returns the result of writing a reason in this pass. Nil: it was not written. One
// pass may write SelectedForUpdate and then ReadyForUpdate.
func (d *decider) updateConditionAnswer(n *Node, reason string) *Outcome {
	answer := d.o.NodeMarked
	if answer != nil && answer.Code == codes.OK && reason == ReasonReadyForUpdate && n.updateReason() == ReasonSelectedForUpdate {
		return nil
	}
	return answer
}

// marksFirst reports whether labels and cordon are written before a reason. Otherwise the reason comes first,
// because an agent may be at work.
func (d *decider) marksFirst(n *Node, reason string) bool {
	switch reason {
	case ReasonReadyForUpdate:
		return true
	case ReasonSelectedForUpdate:
		return !n.agentTold()
	}
	return n.Applied.Update.Since.IsZero()
}

// retrySyncForUpdate handles a node that is out of sync although it was written in this pass. A failure during an
// update is recorded, so that the retries back off.
func (d *decider) retrySyncForUpdate(n *Node, conditionFirst bool, answer Outcome) Plan {
	switch {
	case answer.Code != codes.OK && d.m.Status.Phase == PhaseInPlaceUpdating:
		return d.updateStepFailed(n, answer)
	case conditionFirst:
		return d.retrySoon(d.updateConditionFailed(n))
	}
	return d.retrySync(n, Plan{Why: d.whyOutOfSync(n)})
}

// updateCondition sets the condition of a node to a stage of its update.
func (d *decider) updateCondition(n *Node, reason string) Plan {
	c := object.Condition{Type: NodeInPlaceUpdate, Status: object.True, Reason: reason, Since: d.stamp()}
	why := decision.Why{Reason: reasonSetUpdateCondition, Name: n.Name, Detail: reason}
	switch reason {
	case ReasonCandidateForUpdate:
		c.Message = "machine " + d.m.Name + " is to be updated"
	case ReasonSelectedForUpdate:
		c.Message = "machine " + d.m.Name + " is drained for its update"
	case ReasonReadyForUpdate:
		c.Message, why = "machine "+d.m.Name+" may be updated", decision.Why{Reason: reasonSetUpdateReady, Name: n.Name}
	case ReasonNodeUpdateFailed:
		c.Message = "the update of machine " + d.m.Name + " failed: " + n.failedReason(&d.p.Keys)
	default:
		c.Message, why = "no update of machine "+d.m.Name+" is wanted", decision.Why{Reason: reasonClearUpdateCondition, Name: n.Name}
		if d.m.Status.Phase == PhaseInPlaceUpdateSuccessful {
			c.Message = "machine " + d.m.Name + " is updated"
		}
	}
	return Plan{Effect: &MarkNode{d.node(), c}, Why: why}
}

// retryUpdateCondition makes a plan that ends the pass retry soon if the write of the condition has failed in
// this pass, or if the node still tells an agent to work after it.
func (d *decider) retryUpdateCondition(plan *Plan, n *Node) {
	if plan.Write != nil || plan.Effect != nil || d.o.NodeMarked == nil || d.o.NodeMarked.Code == codes.OK && !n.agentTold() {
		return
	}
	*plan = lookAgainBy(*plan, d.now.Add(nodeRetry))
	plan.Warn = d.updateConditionFailed(n)
}

// updateConditionFailed says that the condition could not be set.
func (d *decider) updateConditionFailed(n *Node) decision.Why {
	why := decision.Why{Reason: reasonSetUpdateFailed, Name: n.Name}
	if answer := d.o.NodeMarked; answer != nil {
		why.Code, why.Detail = answer.Code, answer.Message
	}
	return why
}

// setUpdateCondition sets the condition of a node outside of updates. It finds no plan if this pass has
// tried, or if another program's marks have to be recorded first.
func (d *decider) setUpdateCondition(n *Node, reason string) (Plan, bool) {
	switch {
	case d.o.NodeMarked != nil || d.unrecordedMarks(n):
		return Plan{}, false
	case d.statusMayBeStale(n):
		return d.confirmStatus(n), true
	}
	return d.updateCondition(n, reason), true
}

// idleReason returns the reason of the condition while no agent is to work: candidate, or nothing to do.
func (d *decider) idleReason(n *Node) string {
	if d.m.Spec.InPlace != InPlaceNone && n.Applied.Update.Candidate && !d.updatedAfterWithdrawal() {
		return ReasonCandidateForUpdate
	}
	return ReasonUpdateSuccessful
}

// yes is the value of a label that is set.
const yes = "true"

// wantedMarks is what an in-place update wants on a node.
type wantedMarks struct {
	UpdateMarks
	noAnswer    bool // remove the agent's answer: it was read, or is of an earlier update
	noSelection bool // remove a user's selection: it was followed
}

// wantedUpdate returns the marks that a node should have at the stage of its update.
func (d *decider) wantedUpdate(n *Node) wantedMarks {
	requested, have := d.m.Spec.InPlace != InPlaceNone, d.updateMarks(n)
	var want wantedMarks
	if d.recordsOthersMarks(n) {
		want.UpdateMarks = have
		return want
	}
	switch d.m.Status.Phase {
	case PhaseRunning:
		want.noAnswer, want.noSelection = d.leftByOther(n), d.leftByOther(n)
		want.Candidate, want.Since = requested && n.mayRecordCandidate(), sinceInProgress(n)
	case PhaseInPlaceUpdating:
		if d.updateOver(n) {
			want.Candidate, want.Since, want.noAnswer = requested && n.mayRecordCandidate(), sinceInProgress(n), true
			break
		}
		want.UpdateMarks = UpdateMarks{Since: d.m.Status.Since.Truncate(time.Second), Candidate: true, Selected: have.Selected, Cordoned: true}
		if d.m.Spec.InPlace == InPlaceSelected {
			want.Selected = true
		}
		want.noAnswer = d.m.Status.LastOperation.Stage != StageReady
	case PhaseInPlaceUpdateFailed:
		return d.wantedAfterFailure(n, have)
	case PhaseInPlaceUpdateSuccessful:
		if requested {
			want.UpdateMarks = have
			break
		}
		want.noAnswer, want.noSelection = true, true
	case PhaseNew, PhasePending, PhaseAvailable, PhaseUnknown, PhaseFailed, PhaseCrashLoopBackOff, PhaseTerminating:
		want.Candidate, want.Since = have.Candidate && requested && n.mayRecordCandidate(), sinceInProgress(n)
	}
	return want
}

// wantedAfterFailure is wantedUpdate after an update has failed.
func (d *decider) wantedAfterFailure(n *Node, have UpdateMarks) (want wantedMarks) {
	requested := d.m.Spec.InPlace != InPlaceNone
	switch {
	case d.updatedAfterWithdrawal(): // it gets no workload
		want.Since, want.Cordoned, want.Candidate, want.noAnswer = have.Since, have.Cordoned, requested, true
	case d.updateOver(n):
		want.Candidate, want.Since, want.noAnswer = requested && n.mayRecordCandidate(), sinceInProgress(n), true
	default:
		want.UpdateMarks = have
	}
	return want
}

// updateInSync reports whether applyUpdate would not change the node. Most machines are in no update, and their
// nodes have no marks.
func (d *decider) updateInSync(n *Node) bool {
	if n.Applied.Update.none() && n.Drain == nil && d.m.Status.Phase == PhaseRunning && d.m.Spec.InPlace == InPlaceNone {
		return !d.leftByOther(n)
	}
	return !d.drainIsOver(n) && d.updateLabelsInSync(n)
}

func (d *decider) updateLabelsInSync(n *Node) bool {
	if d.updateUnclaimed(n) {
		return true
	}
	have, k, want := &n.Applied.Update, &d.p.Keys, d.wantedUpdate(n)
	return !d.unrecordedMarks(n) && have.Since.Equal(want.Since) &&
		labelInSync(n, k.CandidateForUpdate, have.Candidate, want.Candidate) &&
		labelInSync(n, k.SelectedForUpdate, have.Selected, want.Selected) &&
		(want.Cordoned && n.Unschedulable || !want.Cordoned && !have.Cordoned) &&
		!(want.noAnswer && n.answered(k)) && !(want.noSelection && n.labelTrue(k.SelectedForUpdate))
}

func labelInSync(n *Node, key string, have, want bool) bool {
	if want && key != "" {
		return n.Labels[key] == yes
	}
	return !have
}

// applyUpdate applies the wanted marks to a copy of the node, and records which of them are ours. n.Labels
// must not be nil.
func (d *decider) applyUpdate(n *Node) {
	have, k, want := d.updateMarks(n), &d.p.Keys, d.wantedUpdate(n)
	if t, seen := n.taint(k.CriticalComponents); seen {
		n.Applied.Critical = t
	}
	if d.updateUnclaimed(n) {
		return
	}
	ours := UpdateMarks{Since: want.Since, Cordoned: have.Cordoned && want.Cordoned}
	ours.Candidate = setLabel(n.Labels, k.CandidateForUpdate, have.Candidate, want.Candidate)
	ours.Selected = setLabel(n.Labels, k.SelectedForUpdate, have.Selected, want.Selected)
	switch {
	case want.Cordoned && !n.Unschedulable:
		n.Unschedulable, ours.Cordoned = true, true
	case have.Cordoned && !want.Cordoned:
		n.Unschedulable = false
	}
	if want.noAnswer {
		delete(n.Labels, k.UpdateResult)
		delete(n.Annotations, k.UpdateFailedReason)
	}
	if want.noSelection {
		delete(n.Labels, k.SelectedForUpdate)
	}
	if d.returnsToService() && !have.Since.IsZero() {
		d.restoreCritical(n)
	}
	if d.drainIsOver(n) {
		if !n.Drain.Cordoned.IsZero() && !want.Cordoned {
			n.Unschedulable = false
		}
		n.Drain = nil
	}
	n.Applied.Update = ours
}

// drainIsOver reports whether a node has the record of a drain that does not continue, because its machine is
// neither deleted nor updated. The record is removed, with the cordon if the drain made it.
func (d *decider) drainIsOver(n *Node) bool {
	return n.Drain != nil && (d.m.Status.Phase == PhaseRunning || d.returnsToService())
}

// returnsToService reports whether the machine is updated and in its new set.
func (d *decider) returnsToService() bool {
	return d.m.Status.Phase == PhaseInPlaceUpdateSuccessful && d.m.Spec.InPlace == InPlaceNone
}

// restoreCritical adds the critical-components taint again, in the write that uncordons the node. The program
// that removes it once the components are ready does so again. A node that never had it does not get it,
// because no program may remove it there.
func (d *decider) restoreCritical(n *Node) {
	t := n.Applied.Critical
	if t.Key == "" || t.Key != d.p.Keys.CriticalComponents || n.hasTaint(t.Key) {
		return
	}
	n.Taints = append(n.Taints, t)
}

// setLabel sets or removes a label, and reports whether it is ours. It leaves a label that somebody else has set.
func setLabel(labels map[string]string, key string, have, want bool) bool {
	switch {
	case key == "":
		return false
	case want && labels[key] == yes:
		return have
	case want:
		labels[key] = yes
		return true
	case have && labels[key] == yes:
		delete(labels, key)
	}
	return false
}

// selectedForUpdate reports whether the machine is selected: by its owner's request, or by a user's label on the
// node of a candidate.
func (d *decider) selectedForUpdate(n *Node) bool {
	switch d.m.Spec.InPlace {
	case InPlaceSelected:
		return true
	case InPlaceCandidate, InPlaceWaiting:
		return !n.Applied.Update.Selected && n.labelTrue(d.p.Keys.SelectedForUpdate)
	}
	return false
}

// selectionWaits reports whether a user has selected a machine whose owner decides when. An update that another
// program has begun does not wait.
func (d *decider) selectionWaits(n *Node) bool {
	return d.m.Spec.InPlace == InPlaceWaiting && d.selectedForUpdate(n) && (n.updateReason() == ReasonCandidateForUpdate || !d.updateByOther(n))
}

// updateOver reports whether an update is no longer wanted, and the agent is not at work.
func (d *decider) updateOver(n *Node) bool {
	switch d.m.Status.Phase {
	case PhaseInPlaceUpdating:
		return d.m.Status.LastOperation.Stage != StageReady && !d.selectedForUpdate(n)
	case PhaseInPlaceUpdateFailed:
		return !d.updatedAfterWithdrawal() && !d.selectedForUpdate(n) && !d.updateUnclaimed(n)
	}
	return false
}

// updatedAfterWithdrawal reports whether the node was updated after the update was withdrawn.
func (d *decider) updatedAfterWithdrawal() bool {
	op := &d.m.Status.LastOperation
	return d.m.Status.Phase == PhaseInPlaceUpdateFailed && op.Kind == OperationInPlaceUpdate && op.Stage == StageCandidate
}

// hasStaleMarks reports whether a node still has condition CandidateForUpdate although no update is requested and
// our label is removed. With another program's label the condition is not stale.
func (d *decider) hasStaleMarks(n *Node) bool {
	if d.m.Spec.InPlace != InPlaceNone || n.Applied.Update.Candidate {
		return false
	}
	return n.isCandidate() && !n.labelTrue(d.p.Keys.CandidateForUpdate)
}

// updateReason returns the reason of condition InPlaceUpdate. Empty: the node does not have the condition.
func (n *Node) updateReason() string {
	for i := range n.Conditions {
		if c := &n.Conditions[i]; c.Type == NodeInPlaceUpdate && c.Status == object.True {
			return c.Reason
		}
	}
	return ""
}

// agentTold reports whether the node tells an agent to update it.
func (n *Node) agentTold() bool { return n.updateReason() == ReasonReadyForUpdate }

// updateInProgress reports whether the condition says that an update has begun and not succeeded.
func (n *Node) updateInProgress() bool {
	switch n.updateReason() {
	case ReasonSelectedForUpdate, ReasonDrainSuccessful, ReasonReadyForUpdate, ReasonNodeUpdateFailed:
		return true
	}
	return false
}

// conditionDue reports whether the condition has yet to be set to a reason. ReasonUpdateSuccessful is due only if
// an update was announced, because otherwise there is nothing to take back.
func (n *Node) conditionDue(reason string) bool {
	if reason == ReasonUpdateSuccessful {
		return n.updateInProgress() || n.isCandidate()
	}
	return n.updateReason() != reason
}

// isCandidate reports whether the condition says that the node is a candidate.
func (n *Node) isCandidate() bool { return n.updateReason() == ReasonCandidateForUpdate }

// labelTrue reports whether a label of the node is true. No label has an empty key.
func (n *Node) labelTrue(key string) bool {
	if key == "" {
		return false
	}
	isTrue, err := strconv.ParseBool(n.Labels[key])
	return err == nil && isTrue
}

// result returns the update agent's answer on a node. Empty: none.
func (n *Node) result(k *Keys) string {
	if k.UpdateResult == "" {
		return ""
	}
	return n.Labels[k.UpdateResult]
}

// failedReason returns why the update agent failed.
func (n *Node) failedReason(k *Keys) string {
	if reason := n.Annotations[k.UpdateFailedReason]; k.UpdateFailedReason != "" && reason != "" {
		return reason
	}
	return "the agent gave no reason"
}

// mayRecordCandidate reports whether the label of a candidate may be recorded as ours. After a successful update,
// condition CandidateForUpdate must be set first. So if a node has condition UpdateSuccessful and the record of a
// candidate, another program has continued the update.
func (n *Node) mayRecordCandidate() bool {
	have := &n.Applied.Update
	return n.updateReason() != ReasonUpdateSuccessful || have.Candidate && have.Since.IsZero()
}

// answered reports whether an agent has left an answer.
func (n *Node) answered(k *Keys) bool {
	_, result := n.Labels[k.UpdateResult]
	_, reason := n.Annotations[k.UpdateFailedReason]
	return result && k.UpdateResult != "" || reason && k.UpdateFailedReason != ""
}

// concluded reports whether the agent has answered, and the condition agrees.
func (n *Node) concluded(k *Keys) bool {
	if result := n.result(k); result != UpdateSuccessful && result != UpdateFailed {
		return false
	}
	switch n.updateReason() {
	case ReasonReadyForUpdate, ReasonUpdateSuccessful, ReasonNodeUpdateFailed:
		return true
	}
	return false
}

// sinceInProgress returns the recorded begin of an update while the condition says that it is in progress.
// Otherwise it returns zero.
func sinceInProgress(n *Node) time.Time {
	if n.updateInProgress() {
		return n.Applied.Update.Since
	}
	return time.Time{}
}
