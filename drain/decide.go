package drain

import (
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Decide decides what to do next to empty one node. It changes none of its arguments, and returns
// the same plan for the same arguments.
//
// Only a caller's mistake is an error: decision.ErrNoObservation, or an *object.FieldError for a policy
// out of range. A nil policy is the default one.
func Decide(o *Observation, p *Policy, now time.Time) (Plan, error) {
	d, err := newDecision(o, p, now)
	if err != nil {
		return Plan{}, err
	}
	switch {
	case !o.Complete && !o.Forced:
		return d.incomplete(), nil
	case o.Node == nil: // the cluster deletes its pods
		return Plan{Done: true, Why: decision.Why{Reason: reasonNodeGone}}, nil
	case o.WriteFailed && !o.Forced:
		return Plan{At: now.Add(d.p.RetryDelete), Why: decision.Why{Reason: reasonNotStored, Name: o.Node.Name}}, nil
	}
	if plan, found := d.begin(); found {
		return plan, nil
	}
	d.setDeadline()
	if o.Forced {
		return d.force(), nil
	}
	plan := d.drain()
	switch {
	case d.needsRecord(&plan):
		return Plan{Look: true, Why: decision.Why{Reason: reasonLook, Name: o.Node.Name}}, nil
	case plan.Done && o.PodsCached && !d.pastDeadline:
		return Plan{Look: true, Why: decision.Why{Reason: reasonLookPods, Name: o.Node.Name}}, nil
	}
	return plan, nil
}

// decider is one call of Decide, Detach or Undo.
type decider struct {
	o   *Observation
	p   *Policy
	now time.Time

	rec          *machine.DrainRecord // of this drain
	deadline     time.Time            // when the drain ends in any case; zero: never
	pastDeadline bool

	statuses      []podStatus // of o.Pods, by place
	users         []int32     // of o.Volumes, by place: how many pods of the node use each; nil: no pod uses any
	order         int32       // of the pods that may be evicted now
	awaited       int64       // how many pods the drain waits for
	left          int64       // how many pods still exist for which the drain no longer waits
	queued        int         // how many pods with volumes wait for their turn
	assumesNoTurn bool        // the plan assumes that no later turn is recorded

	hookKey string // the annotation that blocks the drain; empty: none

	at     time.Time // when to decide again; zero: never
	warned decision.Why

	names map[*Budget]string // of budgets, for reasons; kept because many pods may have the same budget
}

func newDecision(o *Observation, p *Policy, now time.Time) (*decider, error) {
	if o == nil {
		return nil, fmt.Errorf("drain: %w", decision.ErrNoObservation)
	}
	p = p.WithDefaults()
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &decider{o: o, p: p, now: now}, nil
}

// incomplete waits for caches, but not longer than until the deadline, when the caller may use force.
func (d *decider) incomplete() Plan {
	d.lookAgain(d.o.Deadline)
	if n := d.o.Node; n != nil && n.Drain != nil {
		d.rec = n.Drain
		d.setDeadline()
	}
	return Plan{At: d.at, Why: decision.Why{Reason: reasonIncomplete}}
}

// stamp returns now in whole seconds, as stores keep times.
func (d *decider) stamp() time.Time { return d.now.Truncate(time.Second) }

// ahead reports whether a stored time is in the future by more than clocks may differ. Such a time is wrong, and
// no wait may count from it.
func (d *decider) ahead(t time.Time) bool { return t.After(d.now.Add(Slot)) }

// lookAgain makes the next decision no later than t, which is in the future. A zero t has no
// effect.
func (d *decider) lookAgain(t time.Time) {
	if !t.IsZero() && t.After(d.now) && (d.at.IsZero() || t.Before(d.at)) {
		d.at = t
	}
}

// setDeadline computes when the drain ends in any case.
func (d *decider) setDeadline() {
	d.deadline = d.o.Deadline
	if d.deadline.IsZero() && d.p.Timeout > 0 {
		d.deadline = d.rec.Since.Add(d.p.Timeout)
	}
	d.pastDeadline = !d.deadline.IsZero() && !d.now.Before(d.deadline)
	d.lookAgain(d.deadline)
}

// begin cordons the node and writes the drain's record, in one write. It writes the record again
// when force begins. found: the plan must be carried out before anything else.
func (d *decider) begin() (plan Plan, found bool) {
	next, why := d.nextRecord()
	switch {
	case next == nil:
		d.rec = d.o.Node.Drain
		return Plan{}, false
	case d.o.WriteFailed:
		d.rec = next // force does not wait for a node that can't be written
		return Plan{}, false
	}
	changed := d.o.Node.Clone()
	changed.Unschedulable, changed.Drain = true, next
	if next.Fenced && !d.fenced() {
		changed.Taints = append(changed.Taints, fence)
	}
	if d.unfences() {
		changed.Taints = unfenced(changed.Taints)
	}
	return Plan{Write: changed, Begins: why.Reason == reasonCordon || why.Reason == reasonBegin, Why: why}, true
}

// nextRecord returns the record that has to be written now. Nil: the stored one is right.
func (d *decider) nextRecord() (*machine.DrainRecord, decision.Why) {
	n := d.o.Node
	next, why := d.newRecord()
	since, down := d.mustFence()
	if next == nil {
		why = decision.Why{Name: n.Name}
		switch {
		case !n.Unschedulable && d.mayCordon():
			why.Reason = reasonCordonAgain
		case d.forceBegins(n.Drain):
			why.Reason = reasonForceBegins
		case down && !n.Drain.Fenced && !d.fenced():
			why.Reason, why.For = reasonFence, d.now.Sub(since)
		case d.unfences():
			why.Reason = reasonUnfence
		default:
			return nil, decision.Why{}
		}
		next = n.Drain.Clone()
	}
	if !n.Unschedulable {
		next.Cordoned = d.stamp()
	}
	if d.forceBegins(next) {
		next.Forced = d.stamp()
	}
	next.Fenced = next.Fenced && !d.unfences() || down && !d.fenced()
	return next, why
}

// unfences reports whether the taint that this drain has added must be removed: the node answers again, and
// force is not due.
func (d *decider) unfences() bool {
	_, unresponsive := d.o.Node.UnresponsiveSince()
	return !d.o.Forced && !unresponsive && d.o.Node.Drain != nil && d.o.Node.Drain.Fenced
}

// unfence removes only the taint.
func (d *decider) unfence() Plan {
	changed := d.o.Node.Clone()
	changed.Drain.Fenced = false
	changed.Taints = unfenced(changed.Taints)
	return Plan{Write: changed, Why: decision.Why{Reason: reasonUnfence, Name: changed.Name}}
}

func unfenced(taints []object.Taint) []object.Taint {
	return slices.DeleteFunc(taints, func(t object.Taint) bool { return t == fence })
}

// forceBegins reports whether force is due and the record has no valid start of it.
func (d *decider) forceBegins(rec *machine.DrainRecord) bool {
	return d.o.Forced && (rec.Forced.IsZero() || d.ahead(rec.Forced))
}

// newRecord returns a new record if the node has no valid one of this drain. Nil: it has.
func (d *decider) newRecord() (*machine.DrainRecord, decision.Why) {
	n, old := d.o.Node, d.o.Node.Drain
	next := &machine.DrainRecord{Since: d.stamp(), Youngest: d.youngest()}
	why := decision.Why{Name: n.Name}
	switch {
	case old == nil || old.Since.IsZero():
		why.Reason = reasonCordon
		if n.Unschedulable {
			why.Reason = reasonBegin
		}
	case d.ahead(old.Since):
		why.Reason = reasonRecordInvalid
	case !d.o.Asked.After(d.now) && old.Since.Before(d.o.Asked.Truncate(time.Second)):
		why.Reason = reasonAgain
	default:
		return nil, decision.Why{}
	}
	if old != nil {
		next.Fenced = old.Fenced
		next.Cordoned = old.Cordoned // Undo must still remove that cordon
	}
	return next, why
}

// mayCordon reports whether a node that was uncordoned in the middle of its drain may be cordoned
// again. The limit keeps two programs from fighting over it.
func (d *decider) mayCordon() bool {
	last := d.o.Node.Drain.Cordoned
	next := last.Add(Slot + time.Second)
	if d.ahead(last) || !d.now.Before(next) {
		return true
	}
	d.lookAgain(next)
	d.warned = decision.Why{Reason: reasonUncordoned, Name: d.o.Node.Name, For: next.Sub(d.now)}
	return false
}

// fence is the taint that lets a cluster move the volumes of a node that is down. The value is
// the one of the Kubernetes documentation.
var fence = object.Taint{Key: "node.kubernetes.io/out-of-service", Value: "nodeshutdown", Effect: object.NoExecute}

func (d *decider) fenced() bool {
	for _, t := range d.o.Node.Taints {
		if t.Same(fence) {
			return true
		}
	}
	return false
}

// mustFence reports whether to fence the node, and since when it has not answered. It must be fenced if force is
// due, it has not answered for long, its VM is to be deleted, and the policy allows it.
func (d *decider) mustFence() (since time.Time, yes bool) {
	if !d.o.Forced || d.o.Stays || !d.p.OutOfService {
		return time.Time{}, false
	}
	since, yes = d.o.Node.UnresponsiveSince()
	return since, yes && !d.now.Before(since.Add(d.p.Unresponsive))
}

// Undo decides how to end a drain if the node is to be used again. It removes the record, and the cordon and the
// taint that this drain made and recorded. A node that was cordoned before the drain stays cordoned. Done: no
// record is left.
//
// Only a caller's mistake is an error, as for Decide.
func Undo(o *Observation, p *Policy, now time.Time) (Plan, error) {
	d, err := newDecision(o, p, now)
	if err != nil {
		return Plan{}, err
	}
	n := o.Node
	switch {
	case n == nil && !o.Complete:
		return Plan{Why: decision.Why{Reason: reasonIncomplete}}, nil
	case n == nil:
		return Plan{Done: true, Why: decision.Why{Reason: reasonNodeGone}}, nil
	case n.Drain == nil && o.Cached: // the cache may not show a drain that has just begun
		return Plan{Look: true, Why: decision.Why{Reason: reasonLook, Name: n.Name}}, nil
	case n.Drain == nil:
		return Plan{Done: true, Why: decision.Why{Reason: reasonNothingToUndo, Name: n.Name}}, nil
	case o.WriteFailed:
		return Plan{At: d.now.Add(d.p.RetryDelete), Why: decision.Why{Reason: reasonNotStored, Name: n.Name}}, nil
	}
	changed := n.Clone()
	changed.Drain = nil
	why := decision.Why{Reason: reasonForget, Name: n.Name}
	if !n.Drain.Cordoned.IsZero() {
		changed.Unschedulable = false
		why.Reason = reasonUncordon
	}
	if n.Drain.Fenced {
		changed.Taints = unfenced(changed.Taints)
	}
	return Plan{Write: changed, Why: why}, nil
}
