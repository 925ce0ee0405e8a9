package machine

import (
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/object"
)

// marks is the record of what the preservation has put on the node. Another manager leaves
// none: of a preservation that it began, everything that such a manager puts on a node counts. It
// marks its annotation with Keys.KeptByUs; one without is a user's. It cordons a node, or taints it,
// never both: a cordon beside the taint is a user's.
func (k nodePreservation) marks() PreservedMarks {
	have, p := k.n.Applied.Preserved, &k.m.Status.Preservation
	others := p.TakenOver || k.preserved() && k.n.saysPreserved() // we say so after the record is stored
	if have != (PreservedMarks{}) || !others {
		return have
	}
	keys, t := &k.p.Keys, &k.m.Spec.NodeTemplate
	taint := k.taint()
	have.Tainted = taint.Key != "" && slices.Contains(k.n.Taints, taint) && !slices.ContainsFunc(t.Taints, taint.Same)
	have.Cordoned = k.n.Unschedulable && !have.Tainted && !k.n.Applied.Update.Cordoned && k.m.Status.Phase == PhaseFailed
	have.Kept = keeps(k.n.Annotations, keys.keptByUs()) && !nodeRollout(k).recorded().kept && !has(t.Annotations, keys.KeepNode)
	if p.Since.IsZero() && k.n.saysPreserved() {
		have.Since = p.Ended // the node is to say that it ended, beside all else
	}
	return have
}

// unrecorded reports whether the node carries marks of another manager that are to be recorded as
// ours.
func (k nodePreservation) unrecorded() bool {
	return k.n.Applied.Preserved == (PreservedMarks{}) && k.marks() != (PreservedMarks{})
}

// wanted is what should be on the node. What has ended is removed after the
// condition that tells of it, so that the record outlives it. From the node of a machine
// that stays failed, workload is kept away until it is replaced.
func (k nodePreservation) wanted(have PreservedMarks) PreservedMarks {
	failed := k.m.Status.Phase == PhaseFailed
	keys, t := &k.p.Keys, &k.m.Spec.NodeTemplate
	switch {
	case k.preserved():
		return PreservedMarks{
			Since: k.m.Status.Preservation.Since, Cordoned: failed,
			Tainted: failed && keys.PreservedTaint != "" && !slices.ContainsFunc(t.Taints, k.taint().Same),
			Kept:    keys.KeepNode != "" && !has(t.Annotations, keys.KeepNode),
		}
	case k.n.saysPreserved():
		return have
	case failed && (have.Cordoned || have.Tainted):
		return PreservedMarks{Since: have.Since, Cordoned: have.Cordoned, Tainted: have.Tainted}
	}
	return PreservedMarks{}
}

func (k nodePreservation) taint() object.Taint {
	return object.Taint{Key: k.p.Keys.PreservedTaint, Effect: object.NoSchedule}
}

// inLine reports whether the node carries what apply would put
// there and nothing that it would take off.
func (k nodePreservation) inLine() bool {
	have := k.marks()
	if have == (PreservedMarks{}) && !k.preserved() {
		return true
	}
	w := k.wanted(have)
	return have.Since.Equal(w.Since) &&
		(w.Cordoned && k.n.Unschedulable || !w.Cordoned && !have.Cordoned) &&
		(w.Tainted && slices.ContainsFunc(k.n.Taints, k.taint().Same) || !w.Tainted && !have.Tainted) &&
		(w.Kept && k.keptInLine(have) || !w.Kept && !have.Kept)
}

// keptInLine reports whether the node is kept from autoscalers, and says so if it is our doing.
func (k nodePreservation) keptInLine(have PreservedMarks) bool {
	return has(k.n.Annotations, k.p.Keys.KeepNode) && (!have.Kept || k.saysKeptByUs())
}

// saysKeptByUs reports whether the node carries Keys.KeptByUs, as far as it is to.
func (k nodePreservation) saysKeptByUs() bool {
	key := k.p.Keys.keptByUs()
	return key == "" || has(k.m.Spec.NodeTemplate.Annotations, key) || keeps(k.n.Annotations, key)
}

// dropKept takes the annotations that keep autoscalers off a changed copy of a
// node, before anybody looks whether their place is free.
func (k nodePreservation) dropKept(have PreservedMarks) {
	if !have.Kept || k.wanted(have).Kept {
		return
	}
	k.n.Annotations = maps.Clone(k.n.Annotations)
	for _, key := range [...]string{k.p.Keys.KeepNode, k.p.Keys.keptByUs()} {
		if keeps(k.n.Annotations, key) && !has(k.m.Spec.NodeTemplate.Annotations, key) {
			delete(k.n.Annotations, key)
		}
	}
}

// apply changes a copy of a node into what the machine's preservation
// wants it to be, and records what of it is ours.
func (k nodePreservation) apply(have PreservedMarks) {
	w := k.wanted(have)
	taint, now := k.taint(), PreservedMarks{Since: w.Since}
	switch {
	case w.Cordoned:
		now.Cordoned = have.Cordoned || !k.n.Unschedulable
		k.n.Unschedulable = true
	case have.Cordoned && !k.n.Applied.Update.Cordoned:
		k.n.Unschedulable = false
	}
	switch there := slices.ContainsFunc(k.n.Taints, taint.Same); {
	case w.Tainted && there:
		now.Tainted = have.Tainted
	case w.Tainted:
		k.n.Taints, now.Tainted = append(k.n.Taints, taint), true
	case have.Tainted:
		k.n.Taints = without(k.n.Taints, func(t object.Taint) bool { return t == taint })
	}
	if w.Kept {
		if now.Kept = have.Kept; !has(k.n.Annotations, k.p.Keys.KeepNode) {
			k.n.Annotations[k.p.Keys.KeepNode], now.Kept = keepValue, true
		}
		if now.Kept && !k.saysKeptByUs() {
			k.n.Annotations[k.p.Keys.KeptByUs] = keepValue
		}
	}
	k.n.Applied.Preserved = now
}

// saysPreserved reports whether the node says that its machine is kept.
func (n *Node) saysPreserved() bool {
	c := object.FindCondition(n.Conditions, NodePreserved)
	return c != nil && c.Status == object.True
}

// condition is what the node is to say; false: it says so.
func (k nodePreservation) condition() (c object.Condition, say bool) {
	have := object.FindCondition(k.n.Conditions, NodePreserved)
	c = object.Condition{Type: NodePreserved, Status: object.True, Reason: ReasonPreservedByUser, Since: k.stamp()}
	p := &k.m.Status.Preservation
	switch {
	case k.marks() == (PreservedMarks{}): // without the record nothing would remove it
		return c, false
	case k.preserved():
		c.Message = "machine " + k.m.Name + " is kept until " + p.Until.UTC().Format(time.RFC3339)
		if p.Automatic() {
			c.Reason = ReasonPreservedAutomatically
		}
	case have == nil || have.Status != object.True:
		return c, false
	default:
		c.Status, c.Reason = object.False, ReasonPreservationEnded
		c.Message = "machine " + k.m.Name + " is not kept any more"
	}
	return c, have == nil || have.Status != c.Status || have.Reason != c.Reason || have.Message != c.Message
}

// ordinary reports whether keeping this machine was never asked for.
func (k nodePreservation) ordinary() bool {
	key := k.p.Keys.Preserve
	return k.m.Status.Preservation == (Preservation{}) && (k.n == nil || k.n.Applied.Preserved == (PreservedMarks{})) &&
		(key == "" || !has(k.m.Annotations, key) && (k.n == nil || !has(k.n.Annotations, key)))
}
