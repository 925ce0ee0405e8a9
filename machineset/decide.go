package machineset

import (
	"errors"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// errNoSet is the error for a mistake of the caller.
var errNoSet = errors.New("machineset.Decide: the observation has no set")

// Decide says what to do next about one set. It changes none of its arguments.
// Calling it again with the same arguments gives the same plan.
//
// The error is for a caller's mistake only: no set, or an *object.FieldError
// for a policy out of range. A nil policy is the default one. A set that holds nonsense gets
// a plan that says so.
func Decide(o *Observation, p *Policy, now time.Time) (Plan, error) {
	if o == nil || o.Set == nil {
		return Plan{}, errNoSet
	}
	p = p.WithDefaults()
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	c := counted{situation: situation{o: o, p: p, s: o.Set, now: now, at: now.Add(p.Resync)}}
	return pause{&c}.warnInvalid(decider{&c}.decide()), nil
}

// decider asks the parts in order.
type decider struct{ *counted }

// decide decides about any set.
func (d decider) decide() Plan {
	switch {
	case d.paused():
		return pause(d).keepStatus()
	case d.s.Deleted():
		return deletion(d).remove()
	}
	return d.keep()
}

// keep decides about a set that is not being deleted. Its steps are tried in
// this order; the first that has something to do makes the plan, and what they
// have all left alone is waited for. Deletions come before pushes: a machine
// that is about to go is not changed first, and none waits for the others'
// changes. Pushes come before creations, which may take many plans.
func (d decider) keep() Plan {
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
	d.summary.count(&d.situation)
	if plan, busy := pause(d).resume(); busy {
		return plan
	}
	names := reservation(d)
	if !d.retryAt().IsZero() {
		if names.allCame() && !names.mayStayOpen() {
			return names.settled()
		}
		return report(d).rest()
	}
	plan, busy := adoption(d).claim() // not decision.FirstOf: through functions, c would be allocated
	if !busy {
		plan, busy = d.preservation().preserve()
	}
	if !busy {
		plan, busy = d.removeSome()
	}
	if !busy {
		plan, busy = alignment(d).push()
	}
	if !busy {
		plan, busy = names.scale()
	}
	if busy {
		return names.settleFirst(plan)
	}
	return report(d).rest()
}

// removeSome deletes machines: those that failed, then those to be replaced, then the surplus.
func (d decider) removeSome() (Plan, bool) {
	plan, busy := replacement(d).replaceFailed()
	if !busy {
		plan, busy = replacement(d).replaceRequested()
	}
	if !busy {
		plan, busy = surplus(d).remove()
	}
	return plan, busy
}

// invalid records once which field can't be acted upon, and waits for a change.
func (d decider) invalid(bad *object.FieldError) Plan {
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

// situation is what one call of Decide is given, and what all parts of the decision share.
type situation struct {
	o   *Observation
	p   *Policy
	s   *Set
	now time.Time
	// at and waiting are what the plan says if there is nothing to do.
	at      time.Time
	waiting decision.Why
}

// readLive plans a live read if what is known may be stale. busy: it has to be
// carried out before what is named.
func (d *situation) readLive(before string) (plan Plan, busy bool) {
	return d.readLiveSince(time.Time{}, before)
}

// readLiveSince is readLive where a read from before since is stale as well.
func (d *situation) readLiveSince(since time.Time, before string) (plan Plan, busy bool) {
	if d.o.Read.Covers(since) {
		return Plan{}, false
	}
	return Plan{ReadLive: true, Why: decision.Why{Reason: reasonReadLive, Detail: before}}, true
}

// minReady is how long a machine must be ready to count as available.
func (d *situation) minReady() time.Duration {
	if d.p.IgnoreMinReady {
		return 0
	}
	return d.s.Spec.MinReady
}

func (d *situation) live() bool { return d.o.Read.Live() }

// lookAgain makes the next look no later than t.
func (d *situation) lookAgain(t time.Time) {
	if t.Before(d.at) {
		d.at = t
	}
}

// stamp is now as stores keep it.
func (d *situation) stamp() time.Time { return d.now.Truncate(time.Second) }

// wanted is how many machines there should be.
func (d *situation) wanted() int {
	if d.s.Deleted() {
		return 0
	}
	return int(d.s.Spec.Replicas)
}

// owner is the mark of this set on its machines.
func (d *situation) owner() *object.Owner {
	return &object.Owner{Kind: OwnerKind, Name: d.s.Name, UID: d.s.UID}
}

// closed reports whether the deployment has closed the set to new machines.
func (d *situation) closed() bool { return d.s.Owner != nil && d.s.Instructions.Handover.Closed }

// handover is the names on their way as sets, empty where they are to be
// disregarded.
func (d *situation) handover() (arriving, leaving map[string]bool) {
	if d.s.Owner == nil || d.s.Deleted() {
		return nil, nil
	}
	return nameSet(d.s.Instructions.Handover.Arriving), nameSet(d.s.Instructions.Handover.Leaving)
}

// paused reports whether the set is to be left as it is. One that is being
// deleted without our finalizer is not even written.
func (d *situation) paused() bool {
	paused, _ := machine.Paused(&d.s.Meta, d.p.Keys.Paused)
	return paused && !(d.s.Deleted() && !d.s.HasFinalizer(Finalizer))
}

func (d *situation) scaleUpDisabled() bool {
	key := d.p.Keys.ScaleUpDisabled
	if key == "" {
		return false
	}
	disabled, err := strconv.ParseBool(d.s.Labels[key])
	return err == nil && disabled
}

// A set that is paused gives no orders: it makes, deletes, claims, releases and
// changes no machine, also while it is being deleted. Its status is still written. Its
// machines are not paused by it: they are reconciled as usual, and one that
// fails is replaced when the pause is over.

// pause leaves a set as it is while its annotation asks for that.
type pause struct{ *counted }

// keepStatus decides about a paused set: it keeps the status up to date and does nothing else.
func (d pause) keepStatus() Plan {
	d.summary.count(&d.situation)
	if at := d.summary.nextAvailable; !at.IsZero() {
		d.lookAgain(at)
	}
	if plan, busy := report(d).status(); busy {
		return plan
	}
	why := d.tally(reasonPaused)
	why.Name = d.p.Keys.Paused
	return Plan{At: d.at, Why: why}
}

// resume takes the condition off a set that is not paused any more.
func (d pause) resume() (Plan, bool) {
	next := d.s.Status
	next.Conditions = withoutCondition(next.Conditions, ConditionPaused)
	if len(next.Conditions) == len(d.s.Status.Conditions) {
		return Plan{}, false
	}
	return Plan{Write: &UpdateStatus{next.Clone()}, Why: d.tally(reasonStatus)}, true
}

// warnInvalid lets a plan warn of a pause that can't be read.
func (d pause) warnInvalid(plan Plan) Plan {
	if _, odd := machine.Paused(&d.s.Meta, d.p.Keys.Paused); odd != "" && plan.Warn == (decision.Why{}) {
		plan.Warn = decision.Why{Reason: reasonOddPause, Name: d.p.Keys.Paused, Detail: odd}
	}
	return plan
}

// deletion takes a set that is being deleted to its end.
type deletion struct{ *counted }

// remove takes a set that is being deleted to its end: its machines first, then
// the finalizer. It creates nothing. Machines that are to stay behind are left
// alone until they have no owner.
func (d deletion) remove() Plan {
	if !d.s.HasFinalizer(Finalizer) {
		return Plan{Why: decision.Why{Reason: reasonNotOurs}}
	}
	d.summary.count(&d.situation)
	names := reservation(d)
	if names.allCame() { // once the machines are gone it would look as if some of them were yet to come
		return names.settled()
	}
	if !d.retryAt().IsZero() {
		return report(d).rest()
	}
	if d.s.HasFinalizer(object.OrphanDependents) {
		d.waiting = decision.Why{Reason: reasonLeaving}
		return report(d).rest()
	}
	if plan, busy := d.removeMachines(); busy {
		return plan
	}
	if n := d.summary.spared.count; n > 0 {
		d.waiting = d.kept(n)
		return report(d).rest()
	}
	if d.summary.owned > 0 {
		d.waiting = decision.Why{Reason: reasonTerminating, Count: int64(d.summary.terminating)}
		return report(d).rest()
	}
	var since time.Time
	if n := d.s.Instructions.Reservation.Reserved - d.s.Instructions.Reservation.Settled; n > 0 {
		if names.inFlight() {
			d.lookAgain(names.doneAt())
			d.waiting = decision.Why{Reason: reasonLateCreates, Count: n, For: names.doneAt().Sub(d.now)}
			return report(d).rest()
		}
		since = names.doneAt()
	}
	if plan, busy := d.readLiveSince(since, "removing the finalizer"); busy {
		return plan
	}
	changed := d.s.Clone()
	changed.RemoveFinalizer(Finalizer)
	return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonSetReleased}}
}

// removeMachines deletes the machines of a set that is being deleted, whether
// or not they match its selector.
func (d deletion) removeMachines() (Plan, bool) {
	if d.summary.owned == d.summary.terminating+d.summary.spared.count || d.o.Refused.Delete != nil {
		return Plan{}, false
	}
	if plan, busy := d.readFresh("deleting the set's machines"); busy {
		return plan, true
	}
	machines := d.summary.deletionOrder.sorted()
	orders := make([]Order, len(machines))
	for i, v := range machines {
		orders[i] = Order{Machine: v.machine, Why: decision.Why{Reason: reasonSetDeleted}}
	}
	return Plan{Delete: orders, Until: d.o.Read.Until(DeleteWithin, d.now), Why: d.tallyOf(ReasonDeleteAll, len(orders))}, true
}

// DeleteWithin is how long after a live read ended a set may delete, adopt or release machines
// because of it, or decide to create them. An order goes to a machine, and no write of the set
// guards it: the set may have another size by then. Writes and pushes that take longer end the live
// read, and the set reads live again. A set that gives out names compares and swaps, but those that
// its deployment or an earlier pass gave out are used without a write before.
const DeleteWithin = 10 * time.Second

// readFresh is readLive for what only a fresh live read allows, see DeleteWithin.
func (d *situation) readFresh(before string) (plan Plan, busy bool) {
	if d.live() && !d.o.Read.Within(DeleteWithin, d.now) {
		return Plan{ReadLive: true, Why: decision.Why{Reason: reasonReadLive, Detail: before}}, true
	}
	return d.readLive(before)
}

// worst is the refusal that is told in the status: the one that keeps the set
// the furthest from what it should be. False: no order was refused.
func (r *Refused) worst() (machine.OperationKind, decision.Why, bool) {
	tell := func(reason decision.Reason, o *machine.Outcome) decision.Why {
		detail, _ := codes.Bounded(o.Message)
		return decision.Why{Reason: reason, Code: o.Code, Detail: detail}
	}
	switch {
	case r.Create != nil:
		return machine.OperationCreate, tell(reasonFailedCreate, r.Create), true
	case r.Delete != nil:
		return machine.OperationDelete, tell(reasonFailedDelete, r.Delete), true
	case r.Change != nil:
		return machine.OperationUpdate, tell(reasonFailedUpdate, r.Change), true
	}
	return "", decision.Why{}, false
}

// retryAt is the moment before which no order is given, since the last refusal
// that is stored is too young; zero: orders may be given. It holds back orders
// of all kinds: the write that stores a refusal wakes the set up again, and
// two kinds that fail in turns would never settle. A changed set opens
// it, and so does a time that no clock can have written.
func (d *situation) retryAt() time.Time {
	failures := d.o.Failures
	if _, _, refused := d.o.Refused.worst(); refused {
		failures++
	}
	return d.retryAfter(failures)
}

// retryAfter returns when orders may be given again after so many failures in a row.
func (d *situation) retryAfter(failures int) time.Time {
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
