package machinepool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// errNoEdge is the error for a move that the phase table does not have.
var errNoEdge = errors.New("machinepool.Decide: the table has no edge")

// Decide decides what to do next about one pool. It changes none of its arguments, and returns the
// same plan for the same arguments.
//
// A caller's mistake is an error: decision.ErrNoObservation, or an *object.FieldError for a policy out of
// range. A nil policy is the default one. A pool with invalid contents gets a plan that says so. A move
// that the phase table does not have would be a mistake of this package, and is an error too.
func Decide(o *Observation, p *Policy, now time.Time) (Plan, error) {
	if o == nil || o.Pool == nil {
		return Plan{}, fmt.Errorf("machinepool.Decide: %w", decision.ErrNoObservation)
	}
	p = p.WithDefaults()
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	d := state{o: o, p: p, s: o.Pool, now: now, bad: o.Pool.invalidField()}
	if d.bad == nil && o.Pool.Spec.RollingUpdate != nil && !o.Features.RollingUpdate {
		d.bad = object.Invalid("spec.rollingUpdate", "must not be set, because the driver's groups are not updated within such bounds")
	}
	plan := d.decide()
	if plan.Move != (machine.Move{}) && !phases.Allows(plan.Move) {
		return Plan{}, fmt.Errorf("%w: %s", errNoEdge, plan.Move)
	}
	return plan, nil
}

// state is one call of Decide.
type state struct {
	o   *Observation
	p   *Policy
	s   *Pool
	now time.Time
	bad *object.FieldError
	// instances are the group's, each once, sorted. Nil unless the group is found.
	instances []Instance
	// unlisted are the IDs of instances that are recorded, but missing in the answer, sorted.
	unlisted []string
	// next is when the next ready node becomes available. Zero: none will.
	next time.Time
	// joined is how many of the instances have a node.
	joined int32
}

func (d *state) decide() Plan {
	if d.s.Deleted() {
		return d.remove()
	}
	if d.bad == nil {
		if d.o.Frozen {
			return Plan{Why: decision.Why{Reason: reasonFrozen}}
		}
		if !d.s.HasFinalizer(Finalizer) {
			changed := d.s.Clone()
			changed.AddFinalizer(Finalizer)
			return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonFinalizer}}
		}
		if d.found() {
			d.instances = sortedInstances(d.o.Group.Instances)
			d.addUnlisted()
		}
		if plan, found := d.holdScaleDown(); found {
			return plan
		}
		if plan, found := d.followGroup(); found {
			return plan
		}
	}
	if plan, found := d.report(); found {
		return plan
	}
	if d.bad != nil {
		return Plan{Why: decision.Why{Reason: reasonSpecInvalid, Name: d.bad.Field, Detail: d.bad.Problem}}
	}
	return d.act()
}

// found reports whether the group is known, and there.
func (d *state) found() bool { return d.o.Group != nil && d.o.Group.Code == codes.OK }

// absent reports whether there is certainly no group.
func (d *state) absent() bool {
	return d.o.Group != nil && d.o.Group.Code == codes.NotFound && !d.groupUncertain()
}

// autoscaled reports whether the provider owns the pool's size.
func (d *state) autoscaled() bool {
	key := d.p.Keys.Autoscaled
	return d.p.Autoscaled || key != "" && d.s.Annotations[key] == "true"
}

// wanted returns how many instances there should be.
func (d *state) wanted() int32 {
	if d.autoscaled() && d.found() {
		return max(0, d.o.Group.Target)
	}
	return d.s.Spec.Wanted()
}

// followGroup updates the instances, and the size of an autoscaled pool, in the spec to match the group.
func (d *state) followGroup() (Plan, bool) {
	if !d.found() && !d.absent() {
		return Plan{}, false
	}
	same := slices.EqualFunc(d.instances, d.s.Spec.ProviderIDs, func(i Instance, id string) bool { return i.ProviderID == id })
	resized := d.autoscaled() && d.s.Spec.Wanted() != d.wanted()
	if same && !resized {
		return Plan{}, false
	}
	changed := d.s.Clone()
	changed.Spec.ProviderIDs = make([]string, len(d.instances))
	for i := range d.instances {
		changed.Spec.ProviderIDs[i] = d.instances[i].ProviderID
	}
	why := decision.Why{Reason: reasonInstances, Count: int64(len(d.instances)), All: int64(d.wanted())}
	if resized {
		n := d.wanted()
		changed.Spec.Replicas = &n
		why.Reason = reasonFollows
	}
	return Plan{Write: &Update{changed}, Why: why}, true
}

// sortedInstances returns instances sorted by ID, without empty and repeated ones. It returns the same
// slice if that is already so.
func sortedInstances(all []Instance) []Instance {
	last := ""
	for i := range all {
		if all[i].ProviderID <= last {
			sorted := slices.DeleteFunc(slices.Clone(all), func(i Instance) bool { return i.ProviderID == "" })
			slices.SortStableFunc(sorted, func(a, b Instance) int { return strings.Compare(a.ProviderID, b.ProviderID) })
			return slices.CompactFunc(sorted, func(a, b Instance) bool { return a.ProviderID == b.ProviderID })
		}
		last = all[i].ProviderID
	}
	return all
}

// instance returns the group's instance of that ID, or false if it has none.
func (d *state) instance(id string) (Instance, bool) {
	i, ok := slices.BinarySearchFunc(d.instances, id, func(i Instance, id string) int { return strings.Compare(i.ProviderID, id) })
	if !ok {
		return Instance{}, false
	}
	return d.instances[i], true
}

// stamp returns now as stores keep it.
func (d *state) stamp() time.Time { return d.now.Truncate(time.Second) }

// setStatus plans a write of the status that leaves the phase alone.
func (d *state) setStatus(why decision.Why, change func(*Status)) Plan {
	next := d.s.Status.Clone()
	change(&next)
	return Plan{Write: &UpdateStatus{next}, Why: why}
}

// A provider's answer may be wrong for a moment: a replica of its database that lags answers that a
// group does not exist, or lists none of its instances. So a group or an instance that is recorded is
// given up only after two answers without it, some time apart.

// Memory is what a process remembers of the answers about one pool's group. Losing it costs time
// only. The zero Memory remembers nothing.
type Memory struct {
	// Missed has the instances of the pool's spec that the last answer lacked, by provider ID, with the
	// time since which all answers have lacked them.
	Missed map[string]time.Time
	// Gone is the time since which all answers have been NOT_FOUND. Zero: the last one was not.
	Gone time.Time
}

// See must be called with each answer to GetGroup, and the pool it is about, before the decision on
// that answer. Errors other than NOT_FOUND say nothing of the group, and change nothing.
func (m *Memory) See(p *Pool, g *Group) {
	switch g.Code {
	case codes.OK:
		m.Gone = time.Time{}
	case codes.NotFound:
		if m.Gone.IsZero() || m.Gone.After(g.At) {
			m.Gone = g.At
		}
		return
	default:
		return
	}
	listed := make(map[string]bool, len(g.Instances))
	for i := range g.Instances {
		listed[g.Instances[i].ProviderID] = true
	}
	missed := make(map[string]time.Time)
	for _, id := range p.Spec.ProviderIDs {
		if listed[id] {
			continue
		}
		missed[id] = g.At
		if before, again := m.Missed[id]; again && before.Before(g.At) {
			missed[id] = before
		}
	}
	m.Missed = missed
}

// missing returns the recorded instances that the answer lacks and that are not given up yet, sorted.
// Nil if there are none.
func (d *state) missing() (ids []string) {
	for _, id := range d.s.Spec.ProviderIDs {
		if _, listed := d.instance(id); id != "" && !listed && !d.gaveUp(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// gaveUp reports whether two answers, at least Policy.Poll apart, and all between them lacked an instance.
func (d *state) gaveUp(id string) bool {
	if d.o.Memory == nil {
		return false
	}
	since, missed := d.o.Memory.Missed[id]
	return missed && d.o.Group.At.Sub(since) >= d.p.Poll
}

// groupUncertain reports whether the answer says that the recorded group does not exist, and this is not
// believed yet: it takes two such answers, at least Policy.Period apart, and no other between them.
func (d *state) groupUncertain() bool {
	ids := d.s.Spec.ProviderIDs
	if d.o.Group == nil || d.o.Group.Code != codes.NotFound || d.s.Status.GroupID == "" && len(ids) == 0 || !strictlySorted(ids) {
		return false // no group is recorded, or another program wrote the record
	}
	m := d.o.Memory
	return m == nil || m.Gone.IsZero() || d.o.Group.At.Sub(m.Gone) < d.p.Period
}

// addUnlisted adds instances that the answer lacks and that are not given up yet. It changes nothing
// if there are none.
func (d *state) addUnlisted() {
	d.unlisted = d.missing()
	if len(d.unlisted) == 0 {
		return
	}
	all := slices.Clone(d.instances)
	for _, id := range d.unlisted {
		all = append(all, Instance{ProviderID: id})
	}
	slices.SortFunc(all, func(a, b Instance) int { return strings.Compare(a.ProviderID, b.ProviderID) })
	d.instances = all
}

// isUnlisted reports whether the answer lacks an instance that is not given up yet.
func (d *state) isUnlisted(id string) bool {
	_, is := slices.BinarySearch(d.unlisted, id)
	return is
}

// unlistedWhy returns which instances the answer lacks.
func (d *state) unlistedWhy() decision.Why {
	return decision.Why{Reason: reasonUnlisted, Name: d.unlisted[0], Count: int64(len(d.unlisted)), All: int64(len(d.instances))}
}

func (d *state) operation(call Call, state machine.OperationState) Operation {
	return Operation{Call: call, State: state, Time: d.stamp()}
}

func (d *state) inputs() Inputs {
	in := Inputs{Pool: d.s.Generation, Secret: d.o.Secret}
	if d.o.Class != nil {
		in.Class = d.o.Class.Generation
	}
	return in
}

// retryAt returns when the recovery table allows the next attempt of a call after the persisted
// failure. Zero: now. A change of the call's inputs allows it at once. So does a failure that is recorded
// with a time in the future: how long to wait after it is not known.
func (d *state) retryAt(call Call) time.Time {
	op := &d.s.Status.LastOperation
	if op.Call != call || op.State != machine.StateFailed || op.Against != d.inputs() || op.Time.After(d.now) {
		return time.Time{}
	}
	recovery := call.Recovery(op.Code)
	waits := d.p.WaitForChange && !recovery.AutoRetry && recovery.Class != codes.None && call.provider()
	if recovery.Class == codes.None || recovery.Class == codes.Requeue {
		recovery.Class = codes.Short // a persisted failure is never retried in a hot loop
	}
	at := op.Time.Add(recovery.Backoff(d.o.Failures, d.p.QuotaRetry)).Add(time.Second)
	if waits {
		at = op.Time.Add(endless)
	}
	if !d.now.Before(at) {
		return time.Time{}
	}
	return at
}

// endless is longer than any wait: the next attempt is made only after a change.
const endless = 200 * 365 * 24 * time.Hour

// retryLater delays a call until it may be retried.
func (d *state) retryLater(call Call) (Plan, bool) {
	at := d.retryAt(call)
	if at.IsZero() {
		return Plan{}, false
	}
	op := &d.s.Status.LastOperation
	why := decision.Why{Reason: reasonRetryAt, Name: string(call), Code: op.Code, Detail: op.Message, For: at.Sub(d.now)}
	if why.For < endless/2 {
		return Plan{At: at, Why: why}, true
	}
	why.Reason, why.For = reasonWaitForChange, 0
	if call == GetPoolStatus || d.s.Deleted() {
		return Plan{Why: why}, true
	}
	return Plan{At: d.now.Add(d.p.Period), Why: why}, true // the group is still read
}

// awaitEffect delays a call that has just succeeded for the same size, because the provider may show the
// effect later, or never. Without the delay, a call without effect would be repeated in a hot loop.
func (d *state) awaitEffect(call Call) (Plan, bool) {
	op := &d.s.Status.LastOperation
	at := op.Time.Add(d.p.Poll)
	if op.Call != call || op.State != machine.StateSuccessful || op.Replicas != d.wanted() || op.Time.After(d.now) || !d.now.Before(at) {
		return Plan{}, false
	}
	return Plan{At: at, Why: decision.Why{Reason: reasonTakesEffect, Name: string(call), For: at.Sub(d.now)}}, true
}

// order plans a changing effect. A write of the same pass announces it first, so that a process
// that decides from an old pool fails at that write. An announcement of an earlier pass does not
// count: that order may have been carried out, from another template.
func (d *state) order(call Call, effect Effect, why decision.Why) Plan {
	if plan, found := d.retryLater(call); found {
		return plan
	}
	if plan, found := d.awaitEffect(call); found {
		return plan
	}
	op := &d.s.Status.LastOperation
	if !d.o.Announced || op.Call != call || op.State != machine.StateProcessing || op.Replicas != d.wanted() {
		announced := d.operation(call, machine.StateProcessing)
		announced.Replicas = d.wanted()
		plan := d.setStatus(decision.Why{Reason: reasonAnnounce, Name: string(call)}, func(s *Status) {
			s.LastOperation = announced
			switch call {
			case CreatePool:
				s.Applied = d.ordered(&s.Applied)
				s.GroupID = "" // it is gone: a deletion finds the new group by the pool's name
			case UpdatePool:
				s.Applied = s.Applied.uncertain()
			}
		})
		plan.Announces = true
		return plan
	}
	return Plan{Effect: effect, Why: why}
}
