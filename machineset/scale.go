package machineset

import (
	"strconv"
)

// scale creates machines that are missing, once removeSurplus has nothing to do.
// What a reservation left open is done first: its names before new ones.
func (d *decider) scale() (Plan, bool) {
	short := d.withinQuota(d.withinBackoff(d.short()))
	if d.s.Instructions.Reservation.Reserved > d.s.Instructions.Reservation.Settled {
		return d.finish(short)
	}
	return d.reserve(short)
}

// short is how many machines are missing; negative: so many active ones are too
// many. Those on their way here are not missing, nor failed ones that stay
// for now. They make none of the others too many: it is not known
// yet that they come, or stay.
func (d *decider) short() int {
	short := d.wanted() + d.extra() - d.summary.active
	if short <= 0 {
		return short
	}
	return max(0, short-d.summary.arriving-d.staying())
}

// withinQuota is how many of the missing machines may be made. Under a strict
// quota they wait until those that are being deleted are gone.
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
