package machine

import (
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/object"
)

// preservationMarks returns what the preservation has changed on the node, as recorded. If another manager
// began it and left no record, the marks on the node are that manager's. But annotation Keys.KeepNode without
// Keys.KeptByUs is a user's, because that manager sets both. A cordon beside the taint is a user's, because
// that manager sets only one of them.
func (d *decider) preservationMarks(n *Node) PreservedMarks {
	have, p := n.Applied.Preserved, &d.m.Status.Preservation
	byOther := p.TakenOver || d.preserved() && n.saysPreserved() // we set the condition only after the record
	if have != (PreservedMarks{}) || !byOther {
		return have
	}
	keys, t := &d.p.Keys, &d.m.Spec.NodeTemplate
	taint := d.preservedTaint()
	have.Tainted = taint.Key != "" && slices.Contains(n.Taints, taint) && !slices.ContainsFunc(t.Taints, taint.Same)
	have.Cordoned = n.Unschedulable && !have.Tainted && !n.Applied.Update.Cordoned && d.m.Status.Phase == PhaseFailed
	have.Kept = keeps(n.Annotations, keys.keptByUs()) && !d.rolloutMarksRecorded(n).kept && !has(t.Annotations, keys.KeepNode)
	if p.Since.IsZero() && n.saysPreserved() {
		have.Since = p.Ended // so that the condition is changed, too
	}
	return have
}

// preservationUnrecorded reports whether marks of another manager have to be recorded as ours.
func (d *decider) preservationUnrecorded(n *Node) bool {
	return n.Applied.Preserved == (PreservedMarks{}) && d.preservationMarks(n) != (PreservedMarks{})
}

// wantedPreservation returns the marks that the node should have. After the end of the preservation they stay
// until condition Preserved is changed, so that the record exists as long as the condition. The node of a
// machine that stays Failed keeps cordon and taint until the machine is replaced.
func (d *decider) wantedPreservation(n *Node, have PreservedMarks) PreservedMarks {
	failed := d.m.Status.Phase == PhaseFailed
	keys, t := &d.p.Keys, &d.m.Spec.NodeTemplate
	switch {
	case d.preserved():
		return PreservedMarks{
			Since: d.m.Status.Preservation.Since, Cordoned: failed,
			Tainted: failed && keys.PreservedTaint != "" && !slices.ContainsFunc(t.Taints, d.preservedTaint().Same),
			Kept:    keys.KeepNode != "" && !has(t.Annotations, keys.KeepNode),
		}
	case n.saysPreserved():
		return have
	case failed && (have.Cordoned || have.Tainted):
		return PreservedMarks{Since: have.Since, Cordoned: have.Cordoned, Tainted: have.Tainted}
	}
	return PreservedMarks{}
}

func (d *decider) preservedTaint() object.Taint {
	return object.Taint{Key: d.p.Keys.PreservedTaint, Effect: object.NoSchedule}
}

// preservationInSync reports whether applyPreservation would not change the node.
func (d *decider) preservationInSync(n *Node) bool {
	have := d.preservationMarks(n)
	if have == (PreservedMarks{}) && !d.preserved() {
		return true
	}
	want := d.wantedPreservation(n, have)
	return have.Since.Equal(want.Since) &&
		(want.Cordoned && n.Unschedulable || !want.Cordoned && !have.Cordoned) &&
		(want.Tainted && slices.ContainsFunc(n.Taints, d.preservedTaint().Same) || !want.Tainted && !have.Tainted) &&
		(want.Kept && d.keepAnnotationsInSync(n, have) || !want.Kept && !have.Kept)
}

// keepAnnotationsInSync reports whether the annotation Keys.KeepNode is on the node, with Keys.KeptByUs if it is
// ours.
func (d *decider) keepAnnotationsInSync(n *Node, have PreservedMarks) bool {
	return has(n.Annotations, d.p.Keys.KeepNode) && (!have.Kept || d.keptByUsInSync(n))
}

// keptByUsInSync reports whether Keys.KeptByUs is on the node, or not needed.
func (d *decider) keptByUsInSync(n *Node) bool {
	key := d.p.Keys.keptByUs()
	return key == "" || has(d.m.Spec.NodeTemplate.Annotations, key) || keeps(n.Annotations, key)
}

// dropKeepAnnotations removes our annotations from a changed copy of the node, unless they are still wanted.
// It comes before the rollout's marks, which may use the same keys.
func (d *decider) dropKeepAnnotations(n *Node, have PreservedMarks) {
	if !have.Kept || d.wantedPreservation(n, have).Kept {
		return
	}
	n.Annotations = maps.Clone(n.Annotations)
	for _, key := range [...]string{d.p.Keys.KeepNode, d.p.Keys.keptByUs()} {
		if keeps(n.Annotations, key) && !has(d.m.Spec.NodeTemplate.Annotations, key) {
			delete(n.Annotations, key)
		}
	}
}

// applyPreservation applies the wanted marks to a copy of the node, and records which of them are ours.
func (d *decider) applyPreservation(n *Node, have PreservedMarks) {
	want := d.wantedPreservation(n, have)
	taint, ours := d.preservedTaint(), PreservedMarks{Since: want.Since}
	switch {
	case want.Cordoned:
		ours.Cordoned = have.Cordoned || !n.Unschedulable
		n.Unschedulable = true
	case have.Cordoned && !n.Applied.Update.Cordoned:
		n.Unschedulable = false
	}
	switch there := slices.ContainsFunc(n.Taints, taint.Same); {
	case want.Tainted && there:
		ours.Tainted = have.Tainted
	case want.Tainted:
		n.Taints, ours.Tainted = append(n.Taints, taint), true
	case have.Tainted:
		n.Taints = without(n.Taints, func(t object.Taint) bool { return t == taint })
	}
	if want.Kept {
		if ours.Kept = have.Kept; !has(n.Annotations, d.p.Keys.KeepNode) {
			n.Annotations[d.p.Keys.KeepNode], ours.Kept = keepValue, true
		}
		if ours.Kept && !d.keptByUsInSync(n) {
			n.Annotations[d.p.Keys.KeptByUs] = keepValue
		}
	}
	n.Applied.Preserved = ours
}

// saysPreserved reports whether condition Preserved is True on the node.
func (n *Node) saysPreserved() bool {
	c := object.FindCondition(n.Conditions, NodePreserved)
	return c != nil && c.Status == object.True
}

// preservedCondition returns the condition that the node should have. set says that it has to be written.
func (d *decider) preservedCondition(n *Node) (c object.Condition, set bool) {
	have := object.FindCondition(n.Conditions, NodePreserved)
	c = object.Condition{Type: NodePreserved, Status: object.True, Reason: ReasonPreservedByUser, Since: d.stamp()}
	p := &d.m.Status.Preservation
	switch {
	case d.preservationMarks(n) == (PreservedMarks{}): // without a record it would never be removed
		return c, false
	case d.preserved():
		c.Message = "machine " + d.m.Name + " is preserved until " + p.Until.UTC().Format(time.RFC3339)
		if p.Automatic() {
			c.Reason = ReasonPreservedAutomatically
		}
	case have == nil || have.Status != object.True:
		return c, false
	default:
		c.Status, c.Reason = object.False, ReasonPreservationEnded
		c.Message = "machine " + d.m.Name + " is no longer preserved"
	}
	return c, have == nil || have.Status != c.Status || have.Reason != c.Reason || have.Message != c.Message
}

// neverPreserved reports whether the preservation of this machine was never requested, on it or on this node.
func (d *decider) neverPreserved(n *Node) bool {
	key := d.p.Keys.Preserve
	return d.m.Status.Preservation == (Preservation{}) && (n == nil || n.Applied.Preserved == (PreservedMarks{})) &&
		(key == "" || !has(d.m.Annotations, key) && (n == nil || !has(n.Annotations, key)))
}
