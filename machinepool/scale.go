package machinepool

import "github.com/millwright-go/millwright/decision"

// scale brings the group to the size that is wanted. Where we can choose what
// goes, instances leave by name (leave); otherwise the provider chooses.
func (d *decider) scale() (Plan, bool) {
	wanted, target := d.wanted(), max(0, d.o.Group.Target)
	if wanted == target { // always, while the provider owns the size
		return Plan{}, false
	}
	if wanted > target {
		if !d.o.Looked {
			return d.ask(), true
		}
		if plan, busy := d.renew(); busy {
			return plan, true
		}
		return d.order(ScalePool, ScaleGroup{To: wanted}, decision.Why{Reason: reasonScale, Count: int64(target), All: int64(wanted)}), true
	}
	to := wanted
	if d.o.Features.DeleteInstances {
		to = max(wanted, d.staying()) // what is not there yet need not come
		if target <= to {
			return Plan{}, false
		}
	}
	if !d.o.Looked {
		return d.ask(), true
	}
	return d.order(ScalePool, ScaleGroup{To: to}, decision.Why{Reason: reasonScale, Count: int64(target), All: int64(to)}), true
}

// staying is how many instances the provider is not removing already.
func (d *decider) staying() int32 {
	n := int32(0)
	for i := range d.instances {
		if !d.instances[i].Going {
			n++
		}
	}
	return n
}

// surplus is how many instances we have to choose to go: none while the provider
// owns the size, which is what is wanted then.
func (d *decider) surplus() int {
	if !d.o.Features.DeleteInstances {
		return 0
	}
	target := min(max(0, d.o.Group.Target), d.staying())
	return int(max(0, target-d.wanted()))
}
