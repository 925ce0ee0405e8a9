package machineset

import (
	"fmt"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Decide decides what to do next about one set. It changes none of its arguments, and returns the same
// plan for the same arguments.
//
// Only a caller's mistake is an error: no set, or an *object.FieldError for a policy out of range. A nil
// policy is the default one. A set with invalid contents gets a plan that says so.
func Decide(o *Observation, p *Policy, now time.Time) (Plan, error) {
	if o == nil || o.Set == nil {
		return Plan{}, fmt.Errorf("machineset.Decide: %w", decision.ErrNoObservation)
	}
	p = p.WithDefaults()
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	d := state{o: o, p: p, s: o.Set, now: now, at: now.Add(p.Resync)}
	return d.warnUnreadablePause(d.decide()), nil
}

// decide decides about any set.
func (d *state) decide() Plan {
	switch {
	case d.paused():
		return d.reportPaused()
	case d.s.Deleted():
		return d.remove()
	}
	return d.reconcile()
}

// reconcile decides about a set that is not being deleted. It tries its steps in order; the first that has
// something to do makes the plan. Deletions come before changes of machines, so that a machine that is about
// to be deleted is not changed first. Changes come before creations, which may take many plans.
func (d *state) reconcile() Plan {
	bad := d.s.invalidField()
	if bad == nil && d.s.Owner == nil {
		bad = AboveLimit(d.s.Spec.Replicas, d.p.MaxReplicas)
	}
	if bad != nil {
		return d.invalid(bad)
	}
	if !d.s.HasFinalizer(Finalizer) {
		changed := d.s.Clone()
		changed.AddFinalizer(Finalizer)
		return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonFinalizer}}
	}
	d.summary.count(d)
	if plan, found := d.reportResumed(); found {
		return plan
	}
	if !d.retryAt().IsZero() {
		if d.allCreated() && !d.mayStayOpen() {
			return d.settleOnly()
		}
		return d.waitForChange()
	}
	plan, found := d.claim()
	if !found {
		plan, found = d.preserve()
	}
	if !found {
		plan, found = d.removeSome()
	}
	if !found {
		plan, found = d.syncTemplates()
	}
	if !found {
		plan, found = d.scale()
	}
	if found {
		return d.settleFirst(plan)
	}
	return d.waitForChange()
}

// removeSome deletes machines: those that failed, then those to be replaced, then the surplus.
func (d *state) removeSome() (Plan, bool) {
	plan, found := d.replaceFailed()
	if !found {
		plan, found = d.replaceRequested()
	}
	if !found {
		plan, found = d.deleteSurplus()
	}
	return plan, found
}

// invalid records once which field is invalid, and waits for a change.
func (d *state) invalid(bad *object.FieldError) Plan {
	why := decision.Why{Reason: reasonSpecInvalid, Name: bad.Field, Detail: bad.Problem}
	next := d.s.Status
	next.ObservedGeneration = d.s.Generation
	next.Conditions = withCondition(next.Conditions, object.Condition{
		Type: ConditionSpecValid, Status: object.False, Reason: reasonSpecInvalid.String(),
		Message: bad.Error(), Since: d.stamp(),
	})
	if next.Equal(&d.s.Status) {
		return Plan{Why: why}
	}
	return Plan{Write: &UpdateStatus{next.Clone()}, Why: why, Warn: why}
}

// state has the arguments of one call of Decide, and what it has counted.
type state struct {
	o       *Observation
	p       *Policy
	s       *Set
	now     time.Time
	summary summary

	// at and waiting are what the plan says if there is nothing to do.
	at      time.Time
	waiting decision.Why
}

// readLive plans a live read if the reads of this pass may be stale. before says, for the reason, what needs
// it.
func (d *state) readLive(before string) (plan Plan, found bool) {
	return d.readLiveSince(time.Time{}, before)
}

// readLiveSince is readLive, and plans a live read also if the last one began before since.
func (d *state) readLiveSince(since time.Time, before string) (plan Plan, found bool) {
	if d.o.Read.Covers(since) {
		return Plan{}, false
	}
	return Plan{ReadLive: true, Why: decision.Why{Reason: reasonReadLive, Detail: before}}, true
}

// A plan for a large set has a plansPerSet-th of it, but no more than maxBurst machines.
const (
	plansPerSet = 20
	maxBurst    = 10_000
)

// burst returns how many machines one plan creates, deletes or changes at most, see Policy.Burst.
func (d *state) burst() int {
	return max(int(d.p.Burst), min(max(d.wanted(), len(d.o.Machines))/plansPerSet, maxBurst))
}

// minReady is how long a machine must be ready to count as available.
func (d *state) minReady() time.Duration {
	if d.p.IgnoreMinReady {
		return 0
	}
	return d.s.Spec.MinReady
}

func (d *state) live() bool { return d.o.Read.Live() }

// lookAgain makes t the time of the next decision unless an earlier one is known.
func (d *state) lookAgain(t time.Time) {
	if t.Before(d.at) {
		d.at = t
	}
}

// stamp returns now in whole seconds, as stores keep times.
func (d *state) stamp() time.Time { return d.now.Truncate(time.Second) }

// wanted is how many machines there should be.
func (d *state) wanted() int {
	if d.s.Deleted() {
		return 0
	}
	return int(d.s.Spec.Replicas)
}

// owner returns the owner of this set's machines.
func (d *state) owner() *object.Owner {
	return &object.Owner{Kind: OwnerKind, Name: d.s.Name, UID: d.s.UID}
}

// closed reports whether the deployment has closed the set to new machines.
func (d *state) closed() bool { return d.s.Owner != nil && d.s.Instructions.Handover.Closed }

// handover returns the names of machines that move to and from the set. A set that has no owner, or is
// being deleted, ignores them.
func (d *state) handover() (arriving, leaving map[string]bool) {
	if d.s.Owner == nil || d.s.Deleted() {
		return nil, nil
	}
	return nameSet(d.s.Instructions.Handover.Arriving), nameSet(d.s.Instructions.Handover.Leaving)
}

// paused reports whether the set is paused. If it is being deleted without our finalizer, not even its
// status is written.
func (d *state) paused() bool {
	paused, _ := machine.Paused(&d.s.Meta, d.p.Keys.Paused)
	return paused && !(d.s.Deleted() && !d.s.HasFinalizer(Finalizer))
}

func (d *state) scaleUpDisabled() bool {
	key := d.p.Keys.ScaleUpDisabled
	if key == "" {
		return false
	}
	disabled, err := strconv.ParseBool(d.s.Labels[key])
	return err == nil && disabled
}

// A paused set gives no orders, also while it is being deleted: it creates, deletes, adopts, releases and
// changes no machine. Its status is still written. Its machines are not paused: they are reconciled as
// usual, and one that fails is replaced when the pause is over.

// reportPaused decides about a paused set: it keeps the status up to date and does nothing else.
func (d *state) reportPaused() Plan {
	d.summary.count(d)
	if at := d.summary.nextAvailable; !at.IsZero() {
		d.lookAgain(at)
	}
	if plan, found := d.writeStatus(); found {
		return plan
	}
	why := d.tally(reasonPaused)
	why.Name = d.p.Keys.Paused
	return Plan{At: d.at, Why: why}
}

// reportResumed removes the condition Paused from a set that is no longer paused.
func (d *state) reportResumed() (Plan, bool) {
	next := d.s.Status
	next.Conditions = withoutCondition(next.Conditions, ConditionPaused)
	if len(next.Conditions) == len(d.s.Status.Conditions) {
		return Plan{}, false
	}
	return Plan{Write: &UpdateStatus{next.Clone()}, Why: d.tally(reasonStatus)}, true
}

// warnUnreadablePause adds a warning to a plan if the pause annotation can't be read.
func (d *state) warnUnreadablePause(plan Plan) Plan {
	if _, odd := machine.Paused(&d.s.Meta, d.p.Keys.Paused); odd != "" && plan.Warn == (decision.Why{}) {
		plan.Warn = decision.Why{Reason: reasonOddPause, Name: d.p.Keys.Paused, Detail: odd}
	}
	return plan
}

// remove deletes the machines of a set that is being deleted, and then removes the finalizer. It creates
// nothing. If the machines are to be orphaned, it leaves them alone and waits until they have no owner.
func (d *state) remove() Plan {
	if !d.s.HasFinalizer(Finalizer) {
		return Plan{Why: decision.Why{Reason: reasonNotOurs}}
	}
	d.summary.count(d)
	if d.allCreated() { // later the machines are gone, and would look as if they were not created yet
		return d.settleOnly()
	}
	if !d.retryAt().IsZero() {
		return d.waitForChange()
	}
	if d.s.HasFinalizer(object.OrphanDependents) {
		d.waiting = decision.Why{Reason: reasonOrphaning}
		return d.waitForChange()
	}
	if plan, found := d.deleteAll(); found {
		return plan
	}
	if n := d.summary.pausedMachines.count; n > 0 {
		d.waiting = d.whyNotDeleted(n)
		return d.waitForChange()
	}
	if d.summary.owned > 0 {
		d.waiting = decision.Why{Reason: reasonTerminating, Count: int64(d.summary.terminating)}
		return d.waitForChange()
	}
	var since time.Time
	if n := d.s.Instructions.Reservation.Reserved - d.s.Instructions.Reservation.Settled; n > 0 {
		if d.inFlight() {
			d.lookAgain(d.reservationOver())
			d.waiting = decision.Why{Reason: reasonLateCreates, Count: n, For: d.reservationOver().Sub(d.now)}
			return d.waitForChange()
		}
		since = d.reservationOver()
	}
	if plan, found := d.readLiveSince(since, "removing the finalizer"); found {
		return plan
	}
	changed := d.s.Clone()
	changed.RemoveFinalizer(Finalizer)
	return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonSetReleased}}
}

// deleteAll deletes the machines of a set that is being deleted, whether
// or not they match its selector.
func (d *state) deleteAll() (Plan, bool) {
	if d.summary.owned == d.summary.terminating+d.summary.pausedMachines.count || d.o.Refused.Delete != nil {
		return Plan{}, false
	}
	if plan, found := d.readFresh("deleting the set's machines"); found {
		return plan, true
	}
	machines := d.summary.deletionOrder.sorted()
	orders := make([]Order, len(machines))
	for i, v := range machines {
		orders[i] = Order{Machine: v.machine, Why: decision.Why{Reason: reasonSetDeleted}}
	}
	return Plan{Delete: orders, Until: d.o.Read.Until(DeleteWithin, d.now), Why: d.tallyOf(ReasonDeleteAll, len(orders))}, true
}

// DeleteWithin is how long after a live read ended a set may delete, adopt or release machines, or decide
// to create them. Such an order changes a machine and not the set, so no version of the set guards it: the
// set may have another size by then. After that time the set reads live again.
const DeleteWithin = 10 * time.Second

// readFresh is readLive for orders that need a live read younger than DeleteWithin.
func (d *state) readFresh(before string) (plan Plan, found bool) {
	if d.live() && !d.o.Read.Within(DeleteWithin, d.now) {
		return Plan{ReadLive: true, Why: decision.Why{Reason: reasonReadLive, Detail: before}}, true
	}
	return d.readLive(before)
}

// worst returns the refusal that the status reports: of a create, or else of a delete, or else of a change.
// False: no order was refused.
func (r *Refused) worst() (machine.OperationKind, decision.Why, bool) {
	why := func(reason decision.Reason, o *machine.Outcome) decision.Why {
		detail, _ := codes.Bounded(o.Message)
		return decision.Why{Reason: reason, Code: o.Code, Detail: detail}
	}
	switch {
	case r.Create != nil:
		return machine.OperationCreate, why(reasonFailedCreate, r.Create), true
	case r.Delete != nil:
		return machine.OperationDelete, why(reasonFailedDelete, r.Delete), true
	case r.Change != nil:
		return machine.OperationUpdate, why(reasonFailedUpdate, r.Change), true
	}
	return "", decision.Why{}, false
}

// retryAt returns when orders may be given again after the last refusal. Zero: at once. Orders of all kinds
// wait: the write that stores a refusal triggers another pass, and two kinds that fail in turns would never
// back off. A change of the set ends the wait. A refusal too far in the future delays nothing.
func (d *state) retryAt() time.Time {
	failures := d.o.Failures
	if _, _, refused := d.o.Refused.worst(); refused {
		failures++
	}
	return d.retryAfter(failures)
}

// retryAfter returns when orders may be given again after so many failures in a row.
func (d *state) retryAfter(failures int) time.Time {
	op := &d.s.Status.LastOperation
	if op.State != machine.StateFailed || op.Against.Machine != d.s.Generation ||
		op.Time.After(d.now.Add(d.p.RetryMax)) {
		return time.Time{}
	}
	at := op.Time.Add(d.p.backoff(failures) + time.Second)
	if !d.now.Before(at) {
		return time.Time{}
	}
	return at
}
