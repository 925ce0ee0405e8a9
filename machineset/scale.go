package machineset

import "github.com/millwright-go/millwright/decision"

// counted is a situation whose machines are counted: how many are missing, or too many.
type counted struct {
	situation
	summary summary
}

// preservation is the part that keeps failed machines.
func (d *counted) preservation() preservation {
	return preservation{&d.situation, &d.summary.preserving}
}

// short returns how many machines are missing; negative: how many active ones are
// surplus. Machines that are moving to this set are not missing, and neither are
// failed ones that stay for now. They do not make others surplus, because it is not
// known yet whether they come, or stay.
func (d *counted) short() int {
	short := d.wanted() + d.extra() - d.summary.active
	if short <= 0 {
		return short
	}
	return max(0, short-d.summary.arriving-d.staying())
}

// mayCreate reports whether creations are allowed at all, and notes why not.
func (d *counted) mayCreate() bool {
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
	if bad := d.s.Spec.Template.InvalidEntry(); bad != nil {
		d.waiting = decision.Why{Reason: reasonSpecInvalid, Name: bad.Field, Detail: bad.Problem}
		return false
	}
	return d.o.Refused.Create == nil
}

// staying is how many failed machines stay for now: it is undecided which of them
// are kept, or their deletion was refused, or its answer lost. None is made in their
// place.
func (d *counted) staying() int {
	if d.preservation().undecided() || d.o.Refused.Delete != nil {
		return d.summary.failed
	}
	return 0
}

// extra is how many machines there should be beyond the set's size, to take the
// place of others.
func (d *counted) extra() int { return min(d.summary.requests.count, int(d.surgeAllowance().Surge)) }

// removable is how many machines of a surplus may be deleted now.
func (d *counted) removable(surplus int) int {
	c := &d.summary
	n := min(surplus-c.spared.idle, c.active-c.spared.count)
	if n < surplus {
		d.waiting = d.kept(surplus - max(n, 0))
	}
	return max(n, 0)
}

// kept is the reason why n machines stay that would go.
func (d *counted) kept(n int) decision.Why {
	why := d.tally(reasonSpared)
	why.Name, why.Count = d.summary.spared.first, int64(n)
	return why
}

// tally is a reason with the numbers of machines.
func (d *counted) tally(reason decision.Reason) decision.Why {
	c := &d.summary
	return decision.Why{
		Reason: reason, Have: int64(c.active), Want: int64(d.wanted()),
		Ready: int64(c.ready), Available: int64(c.available),
	}
}

// tallyOf is a reason with the numbers of machines, and n of those it is about.
func (d *counted) tallyOf(reason decision.Reason, n int) decision.Why {
	why := d.tally(reason)
	why.Count = int64(n)
	return why
}
