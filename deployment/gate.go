package deployment

import (
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machineset"
)

// gate keeps old sets from creating machines while theirs are updated in place. It opens sets that
// were closed for that, or when machines were given back to them. A closed set's size may be larger
// than what it has, because other sets may have replaced the rest already. So it is opened at what
// it has, in the same write. A paused set stays closed, because it keeps its size. If another
// manager has labelled the current set to make no machines, gate removes the label.
func (d inPlace) gate() (Plan, bool) {
	if d.held() {
		return Plan{}, false
	}
	var plan Plan
	for i := range d.sets {
		f := &d.sets[i]
		why := decision.Why{Reason: reasonOpen, Name: f.set.Name}
		closed, barred := d.closes(f), f == d.current && d.barred(f.set)
		switch {
		case closed && f == d.current:
			why.Reason = reasonCloseStopped
		case closed:
			why.Reason = reasonClose
		}
		if f.set.Deleted() || f.set.Instructions.Handover.Closed == closed && !barred || !d.mayGate(f, closed) {
			continue
		}
		changed, write := f.set.Clone(), setWrite{d.summary, f}
		if barred {
			changed.Labels = withoutEntry(changed.Labels, d.p.Keys.ScaleUpDisabled)
		}
		changed.Instructions.Handover.Closed, changed.Instructions.Marks, changed.Instructions.SurgeAllowance = closed, write.marks(), write.surgeAllowance()
		if !closed {
			changed.Spec.Replicas -= int32(f.vacant())
		}
		if f == d.current {
			changed.Revision = d.revision
		}
		plan.Push = append(plan.Push, Order{changed, why})
	}
	if len(plan.Push) == 0 {
		return Plan{}, false
	}
	plan.Why = plan.Push[0].Why
	return plan, true
}

// closes reports whether a set is to create no machines: an old one while its machines are updated
// in place, and the new one while a rolling update is stopped.
func (d inPlace) closes(f *family) bool {
	if f != d.current {
		return d.updatesInPlace()
	}
	return d.stopped() && d.deployment.Spec.Strategy.Kind != InPlaceUpdate
}

// mayGate reports whether a set may be closed or opened. An empty one need not be closed: it makes none.
func (d inPlace) mayGate(f *family, closed bool) bool {
	if closed {
		return f.size() != 0
	}
	return d.mayOpen(f)
}

// barred reports whether another manager has labelled a set so that it makes no
// machines. It does so to old sets, and leaves the label there.
func (d inPlace) barred(s *machineset.Set) bool {
	_, labelled := s.Labels[d.p.Keys.ScaleUpDisabled]
	return labelled && d.p.Keys.ScaleUpDisabled != ""
}

// mayOpen reports whether a closed set may be opened. An old set that was raised must have observed
// that: until then it may be deleting machines that it would create again.
func (d inPlace) mayOpen(f *family) bool {
	return !f.paused && (f == d.current || f.actsOn(d.p.Keys.RaisedFrom) >= f.size())
}
