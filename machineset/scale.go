package machineset

import (
	"strconv"
)

// scale creates machines that are missing, once removeSurplus has nothing to do. Names
// of an open reservation are used before new ones.
func (d *decider) scale() (Plan, bool) {
	short := d.withinQuota(d.withinBackoff(d.short()))
	if d.s.Instructions.Reservation.Reserved > d.s.Instructions.Reservation.Settled {
		return d.finish(short)
	}
	return d.reserve(short)
}

// short returns how many machines are missing; negative: how many active ones are
// surplus. Machines that are moving to this set are not missing, and neither are
// failed ones that stay for now. They do not make others surplus, because it is not
// known yet whether they come, or stay.
func (d *decider) short() int {
	short := d.wanted() + d.extra() - d.summary.active
	if short <= 0 {
		return short
	}
	return max(0, short-d.summary.arriving-d.staying())
}

// withinQuota returns how many of the missing machines may be created. Under a strict
// quota they wait until terminating machines are gone.
func (d *decider) withinQuota(short int) int {
	room := d.wanted() + d.extra() - d.summary.owned - d.summary.arriving
	if !d.p.StrictQuota || short <= max(0, room) {
		return short
	}
	d.waiting = d.tally(reasonQuota)
	d.waiting.Count = int64(d.summary.owned - d.summary.active)
	return max(0, room)
}

// mayCreate reports whether creations are allowed at all, and notes why not.
func (d *decider) mayCreate() bool {
	switch {
	case d.o.Frozen:
		d.waiting = d.tally(reasonFrozen)
		return false
	case d.closed():
		d.waiting = d.tally(reasonClosed)
		return false
	case d.scaleUpDisabled():
		d.waiting = d.tally(reasonDisabled)
		d.waiting.Name = d.p.Keys.ScaleUpDisabled
		return false
	}
	return d.o.Refused.Create == nil
}

func (d *decider) scaleUpDisabled() bool {
	key := d.p.Keys.ScaleUpDisabled
	if key == "" {
		return false
	}
	disabled, err := strconv.ParseBool(d.s.Labels[key])
	return err == nil && disabled
}
