package machine

import (
	"time"

	"github.com/millwright-go/millwright/decision"
)

// forcedByLabel reports whether somebody wants the machine gone without regard.
func (d deletion) forcedByLabel() bool { return d.labelled(d.p.Keys.ForceDeletion) }

// forceAnyway returns when force becomes due, regardless of the node. To detach volumes by force is
// due where the drain has ended so.
func (d deletion) forceAnyway() time.Time {
	op := &d.m.Status.LastOperation
	switch {
	case d.forcedByLabel():
		return d.m.DeletedAt
	case op.Stage == StageDeleteVolumeAttachments && op.Forced:
		return d.past(op.Time)
	}
	return d.after(d.begun(), d.p.drainTimeout(d.m))
}

// forceAt returns when force becomes due: at once with the label; else when the stage has
// worked for the drain timeout, or the node has not answered for
// Policy.Unresponsive. A node that was read before that time may have answered
// since, and is read again.
func (d deletion) forceAt() time.Time {
	at := d.forceAnyway()
	if d.o.Node == nil || d.o.Node.Node == nil || d.isForeign() {
		return at
	}
	since, unresponsive := d.o.Node.Node.unresponsiveSince()
	if !unresponsive {
		return at
	}
	due := since.Add(d.p.Unresponsive).Add(time.Second)
	if d.o.Node.Read.Live() && !d.o.Node.Read.Covers(due) && !d.now.Before(due) {
		due = d.now.Add(time.Second) // the next pass reads it
	}
	if due.Before(at) {
		at = due
	}
	return at
}

// forced reports whether this deletion may disregard what would hold it back.
func (d deletion) forced() bool { return !d.now.Before(d.forceAt()) }

// find looks for the node. A read that fails holds the deletion until force is due, by label or by
// the drain timeout: a cluster that does not answer must not keep a VM.
func (d deletion) find() Plan {
	plan := d.look(false)
	if find, ok := plan.Effect.(FindNode); ok && !d.now.Before(d.forceAnyway()) {
		find.Forced = true
		plan.Effect = find
	}
	return plan
}

// withoutNode takes the deletion on without a node. It warns if that is by force.
func (d deletion) withoutNode(on Event) Plan {
	plan := d.stage(on, decision.Why{Reason: reasonNoNode})
	if node := d.o.Node; node != nil && node.Failure != "" {
		plan.Warn = decision.Why{Reason: reasonNodeUnread, Name: d.m.Name, Detail: node.Failure}
	}
	return plan
}

// hearsay reports whether force is due only by what a cache says of the node. One
// that answers again may run its pods, and write to its volumes.
func (d deletion) hearsay() bool {
	return d.o.Node.cached() && d.forced() && d.now.Before(d.forceAnyway())
}
