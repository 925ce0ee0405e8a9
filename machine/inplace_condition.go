package machine

import (
	"strconv"
	"time"

	"github.com/millwright-go/millwright/object"
)

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
