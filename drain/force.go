package drain

import (
	"time"

	"github.com/millwright-go/millwright/decision"
)

// force deletes every pod with grace 0, at once. It waits for no budget, no volume and no pod, and
// ends when the deletions were accepted, or after its bound.
func (d *decider) force() Plan {
	bound := d.rec.Forced.Add(d.p.ForceBound)
	if d.o.WriteFailed {
		bound = d.now // nothing that a later process could count from
	}
	due, failed := d.kills(bound)
	if len(due) > 0 {
		d.byName(due)
		return d.orders(due, true)
	}
	n := d.o.Node
	switch {
	case failed == 0 && d.o.Complete:
		return Plan{Done: true, Why: decision.Why{Reason: reasonForced, Name: n.Name}}
	case !d.now.Before(bound):
		return Plan{Done: true, Why: decision.Why{Reason: reasonForceEnded, Name: n.Name, Have: failed, For: d.p.ForceBound}}
	}
	d.lookAgain(bound)
	why := decision.Why{Reason: reasonIncomplete}
	if p := d.resisting(); p != nil {
		why = decision.Why{Reason: reasonFailed, Object: p.Key, Detail: d.o.Memory.answer(p.UID).Message, For: max(d.at.Sub(d.now), 0)}
	}
	return Plan{At: d.at, Why: why, Warn: d.warned}
}

// resisting returns the first pod, by its key, whose deletion was not accepted. Nil: there is none.
func (d *decider) resisting() (first *Pod) {
	for _, p := range d.o.Pods {
		if p == nil || d.spared(p) {
			continue
		}
		a := d.o.Memory.answer(p.UID)
		if a.Kind == Killed && a.Result != NotFound && a.Result != Accepted && (first == nil || p.Key.String() < first.Key.String()) {
			first = p
		}
	}
	return first
}

// kills returns the deletions that are due, and the number of those that were not accepted. Each is
// tried at least once, regardless of the bound. Only pods that came after the drain began are not:
// there may be another one each time.
func (d *decider) kills(bound time.Time) (due []int32, failed int64) {
	d.standings = make([]standing, len(d.o.Pods))
	for i, p := range d.o.Pods {
		if p == nil || p.UID == "" || d.spared(p) {
			continue
		}
		a := d.o.Memory.answer(p.UID)
		if a.Result == NotFound || a.Kind == Killed && a.Result == Accepted {
			continue
		}
		if a.Kind != Killed && d.late(p) && !d.now.Before(bound) {
			failed++
			continue
		}
		if a.Kind == Killed {
			again := a.At.Add(d.p.RetryDelete)
			if d.now.Before(again) || !d.now.Before(bound) {
				failed++
				d.lookAgain(again)
				continue
			}
		}
		d.standings[i].doing = reasonForce
		due = append(due, int32(i))
	}
	return due, failed
}

// spared reports whether even force leaves a pod alone: static pods, pods of daemon sets, pods that
// a rule skips, and those that would come back.
func (d *decider) spared(p *Pod) bool {
	if _, left := d.leftAlone(p); left || p.ToleratesCordon && d.late(p) || d.keepsComing(p) {
		return true
	}
	rule := d.p.rule(p)
	return rule != nil && rule.Behaviour == Skip
}
