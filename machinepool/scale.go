package machinepool

import "github.com/millwright-go/millwright/decision"

// scale brings the group to the wanted size. If the driver can remove chosen instances, they leave
// by name (leave). Otherwise the provider chooses.
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
		to = max(wanted, d.staying()) // what is not there yet need not be made
		if target <= to {
			return Plan{}, false
		}
	}
	if !d.o.Looked {
		return d.ask(), true
	}
	return d.order(ScalePool, ScaleGroup{To: to}, decision.Why{Reason: reasonScale, Count: int64(target), All: int64(to)}), true
}

// staying returns how many instances the provider is not removing already.
func (d *decider) staying() int32 {
	n := int32(0)
	for i := range d.instances {
		if !d.instances[i].Going {
			n++
		}
	}
	return n
}

// surplus returns how many instances the library has to choose to remove. It is zero while the
// provider owns the size, because that size is then wanted.
func (d *decider) surplus() int {
	if !d.o.Features.DeleteInstances {
		return 0
	}
	target := min(max(0, d.o.Group.Target), d.staying())
	return int(max(0, target-d.wanted()))
}
