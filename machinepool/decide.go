package machinepool

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// errNoPool is the error for a mistake of the caller.
var errNoPool = errors.New("machinepool.Decide: the observation has no pool")

// Decide decides what to do next about one pool. It changes none of its arguments, and returns the
// same plan for the same arguments.
//
// Only a caller's mistake is an error: no pool, or an *object.FieldError for a policy out of
// range. A nil policy is the default one. A pool with invalid contents gets a plan that says so.
func Decide(o *Observation, p *Policy, now time.Time) (Plan, error) {
	if o == nil || o.Pool == nil {
		return Plan{}, errNoPool
	}
	p = p.WithDefaults()
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	d := decider{o: o, p: p, s: o.Pool, now: now, bad: o.Pool.invalidField()}
	if d.bad == nil && o.Pool.Spec.RollingUpdate != nil && !o.Features.RollingUpdate {
		d.bad = object.Invalid("spec.rollingUpdate", "must not be set, because the driver's groups are not updated within such bounds")
	}
	return d.decide(), nil
}

// decider is one call of Decide.
type decider struct {
	o   *Observation
	p   *Policy
	s   *Pool
	now time.Time
	bad *object.FieldError
	// instances are the group's, each once, sorted. Nil unless the group is found.
	instances []Instance
	// unlisted are those of instances that the answer lacks, sorted.
	unlisted []string
	// next is when a node that is ready becomes available. Zero: none will.
	next time.Time
	// joined is how many of the instances have a node.
	joined int32
}

func (d *decider) decide() Plan {
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
			d.instances = orderly(d.o.Group.Instances)
			d.supplement()
		}
		if plan, busy := d.hold(); busy {
			return plan
		}
		if plan, busy := d.follow(); busy {
			return plan
		}
	}
	if plan, busy := d.report(); busy {
		return plan
	}
	if d.bad != nil {
		return Plan{Why: decision.Why{Reason: reasonSpecInvalid, Name: d.bad.Field, Detail: d.bad.Problem}}
	}
	return d.act()
}

// found reports whether the group is known, and there.
func (d *decider) found() bool { return d.o.Group != nil && d.o.Group.Code == codes.OK }

// absent reports whether it is known that there is no group.
func (d *decider) absent() bool {
	return d.o.Group != nil && d.o.Group.Code == codes.NotFound && !d.doubted()
}

// autoscaled reports whether the provider owns the pool's size.
func (d *decider) autoscaled() bool {
	key := d.p.Keys.Autoscaled
	return d.p.Autoscaled || key != "" && d.s.Annotations[key] == "true"
}

// wanted returns how many instances there should be.
func (d *decider) wanted() int32 {
	if d.autoscaled() && d.found() {
		return max(0, d.o.Group.Target)
	}
	return d.s.Spec.Wanted()
}

// follow updates what the spec says of the group to match the group.
func (d *decider) follow() (Plan, bool) {
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

// orderly returns instances sorted by ID, without empty and repeated ones. It returns the same
// slice if that is already so.
func orderly(all []Instance) []Instance {
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
func (d *decider) instance(id string) (Instance, bool) {
	i, ok := slices.BinarySearchFunc(d.instances, id, func(i Instance, id string) int { return strings.Compare(i.ProviderID, id) })
	if !ok {
		return Instance{}, false
	}
	return d.instances[i], true
}

// stamp returns now as stores keep it.
func (d *decider) stamp() time.Time { return d.now.Truncate(time.Second) }

// setStatus plans a write of the status that leaves the phase alone.
func (d *decider) setStatus(why decision.Why, change func(*Status)) Plan {
	next := d.s.Status.Clone()
	change(&next)
	return Plan{Write: &UpdateStatus{next}, Why: why}
}
