package deployment

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// situation is what one call of Decide is given, and what all parts of the decision share: whether
// orders are held, and when to decide again.
type situation struct {
	o          *Observation
	p          *Policy
	deployment *Deployment
	now        time.Time

	hold decision.Why // why no more orders are given; zero: they are
	wake time.Time    // the earliest of the known future events; zero: none
}

func (d *situation) available(m *machine.Machine) bool {
	return m.Ready() && !m.Preserved(d.now) && !m.AvailableAt(d.minReady()).After(d.now)
}

// minReady is how long a machine must be ready to count as available.
func (d *situation) minReady() time.Duration {
	if d.p.IgnoreMinReady {
		return 0
	}
	return d.deployment.Spec.MinReady
}

func (d *situation) owner() *object.Owner {
	return &object.Owner{Kind: OwnerKind, Name: d.deployment.Name, UID: d.deployment.UID}
}

// live passes on a plan that was made from a live read, and asks for one otherwise. It guards
// everything that can't be undone. Orders that spend availability, or delete, need a fresh read:
// each write is guarded by the version of one set or machine, and not by those of the others that
// it was decided on.
func (d *situation) live(plan Plan) Plan {
	bound := len(plan.Scale)+len(plan.Mark)+len(plan.Delete) > 0
	if d.o.Read.Live() && (!bound || d.o.Read.Within(machineset.DeleteWithin, d.now)) {
		if bound {
			plan.Until = d.o.Read.Until(machineset.DeleteWithin, d.now)
		}
		return plan
	}
	return Plan{ReadLive: true, Why: decision.Why{Reason: reasonReadLive, Name: plan.Why.Reason.String()}}
}

// holdIfRefused gives no more orders in a pass in which one was refused, nor in later passes before
// the time has come. An event that wakes the deployment earlier, such as its own status, does not
// shorten the wait.
func (d *situation) holdIfRefused() {
	switch {
	case d.o.Failed != nil:
		d.holdUntil(d.o.Failed, d.now.Add(d.p.Retry.Backoff(d.o.Failures, 0)))
	case d.o.Refused != nil && d.now.Before(d.o.Refused.Until):
		d.holdUntil(&d.o.Refused.Outcome, d.o.Refused.Until)
	}
}

func (d *situation) holdUntil(refused *machine.Outcome, at time.Time) {
	d.hold = decision.Why{Reason: reasonOrderRefused, Code: refused.Code, Detail: refused.Message, For: at.Sub(d.now)}
	d.lookAt(at)
}

// held reports whether no more orders are given.
func (d *situation) held() bool { return d.hold.Reason != (decision.Reason{}) }

// lookAt makes t the time of the next decision unless an earlier one is known.
func (d *situation) lookAt(t time.Time) {
	if d.wake.IsZero() || t.Before(d.wake) {
		d.wake = t
	}
}

// rest plans the next decision for the next known event, or after Resync if there is none.
func (d *situation) rest(why, warn decision.Why) Plan {
	d.lookAt(d.now.Add(d.p.Resync))
	return Plan{At: d.wake, Why: why, Warn: warn}
}

// stamp returns now as stores keep it.
func (d *situation) stamp() time.Time { return d.now.Truncate(time.Second) }

func (d *situation) wanted(s *machineset.Set) bool {
	return d.p.Wants(d.deployment, s)
}

// statusAt returns the moment from which on the status may be written that long after its last
// write. Zero: at any time. A last write in the future means that the clock was set back since.
func (d *situation) statusAt(interval time.Duration) time.Time {
	last := d.o.StatusWritten
	if last.IsZero() || last.After(d.now) {
		return time.Time{}
	}
	return last.Add(interval)
}
