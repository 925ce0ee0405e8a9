package machine

import (
	"strconv"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// adjust brings a node to where its update stands: labels, cordon, and the
// reason of its condition. Before an agent is told, the rest is in line; before
// the rest is taken off, it is told that there is nothing to do.
func (u inPlace) adjust(reason string) (Plan, bool) {
	sync := nodeSync{u.situation, u.n, false}
	say, out := u.n.unsaid(reason), sync.outOfLine()
	if !say && !out {
		return Plan{}, false
	}
	updating := u.m.Status.Phase == PhaseInPlaceUpdating
	if updating {
		if plan, wait := u.gate(); wait {
			return plan, true
		}
	}
	if u.o.Node.cached() {
		return u.look(false), true
	}
	first := say && !(out && u.marksFirst(reason))
	return u.write(sync, reason, first, updating), true
}

// write tells the agent a reason, first, or brings the rest of a node in line.
func (u inPlace) write(sync nodeSync, reason string, first, updating bool) Plan {
	answer := u.o.NodeSynced
	if first {
		answer = u.said(reason)
	}
	switch {
	case answer != nil:
		return u.adjustLater(first, *answer)
	case !first && sync.held():
		return sync.syncLater(Plan{Why: sync.notInLine()})
	case updating && !u.o.Fenced || sync.behind():
		return sync.fence()
	case first:
		return u.tell(reason)
	}
	return sync.sync()
}

// said is the answer to this pass's attempt to say a reason; nil: there was
// none. A pass may say first that a node is drained, and then that it is ready.
func (u inPlace) said(reason string) *Outcome {
	answer := u.o.NodeMarked
	if answer != nil && answer.Code == codes.OK && reason == ReasonReadyForUpdate && u.n.updateReason() == ReasonSelectedForUpdate {
		return nil
	}
	return answer
}

// marksFirst reports whether labels and cordon are written before a reason.
// Otherwise an agent that may be at work is told first.
func (u inPlace) marksFirst(reason string) bool {
	switch reason {
	case ReasonReadyForUpdate:
		return true
	case ReasonSelectedForUpdate:
		return !u.n.told()
	}
	return u.n.Applied.Update.Since.IsZero()
}

// adjustLater deals with a node that is not as it should be though it was
// written in this pass: a failure during an update is recorded, so that it is
// tried again ever more rarely.
func (u inPlace) adjustLater(told bool, answer Outcome) Plan {
	switch {
	case answer.Code != codes.OK && u.m.Status.Phase == PhaseInPlaceUpdating:
		return u.stepFailed(answer)
	case told:
		return u.later(u.unmarked())
	}
	sync := nodeSync{u.situation, u.n, false}
	return sync.syncLater(Plan{Why: sync.notInLine()})
}

// tell has the node say where its update stands.
func (u inPlace) tell(reason string) Plan {
	c := object.Condition{Type: NodeInPlaceUpdate, Status: object.True, Reason: reason, Since: u.stamp()}
	why := decision.Why{Reason: reasonStage, Name: u.n.Name, Detail: reason}
	switch reason {
	case ReasonCandidateForUpdate:
		c.Message = "machine " + u.m.Name + " is to be updated"
	case ReasonSelectedForUpdate:
		c.Message = "machine " + u.m.Name + " is drained for its update"
	case ReasonReadyForUpdate:
		c.Message, why = "machine "+u.m.Name+" may be updated", decision.Why{Reason: reasonAnnounce, Name: u.n.Name}
	case ReasonNodeUpdateFailed:
		c.Message = "the update of machine " + u.m.Name + " failed: " + u.n.failedReason(&u.p.Keys)
	default:
		c.Message, why = "no update of machine "+u.m.Name+" is wanted", decision.Why{Reason: reasonRetract, Name: u.n.Name}
		if u.m.Status.Phase == PhaseInPlaceUpdateSuccessful {
			c.Message = "machine " + u.m.Name + " is updated"
		}
	}
	return Plan{Effect: &MarkNode{u.node(), c}, Why: why}
}

// tellLater has a plan that ends the pass look again soon at a node that still
// says, though it was to say otherwise, that an agent may work.
func (u inPlace) tellLater(plan Plan) Plan {
	if plan.Write != nil || plan.Effect != nil || u.o.NodeMarked == nil || u.o.NodeMarked.Code == codes.OK && !u.n.told() {
		return plan
	}
	plan = within(plan, u.now.Add(nodeRetry))
	plan.Warn = u.unmarked()
	return plan
}

// unmarked says that a condition of the node is not what was just written.
func (u inPlace) unmarked() decision.Why {
	why := decision.Why{Reason: reasonMarkFailed, Name: u.n.Name}
	if answer := u.o.NodeMarked; answer != nil {
		why.Code, why.Detail = answer.Code, answer.Message
	}
	return why
}

// say has the node say where its update stands; false: that was tried in this
// pass, and holds nothing else up, or another program's marks are recorded first.
func (u inPlace) say(reason string) (Plan, bool) {
	sync := nodeSync{u.situation, u.n, false}
	switch {
	case u.o.NodeMarked != nil || nodeUpdate(u).strange():
		return Plan{}, false
	case sync.behind():
		return sync.fence(), true
	}
	return u.tell(reason), true
}

// restReason is what a node says that no agent is to work on: that its turn will
// come, or that there is nothing to do.
func (u inPlace) restReason() string {
	if u.m.Spec.InPlace != InPlaceNone && u.n.Applied.Update.Candidate && !nodeUpdate(u).outdated() {
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

// wanted says what a node should carry, by where the update stands.
func (u nodeUpdate) wanted() wantedMarks {
	asked, have := u.m.Spec.InPlace != InPlaceNone, u.marks()
	var w wantedMarks
	if u.records() {
		w.UpdateMarks = have
		return w
	}
	switch u.m.Status.Phase {
	case PhaseRunning:
		w.noAnswer, w.noSelection = u.leftOver(), u.leftOver()
		w.Candidate, w.Since = asked && u.n.announced(), sinceTold(u.n)
	case PhaseInPlaceUpdating:
		if u.over() {
			w.Candidate, w.Since, w.noAnswer = asked && u.n.announced(), sinceTold(u.n), true
			break
		}
		w.UpdateMarks = UpdateMarks{Since: u.m.Status.Since.Truncate(time.Second), Candidate: true, Selected: have.Selected, Cordoned: true}
		if u.m.Spec.InPlace == InPlaceSelected {
			w.Selected = true
		}
		w.noAnswer = u.m.Status.LastOperation.Stage != StageReady
	case PhaseInPlaceUpdateFailed:
		return u.wantedOfFailed(have)
	case PhaseInPlaceUpdateSuccessful:
		if asked {
			w.UpdateMarks = have
			break
		}
		w.noAnswer, w.noSelection = true, true
	case PhaseNew, PhasePending, PhaseAvailable, PhaseUnknown, PhaseFailed, PhaseCrashLoopBackOff, PhaseTerminating:
		w.Candidate, w.Since = have.Candidate && asked && u.n.announced(), sinceTold(u.n)
	}
	return w
}

// wantedOfFailed is wanted after an update has failed.
func (u nodeUpdate) wantedOfFailed(have UpdateMarks) (w wantedMarks) {
	asked := u.m.Spec.InPlace != InPlaceNone
	switch {
	case u.outdated(): // it is not trusted with workload
		w.Since, w.Cordoned, w.Candidate, w.noAnswer = have.Since, have.Cordoned, asked, true
	case u.over():
		w.Candidate, w.Since, w.noAnswer = asked && u.n.announced(), sinceTold(u.n), true
	default:
		w.UpdateMarks = have
	}
	return w
}

// inLine reports whether a node carries what apply would put there and
// nothing that it would take off. Most machines are in no update: they ask for
// nothing, and their nodes carry nothing.
func (u nodeUpdate) inLine() bool {
	if u.n.Applied.Update.none() && u.n.Drain == nil && u.m.Status.Phase == PhaseRunning && u.m.Spec.InPlace == InPlaceNone {
		return !u.leftOver()
	}
	return !u.drainIsOver() && u.labelsInLine()
}

func (u nodeUpdate) labelsInLine() bool {
	if u.unclaimed() {
		return true
	}
	have, k, w := &u.n.Applied.Update, &u.p.Keys, u.wanted()
	return !u.strange() && have.Since.Equal(w.Since) &&
		labelInLine(u.n, k.CandidateForUpdate, have.Candidate, w.Candidate) &&
		labelInLine(u.n, k.SelectedForUpdate, have.Selected, w.Selected) &&
		(w.Cordoned && u.n.Unschedulable || !w.Cordoned && !have.Cordoned) &&
		!(w.noAnswer && u.n.answered(k)) && !(w.noSelection && u.n.says(k.SelectedForUpdate))
}

func labelInLine(n *Node, key string, have, want bool) bool {
	if want && key != "" {
		return n.Labels[key] == yes
	}
	return !have
}

// apply changes a copy of a node into what an in-place update wants it to
// be, and records what of it is ours. n has a map of labels.
func (u nodeUpdate) apply() {
	have, k, w := u.marks(), &u.p.Keys, u.wanted()
	if t, seen := u.n.taint(k.CriticalComponents); seen {
		u.n.Applied.Critical = t
	}
	if u.unclaimed() {
		return
	}
	now := UpdateMarks{Since: w.Since, Cordoned: have.Cordoned && w.Cordoned}
	now.Candidate = setLabel(u.n.Labels, k.CandidateForUpdate, have.Candidate, w.Candidate)
	now.Selected = setLabel(u.n.Labels, k.SelectedForUpdate, have.Selected, w.Selected)
	switch {
	case w.Cordoned && !u.n.Unschedulable:
		u.n.Unschedulable, now.Cordoned = true, true
	case have.Cordoned && !w.Cordoned:
		u.n.Unschedulable = false
	}
	if w.noAnswer {
		delete(u.n.Labels, k.UpdateResult)
		delete(u.n.Annotations, k.UpdateFailedReason)
	}
	if w.noSelection {
		delete(u.n.Labels, k.SelectedForUpdate)
	}
	if u.returns() && !have.Since.IsZero() {
		u.restoreCritical()
	}
	if u.drainIsOver() {
		if !u.n.Drain.Cordoned.IsZero() && !w.Cordoned {
			u.n.Unschedulable = false
		}
		u.n.Drain = nil
	}
	u.n.Applied.Update = now
}

// drainIsOver reports whether a node has the record of a drain that does
// not go on: its machine is neither being deleted nor updated. The cordon is
// removed with the record, if it was the drain's.
func (u nodeUpdate) drainIsOver() bool {
	return u.n.Drain != nil && (u.m.Status.Phase == PhaseRunning || u.returns())
}

// returns reports whether the machine's update is done and its owner has taken
// it over.
func (u nodeUpdate) returns() bool {
	return u.m.Status.Phase == PhaseInPlaceUpdateSuccessful && u.m.Spec.InPlace == InPlaceNone
}

// restoreCritical puts the critical-components taint on again, in the same
// write that lets workload back: the program that takes it off once the components are
// ready does so again. Only a node that once carried it gets it: in a
// fleet that does not use the taint, no program would remove it.
func (u nodeUpdate) restoreCritical() {
	t := u.n.Applied.Critical
	if t.Key == "" || t.Key != u.p.Keys.CriticalComponents || u.n.hasTaint(t.Key) {
		return
	}
	u.n.Taints = append(u.n.Taints, t)
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

// selected reports whether it is the machine's turn: by its owner's request, or
// by a user's label on the node of a candidate. One that waits does not begin for that.
func (u nodeUpdate) selected() bool {
	switch u.m.Spec.InPlace {
	case InPlaceSelected:
		return true
	case InPlaceCandidate, InPlaceWaiting:
		return !u.n.Applied.Update.Selected && u.n.says(u.p.Keys.SelectedForUpdate)
	}
	return false
}

// waits reports whether a user has selected a machine whose turn its owner decides. What another
// program has begun does not wait.
func (u nodeUpdate) waits() bool {
	return u.m.Spec.InPlace == InPlaceWaiting && u.selected() && (u.n.updateReason() == ReasonCandidateForUpdate || !u.adopts())
}

// over reports whether an update that the agent is not at work at is not wanted
// any more.
func (u nodeUpdate) over() bool {
	switch u.m.Status.Phase {
	case PhaseInPlaceUpdating:
		return u.m.Status.LastOperation.Stage != StageReady && !u.selected()
	case PhaseInPlaceUpdateFailed:
		return !u.outdated() && !u.selected() && !u.unclaimed()
	}
	return false
}

// outdated reports whether the node was updated after that had been withdrawn.
func (u nodeUpdate) outdated() bool {
	op := &u.m.Status.LastOperation
	return u.m.Status.Phase == PhaseInPlaceUpdateFailed && op.Kind == OperationInPlaceUpdate && op.Stage == StageCandidate
}

// hasStaleMarks reports whether a node of which no update is wanted says that it
// awaits one, or something at which no other program begins one. What another
// program has announced for its own label does not count; ours is taken off first.
func (u nodeUpdate) hasStaleMarks() bool {
	if u.m.Spec.InPlace != InPlaceNone || u.n.Applied.Update.Candidate {
		return false
	}
	return u.n.formerEnd() || u.n.awaitsTurn() && !u.n.says(u.p.Keys.CandidateForUpdate)
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
