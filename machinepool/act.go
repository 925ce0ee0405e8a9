package machinepool

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// act decides about a pool whose status is up to date.
func (d *state) act() Plan {
	for _, c := range d.changeAnswers() { // the effect of a call is looked at in a later pass
		if c.answer == nil {
			continue
		}
		if plan, found := d.retryLater(c.call); found {
			return plan
		}
		return Plan{At: d.now.Add(d.p.Poll), Why: decision.Why{Reason: reasonTakesEffect, Name: string(c.call), For: d.p.Poll}}
	}
	ref := d.s.Spec.Template.Class
	switch {
	case ref.Name == "":
		return Plan{Why: decision.Why{Reason: reasonNoClass}}
	case d.o.Class == nil:
		return Plan{At: d.now.Add(d.p.Period), Why: decision.Why{Reason: reasonClassMissing, Name: ref.Name}}
	}
	if plan, found := d.readGroupIfDue(); found {
		return plan
	}
	if d.absent() {
		return d.create()
	}
	return d.maintain()
}

// readGroupIfDue plans a read of the group if the last answer is too old, or a wait if this pass's read
// leaves open what there is.
func (d *state) readGroupIfDue() (Plan, bool) {
	if d.o.Looked {
		if d.found() || d.absent() {
			return Plan{}, false
		}
		if d.groupUncertain() {
			return d.waitUncertain(), true
		}
		if plan, found := d.retryLater(GetPoolStatus); found {
			return plan, true
		}
		return Plan{At: d.now.Add(d.p.Poll), Why: decision.Why{Reason: reasonTakesEffect, For: d.p.Poll}}, true
	}
	if d.recent() {
		if d.groupUncertain() {
			return d.waitUncertain(), true
		}
		return Plan{}, false
	}
	return d.readGroup(), true
}

// recent reports whether the last answer about the group still serves. A failed read serves in its own pass
// only, and so does the final answer that there is no group: before a create the group is read again.
func (d *state) recent() bool {
	return (d.found() || d.groupUncertain()) && !d.o.Group.At.After(d.now) && d.now.Before(d.readGroupAt())
}

// waitUncertain waits for another answer, because the last one said that the recorded group does not exist.
func (d *state) waitUncertain() Plan {
	why := decision.Why{Reason: reasonGroupNotFound, Name: d.s.Status.GroupID, Count: int64(len(d.s.Spec.ProviderIDs)), For: d.p.Period}
	return Plan{At: d.readGroupAt(), Why: why, Warn: why}
}

// readGroup plans a read of the group from the provider.
func (d *state) readGroup() Plan {
	if plan, found := d.retryLater(GetPoolStatus); found {
		return plan
	}
	return Plan{Effect: GetGroup{}, Why: decision.Why{Reason: reasonReadGroup}}
}

// readGroupAt returns when to read the group again.
func (d *state) readGroupAt() time.Time {
	every := d.p.Period
	if d.s.Status.Phase != PhaseRunning || len(d.s.Status.Leaving) > 0 || len(d.unlisted) > 0 || d.groupUncertain() {
		every = min(every, d.p.Poll)
	}
	return d.o.Group.At.Add(every)
}

// create plans the creation of the group, once the bootstrap data of its machines exist.
func (d *state) create() Plan {
	if plan, found := d.noBootstrap(); found {
		return plan
	}
	if plan, found := d.renew(); found {
		return plan
	}
	n := d.wanted()
	why := decision.Why{Reason: reasonCreate, Count: int64(n)}
	plan := d.order(CreatePool, CreateGroup{Replicas: n}, why)
	if d.s.Status.GroupID != "" && plan.Why.Reason == reasonAnnounce {
		plan.Warn = decision.Why{Reason: reasonGroupGone, Name: d.s.Status.GroupID}
	}
	return plan
}

// noBootstrap waits for the bootstrap data. Without them, the driver would take the group for one that
// needs none.
func (d *state) noBootstrap() (Plan, bool) {
	boot := &d.s.Spec.Template.Bootstrap
	at := d.now.Add(d.p.Poll)
	switch {
	case boot.DataSecret == nil:
		return Plan{At: at, Why: decision.Why{Reason: reasonNoBootstrap}}, true
	case !d.bootstrapReady():
		return Plan{At: at, Why: decision.Why{Reason: reasonBootstrapMissing, Name: *boot.DataSecret}}, true
	}
	return Plan{}, false
}

// bootstrapReady reports whether machines have their bootstrap data. Until the caller has looked, it
// returns the recorded answer.
func (d *state) bootstrapReady() bool {
	boot := &d.s.Spec.Template.Bootstrap
	switch b := d.o.Bootstrap; {
	case boot.DataSecret == nil:
		return false
	case *boot.DataSecret == "":
		return true
	case b == nil:
		return d.s.Status.BootstrapReady
	default:
		return b.Found && (boot.Config == "" || b.Ready)
	}
}

// renew renews the bootstrap token if it expires soon. It is called while a machine may need the token.
func (d *state) renew() (Plan, bool) {
	boot, b := d.s.Spec.Template.Bootstrap.DataSecret, d.o.Bootstrap
	if boot == nil || *boot == "" || b == nil || b.TokenExpires.IsZero() {
		return Plan{}, false
	}
	if r := d.o.Renewed; r != nil && r.Code == codes.OK || b.TokenExpires.Sub(d.now) > d.p.TokenRenew {
		return Plan{}, false
	}
	if plan, found := d.retryLater(RenewToken); found {
		return plan, true
	}
	if b.OwnToken && !d.o.Fresh { // if the pool is gone, nothing would remove a new token
		return readLive(), true
	}
	return Plan{
		Effect: Renew{Until: d.stamp().Add(d.p.TokenTTL)},
		Why:    decision.Why{Reason: reasonRenew, For: max(0, b.TokenExpires.Sub(d.now))},
	}, true
}

// renewAt returns when to renew the bootstrap token.
func (d *state) renewAt() time.Time { return d.o.Bootstrap.TokenExpires.Add(-d.p.TokenRenew) }

// maintain decides about a group that is there.
func (d *state) maintain() Plan {
	if d.mayNeedToken() {
		if plan, found := d.renew(); found {
			return plan
		}
	}
	if plan, found := d.updateLeaving(); found {
		return plan
	}
	if plan, found := d.scale(); found {
		return plan
	}
	update, waits := d.update()
	if update.Write != nil || update.Effect != nil {
		return update
	}
	if plan, found := d.drain(); found { // an update that waits blocks no drain
		return plan
	}
	if waits {
		return update
	}
	return d.settle()
}

// removesInstances reports whether this pass has announced a removal of instances. That call is made
// before any other, because there is one announcement at a time.
func (d *state) removesInstances() bool {
	op := &d.s.Status.LastOperation
	switch op.Call {
	case DeleteInstances, ReplaceInstance, InstancesDrained:
		return d.o.Announced && op.State == machine.StateProcessing
	case CreatePool, UpdatePool, ScalePool, GetPoolStatus, DeletePool, DeleteBootstrap, RenewToken:
	}
	return false
}

// update brings the group to the pool's current template, once the bootstrap data of its machines
// are there.
func (d *state) update() (plan Plan, found bool) {
	if d.asApplied() || d.removesInstances() {
		return Plan{}, false
	}
	if plan, found := d.noBootstrap(); found {
		return plan, true
	}
	if plan, found := d.renew(); found { // new instances that the update leads to need the token
		return plan, true
	}
	return d.order(UpdatePool, UpdateGroup{}, decision.Why{Reason: reasonUpdate, Name: d.s.Spec.Template.Class.Name}), true
}

// mayNeedToken reports whether a machine may still need the bootstrap token: instances are to come, or one
// that stays has no node, even if there are as many nodes as wanted: an update with a surge has more
// instances. It returns false while the nodes are not known, and before a scale-down.
func (d *state) mayNeedToken() bool {
	return d.o.Nodes != nil && d.wanted() >= d.o.Group.Target && (d.joined < d.wanted() || d.unjoined())
}

// unjoined reports whether an instance that stays has no node.
func (d *state) unjoined() bool {
	if int(d.joined) >= len(d.instances) {
		return false
	}
	return slices.ContainsFunc(d.instances, func(one Instance) bool {
		leaves := func(l Leaving) bool { return l.ProviderID == one.ProviderID }
		return !one.Terminating && d.node(one.ProviderID) == nil && !slices.ContainsFunc(d.s.Status.Leaving, leaves)
	})
}

// settle ends a pass in which there is nothing to do. An operation that did not succeed is recorded as
// successful, because its purpose is reached.
func (d *state) settle() Plan {
	if op := d.s.Status.LastOperation; op.State != machine.StateSuccessful && op != (Operation{}) {
		op.State, op.Code, op.Message, op.Against, op.Time = machine.StateSuccessful, codes.OK, "", Inputs{}, d.stamp()
		return d.setStatus(decision.Why{Reason: reasonDone, Name: string(op.Call)}, func(s *Status) { s.LastOperation = op })
	}
	at := d.readGroupAt()
	if !d.next.IsZero() && d.next.Before(at) {
		at = d.next
	}
	if b := d.o.Bootstrap; b != nil && !b.TokenExpires.IsZero() && d.mayNeedToken() && d.renewAt().After(d.now) && d.renewAt().Before(at) {
		at = d.renewAt()
	}
	return Plan{At: at, Why: d.settledWhy()}
}

// settledWhy returns what the pool waits for, or that it runs.
func (d *state) settledWhy() decision.Why {
	s := &d.s.Status
	why := decision.Why{Reason: reasonWaiting, Name: string(s.Phase), Count: int64(s.Ready), All: int64(d.wanted())}
	switch {
	case len(d.unlisted) > 0:
		why = d.unlistedWhy()
	case s.Phase == PhaseRunning:
		why.Reason = reasonRunning
	case d.scaleDownHeld():
		why = d.whyHeld()
	case s.FailureReason != "":
		why.Reason, why.Name, why.Detail = reasonFailed, string(s.FailureReason), s.FailureMessage
	case !s.InfrastructureReady:
		why.Reason = reasonGroupNotReady
	}
	return why
}

// scale brings the group to the wanted size. If the driver can remove chosen instances, existing ones
// are removed by name (updateLeaving, drain). Otherwise the provider chooses.
func (d *state) scale() (Plan, bool) {
	wanted, target := d.wanted(), max(0, d.o.Group.Target)
	if wanted == target { // always, while the provider owns the size
		return Plan{}, false
	}
	if wanted > target {
		if !d.o.Looked {
			return d.readGroup(), true
		}
		if plan, found := d.renew(); found {
			return plan, true
		}
		return d.order(ScalePool, ScaleGroup{To: wanted}, decision.Why{Reason: reasonScale, Count: int64(target), All: int64(wanted)}), true
	}
	to := wanted
	if d.o.Features.DeleteInstances {
		to = max(wanted, d.notGoing()) // no more than are there: what is created now would be removed by name
		if target <= to {
			return Plan{}, false
		}
	}
	if !d.o.Looked {
		return d.readGroup(), true
	}
	return d.order(ScalePool, ScaleGroup{To: to}, decision.Why{Reason: reasonScale, Count: int64(target), All: int64(to)}), true
}

// notGoing returns how many instances the provider is not removing.
func (d *state) notGoing() int32 {
	n := int32(0)
	for i := range d.instances {
		if !d.instances[i].Terminating {
			n++
		}
	}
	return n
}

// surplus returns how many instances the library must choose for removal. It is zero while the
// provider owns the size, because that size is then wanted.
func (d *state) surplus() int {
	if !d.o.Features.DeleteInstances {
		return 0
	}
	target := min(max(0, d.o.Group.Target), d.notGoing())
	return int(max(0, target-d.wanted()))
}
