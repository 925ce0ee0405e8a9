package machine

import (
	"strconv"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// syncForUpdate brings a node to where its update stands: labels, cordon, and the
// reason of its condition. Before an agent is told, the rest is in line; before
// the rest is taken off, it is told that there is nothing to do.
func (d *decider) syncForUpdate(n *Node, reason string) (Plan, bool) {
	say, out := n.unsaid(reason), d.outOfSync(n)
	if !say && !out {
		return Plan{}, false
	}
	updating := d.m.Status.Phase == PhaseInPlaceUpdating
	if updating {
		if plan, busy := d.updateStepBackoff(); busy {
			return plan, true
		}
	}
	if d.o.Node.cached() {
		return d.readNode(false), true
	}
	first := say && !(out && d.marksFirst(n, reason))
	return d.writeForUpdate(n, reason, first, updating), true
}

// writeForUpdate tells the agent a reason, first, or brings the rest of a node in line.
func (d *decider) writeForUpdate(n *Node, reason string, first, updating bool) Plan {
	answer := d.o.NodeSynced
	if first {
		answer = d.updateConditionAnswer(n, reason)
	}
	switch {
	case answer != nil:
		return d.retrySyncForUpdate(n, first, *answer)
	case !first && d.syncHeldBack(n):
		return d.retrySync(n, Plan{Why: d.whyOutOfSync(n)})
	case updating && !d.o.Fenced || d.statusMayBeStale(n):
		return d.confirmStatus(n)
	case first:
		return d.updateCondition(n, reason)
	}
	return d.syncNode(n)
}

// updateConditionAnswer is the answer to this pass's attempt to say a reason; nil: there was
// none. A pass may say first that a node is drained, and then that it is ready.
func (d *decider) updateConditionAnswer(n *Node, reason string) *Outcome {
	answer := d.o.NodeMarked
	if answer != nil && answer.Code == codes.OK && reason == ReasonReadyForUpdate && n.updateReason() == ReasonSelectedForUpdate {
		return nil
	}
	return answer
}

// marksFirst reports whether labels and cordon are written before a reason.
// Otherwise an agent that may be at work is told first.
func (d *decider) marksFirst(n *Node, reason string) bool {
	switch reason {
	case ReasonReadyForUpdate:
		return true
	case ReasonSelectedForUpdate:
		return !n.told()
	}
	return n.Applied.Update.Since.IsZero()
}

// retrySyncForUpdate deals with a node that is not as it should be though it was
// written in this pass: a failure during an update is recorded, so that it is
// tried again ever more rarely.
func (d *decider) retrySyncForUpdate(n *Node, told bool, answer Outcome) Plan {
	switch {
	case answer.Code != codes.OK && d.m.Status.Phase == PhaseInPlaceUpdating:
		return d.updateStepFailed(n, answer)
	case told:
		return d.retrySoon(d.updateConditionFailed(n))
	}
	return d.retrySync(n, Plan{Why: d.whyOutOfSync(n)})
}

// updateCondition has the node say where its update stands.
func (d *decider) updateCondition(n *Node, reason string) Plan {
	c := object.Condition{Type: NodeInPlaceUpdate, Status: object.True, Reason: reason, Since: d.stamp()}
	why := decision.Why{Reason: reasonStage, Name: n.Name, Detail: reason}
	switch reason {
	case ReasonCandidateForUpdate:
		c.Message = "machine " + d.m.Name + " is to be updated"
	case ReasonSelectedForUpdate:
		c.Message = "machine " + d.m.Name + " is drained for its update"
	case ReasonReadyForUpdate:
		c.Message, why = "machine "+d.m.Name+" may be updated", decision.Why{Reason: reasonAnnounce, Name: n.Name}
	case ReasonNodeUpdateFailed:
		c.Message = "the update of machine " + d.m.Name + " failed: " + n.failedReason(&d.p.Keys)
	default:
		c.Message, why = "no update of machine "+d.m.Name+" is wanted", decision.Why{Reason: reasonRetract, Name: n.Name}
		if d.m.Status.Phase == PhaseInPlaceUpdateSuccessful {
			c.Message = "machine " + d.m.Name + " is updated"
		}
	}
	return Plan{Effect: &MarkNode{d.node(), c}, Why: why}
}

// retryUpdateCondition has a plan that ends the pass look again soon at a node that still
// says, though it was to say otherwise, that an agent may work.
func (d *decider) retryUpdateCondition(n *Node, plan Plan) Plan {
	if plan.Write != nil || plan.Effect != nil || d.o.NodeMarked == nil || d.o.NodeMarked.Code == codes.OK && !n.told() {
		return plan
	}
	plan = lookAgainBy(plan, d.now.Add(nodeRetry))
	plan.Warn = d.updateConditionFailed(n)
	return plan
}

// updateConditionFailed says that a condition of the node is not what was just written.
func (d *decider) updateConditionFailed(n *Node) decision.Why {
	why := decision.Why{Reason: reasonMarkFailed, Name: n.Name}
	if answer := d.o.NodeMarked; answer != nil {
		why.Code, why.Detail = answer.Code, answer.Message
	}
	return why
}

// setUpdateCondition has the node say where its update stands; false: that was tried in this
// pass, and holds nothing else up, or another program's marks are recorded first.
func (d *decider) setUpdateCondition(n *Node, reason string) (Plan, bool) {
	switch {
	case d.o.NodeMarked != nil || d.unrecordedMarks(n):
		return Plan{}, false
	case d.statusMayBeStale(n):
		return d.confirmStatus(n), true
	}
	return d.updateCondition(n, reason), true
}

// idleReason is what a node says that no agent is to work on: that its turn will
// come, or that there is nothing to do.
func (d *decider) idleReason(n *Node) string {
	if d.m.Spec.InPlace != InPlaceNone && n.Applied.Update.Candidate && !d.updatedAfterWithdrawal() {
		return ReasonCandidateForUpdate
	}
	return ReasonUpdateSuccessful
}

// yes is the value of a label that says so.
const yes = "true"

// wantedMarks is what an in-place update wants to be on a node.
type wantedMarks struct {
	UpdateMarks
	noAnswer    bool // the agent's answer was taken, or is an old one
	noSelection bool // a user's selection was fulfilled
}

// wantedUpdate says what a node should carry, by where the update stands.
func (d *decider) wantedUpdate(n *Node) wantedMarks {
	asked, have := d.m.Spec.InPlace != InPlaceNone, d.updateMarks(n)
	var w wantedMarks
	if d.recordsOthersMarks(n) {
		w.UpdateMarks = have
		return w
	}
	switch d.m.Status.Phase {
	case PhaseRunning:
		w.noAnswer, w.noSelection = d.leftByOther(n), d.leftByOther(n)
		w.Candidate, w.Since = asked && n.announced(), sinceTold(n)
	case PhaseInPlaceUpdating:
		if d.updateOver(n) {
			w.Candidate, w.Since, w.noAnswer = asked && n.announced(), sinceTold(n), true
			break
		}
		w.UpdateMarks = UpdateMarks{Since: d.m.Status.Since.Truncate(time.Second), Candidate: true, Selected: have.Selected, Cordoned: true}
		if d.m.Spec.InPlace == InPlaceSelected {
			w.Selected = true
		}
		w.noAnswer = d.m.Status.LastOperation.Stage != StageReady
	case PhaseInPlaceUpdateFailed:
		return d.wantedAfterFailure(n, have)
	case PhaseInPlaceUpdateSuccessful:
		if asked {
			w.UpdateMarks = have
			break
		}
		w.noAnswer, w.noSelection = true, true
	case PhaseNew, PhasePending, PhaseAvailable, PhaseUnknown, PhaseFailed, PhaseCrashLoopBackOff, PhaseTerminating:
		w.Candidate, w.Since = have.Candidate && asked && n.announced(), sinceTold(n)
	}
	return w
}

// wantedAfterFailure is wanted after an update has failed.
func (d *decider) wantedAfterFailure(n *Node, have UpdateMarks) (w wantedMarks) {
	asked := d.m.Spec.InPlace != InPlaceNone
	switch {
	case d.updatedAfterWithdrawal(): // it is not trusted with workload
		w.Since, w.Cordoned, w.Candidate, w.noAnswer = have.Since, have.Cordoned, asked, true
	case d.updateOver(n):
		w.Candidate, w.Since, w.noAnswer = asked && n.announced(), sinceTold(n), true
	default:
		w.UpdateMarks = have
	}
	return w
}

// updateInSync reports whether a node carries what apply would put there and
// nothing that it would take off. Most machines are in no update: they ask for
// nothing, and their nodes carry nothing.
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
	have, k, w := &n.Applied.Update, &d.p.Keys, d.wantedUpdate(n)
	return !d.unrecordedMarks(n) && have.Since.Equal(w.Since) &&
		labelInLine(n, k.CandidateForUpdate, have.Candidate, w.Candidate) &&
		labelInLine(n, k.SelectedForUpdate, have.Selected, w.Selected) &&
		(w.Cordoned && n.Unschedulable || !w.Cordoned && !have.Cordoned) &&
		!(w.noAnswer && n.answered(k)) && !(w.noSelection && n.says(k.SelectedForUpdate))
}

func labelInLine(n *Node, key string, have, want bool) bool {
	if want && key != "" {
		return n.Labels[key] == yes
	}
	return !have
}

// applyUpdate changes a copy of a node into what an in-place update wants it to
// be, and records what of it is ours. n has a map of labels.
func (d *decider) applyUpdate(n *Node) {
	have, k, w := d.updateMarks(n), &d.p.Keys, d.wantedUpdate(n)
	if t, seen := n.taint(k.CriticalComponents); seen {
		n.Applied.Critical = t
	}
	if d.updateUnclaimed(n) {
		return
	}
	now := UpdateMarks{Since: w.Since, Cordoned: have.Cordoned && w.Cordoned}
	now.Candidate = setLabel(n.Labels, k.CandidateForUpdate, have.Candidate, w.Candidate)
	now.Selected = setLabel(n.Labels, k.SelectedForUpdate, have.Selected, w.Selected)
	switch {
	case w.Cordoned && !n.Unschedulable:
		n.Unschedulable, now.Cordoned = true, true
	case have.Cordoned && !w.Cordoned:
		n.Unschedulable = false
	}
	if w.noAnswer {
		delete(n.Labels, k.UpdateResult)
		delete(n.Annotations, k.UpdateFailedReason)
	}
	if w.noSelection {
		delete(n.Labels, k.SelectedForUpdate)
	}
	if d.returnsToService() && !have.Since.IsZero() {
		d.restoreCritical(n)
	}
	if d.drainIsOver(n) {
		if !n.Drain.Cordoned.IsZero() && !w.Cordoned {
			n.Unschedulable = false
		}
		n.Drain = nil
	}
	n.Applied.Update = now
}

// drainIsOver reports whether a node has the record of a drain that does
// not go on: its machine is neither being deleted nor updated. The cordon is
// removed with the record, if it was the drain's.
func (d *decider) drainIsOver(n *Node) bool {
	return n.Drain != nil && (d.m.Status.Phase == PhaseRunning || d.returnsToService())
}

// returnsToService reports whether the machine's update is done and its owner has taken
// it over.
func (d *decider) returnsToService() bool {
	return d.m.Status.Phase == PhaseInPlaceUpdateSuccessful && d.m.Spec.InPlace == InPlaceNone
}

// restoreCritical puts the critical-components taint on again, in the same
// write that lets workload back: the program that takes it off once the components are
// ready does so again. Only a node that once carried it gets it: in a
// fleet that does not use the taint, no program would remove it.
func (d *decider) restoreCritical(n *Node) {
	t := n.Applied.Critical
	if t.Key == "" || t.Key != d.p.Keys.CriticalComponents || n.hasTaint(t.Key) {
		return
	}
	n.Taints = append(n.Taints, t)
}

// setLabel puts a label on or takes it off, and reports whether it is ours: what
// somebody else put there is left alone.
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

// selectedForUpdate reports whether it is the machine's turn: by its owner's request, or
// by a user's label on the node of a candidate. One that waits does not begin for that.
func (d *decider) selectedForUpdate(n *Node) bool {
	switch d.m.Spec.InPlace {
	case InPlaceSelected:
		return true
	case InPlaceCandidate, InPlaceWaiting:
		return !n.Applied.Update.Selected && n.says(d.p.Keys.SelectedForUpdate)
	}
	return false
}

// selectionWaits reports whether a user has selected a machine whose turn its owner decides. What another
// program has begun does not wait.
func (d *decider) selectionWaits(n *Node) bool {
	return d.m.Spec.InPlace == InPlaceWaiting && d.selectedForUpdate(n) && (n.updateReason() == ReasonCandidateForUpdate || !d.adoptsUpdate(n))
}

// updateOver reports whether an update that the agent is not at work at is not wanted
// any more.
func (d *decider) updateOver(n *Node) bool {
	switch d.m.Status.Phase {
	case PhaseInPlaceUpdating:
		return d.m.Status.LastOperation.Stage != StageReady && !d.selectedForUpdate(n)
	case PhaseInPlaceUpdateFailed:
		return !d.updatedAfterWithdrawal() && !d.selectedForUpdate(n) && !d.updateUnclaimed(n)
	}
	return false
}

// updatedAfterWithdrawal reports whether the node was updated after that had been withdrawn.
func (d *decider) updatedAfterWithdrawal() bool {
	op := &d.m.Status.LastOperation
	return d.m.Status.Phase == PhaseInPlaceUpdateFailed && op.Kind == OperationInPlaceUpdate && op.Stage == StageCandidate
}

// hasStaleMarks reports whether a node of which no update is wanted says that it
// awaits one, or something at which no other program begins one. What another
// program has announced for its own label does not count; ours is taken off first.
func (d *decider) hasStaleMarks(n *Node) bool {
	if d.m.Spec.InPlace != InPlaceNone || n.Applied.Update.Candidate {
		return false
	}
	return n.formerEnd() || n.awaitsTurn() && !n.says(d.p.Keys.CandidateForUpdate)
}

// updateReason is where the node's update stands by its condition; empty: it
// does not say.
func (n *Node) updateReason() string {
	for i := range n.Conditions {
		if c := &n.Conditions[i]; c.Type == NodeInPlaceUpdate && c.Status == object.True {
			return c.Reason
		}
	}
	return ""
}

// formerEnd reports whether the condition is what earlier versions of this
// library left when an update was over: False. No other program begins an update there.
func (n *Node) formerEnd() bool {
	for i := range n.Conditions {
		if c := &n.Conditions[i]; c.Type == NodeInPlaceUpdate {
			return c.Status == object.False
		}
	}
	return false
}

// told reports whether the node says that an agent may update it.
func (n *Node) told() bool { return n.updateReason() == ReasonReadyForUpdate }

// underWay reports whether the node says that its update has begun and has not
// succeeded.
func (n *Node) underWay() bool {
	switch n.updateReason() {
	case ReasonSelectedForUpdate, ReasonDrainSuccessful, ReasonReadyForUpdate, ReasonNodeUpdateFailed:
		return true
	}
	return false
}

// unsaid reports whether the node has yet to say this reason. That there is
// nothing to do needs no saying where no update was announced.
func (n *Node) unsaid(reason string) bool {
	if reason == ReasonUpdateSuccessful {
		return n.underWay() || n.awaitsTurn()
	}
	return n.updateReason() != reason
}

// awaitsTurn reports whether the node says that it is a candidate. Its label
// stays until it says otherwise.
func (n *Node) awaitsTurn() bool { return n.updateReason() == ReasonCandidateForUpdate }

// says reports whether a label of a node is true; an empty key is on none.
func (n *Node) says(key string) bool {
	if key == "" {
		return false
	}
	yes, err := strconv.ParseBool(n.Labels[key])
	return err == nil && yes
}

// result is the update agent's answer on a node; empty: none.
func (n *Node) result(k *Keys) string {
	if k.UpdateResult == "" {
		return ""
	}
	return n.Labels[k.UpdateResult]
}

// failedReason is what the update agent said of its failure.
func (n *Node) failedReason(k *Keys) string {
	if reason := n.Annotations[k.UpdateFailedReason]; k.UpdateFailedReason != "" && reason != "" {
		return reason
	}
	return "the agent gave no reason"
}

// announced reports whether the label of a candidate may be recorded as ours. Where
// the node says that its last update was successful, that it is a candidate is said
// first. So a success beside the record of a candidate is that of another program,
// which led the update on.
func (n *Node) announced() bool {
	have := &n.Applied.Update
	return n.updateReason() != ReasonUpdateSuccessful || have.Candidate && have.Since.IsZero()
}

// answered reports whether an agent has left anything.
func (n *Node) answered(k *Keys) bool {
	_, result := n.Labels[k.UpdateResult]
	_, reason := n.Annotations[k.UpdateFailedReason]
	return result && k.UpdateResult != "" || reason && k.UpdateFailedReason != ""
}

// concluded reports whether the agent has answered, and the node says that it was
// told or what it answered.
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

// sinceTold keeps the record of an update for as long as the node says that it
// is under way, so that this is not forgotten.
func sinceTold(n *Node) time.Time {
	if n.underWay() {
		return n.Applied.Update.Since
	}
	return time.Time{}
}
