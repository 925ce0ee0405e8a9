package drain

import (
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// A pod that is told to go may come back: its controller makes another, and if that one tolerates
// the cordon, the scheduler may bind it to this very node. So the drain tells pods that were made
// after it began to go in few rounds, and then leaves them alone, as those of a daemon set. All
// times that are compared here are of the cluster's clock.

const (
	// latestRounds is how often the drain tells those pods of a controller to go that came in spite
	// of the cordon: they were just being bound, or somebody uncordoned the node for a moment.
	latestRounds = 3
	// toleratingRounds is the same for pods that tolerate the cordon, which come back each time.
	toleratingRounds = 1
	// mostReturning is how many controllers the record counts rounds of. The late pods of others are
	// left alone.
	mostReturning = 32
)

// late reports whether a pod was made after the drain began.
func (d *decider) late(p *Pod) bool { return madeAfter(p, d.rec.Youngest) }

// madeAfter compares with a time that was stored, in whole seconds.
func madeAfter(p *Pod, t time.Time) bool { return p.CreatedAt.Truncate(time.Second).After(t) }

// youngest returns when the youngest pod here was made. Zero: there is none.
func (d *decider) youngest() (at time.Time) {
	for _, p := range d.o.Pods {
		if p != nil && madeAfter(p, at) {
			at = p.CreatedAt.Truncate(time.Second)
		}
	}
	return at
}

// controllerOf returns what makes another pod when p is gone. All pods of a namespace
// that have no controller count as those of one.
func controllerOf(p *Pod) string {
	if p.Owner != nil && p.Owner.UID != "" {
		return p.Owner.UID
	}
	return "namespace " + p.Namespace
}

// roundsOf returns what a record says of the controller of a pod.
func roundsOf(rec *machine.DrainRecord, p *Pod) machine.DrainReturn {
	controller := controllerOf(p)
	i := slices.IndexFunc(rec.Returns, func(r machine.DrainReturn) bool { return r.Controller == controller })
	if i < 0 {
		return machine.DrainReturn{Controller: controller}
	}
	return rec.Returns[i]
}

// keepsComing reports whether a pod is left alone because it came late, as others of its controller
// did that were told to go.
func (d *decider) keepsComing(p *Pod) bool {
	if !d.late(p) {
		return false
	}
	r, limit := roundsOf(d.rec, p), int32(latestRounds)
	switch {
	case !madeAfter(p, r.Youngest): // of a round that was counted
		return false
	case p.ToleratesCordon:
		limit = toleratingRounds
	}
	return r.Rounds >= limit || r.Rounds == 0 && len(d.rec.Returns) >= mostReturning
}

// countRounds records a round of each controller that has late pods among those to be told to go.
// That is stored before they are told.
func (d *decider) countRounds(places []int32) Plan {
	rec := d.rec.Clone()
	var first *Pod
	for _, i := range places {
		p := d.o.Pods[i]
		r := roundsOf(rec, p)
		if !d.late(p) || !madeAfter(p, r.Youngest) {
			continue
		}
		if first == nil {
			first = p
		}
		rec.Returns = slices.DeleteFunc(rec.Returns, func(old machine.DrainReturn) bool { return old.Controller == r.Controller })
		rec.Returns = append(rec.Returns, d.nextRound(r))
	}
	if first == nil {
		return Plan{}
	}
	slices.SortFunc(rec.Returns, func(a, b machine.DrainReturn) int { return strings.Compare(a.Controller, b.Controller) })
	return d.writeRecord(rec, decision.Why{Reason: reasonCame, Object: first.Key})
}

// nextRound counts one more round, of all the controller's pods that are here now.
func (d *decider) nextRound(r machine.DrainReturn) machine.DrainReturn {
	r.Rounds++
	for _, p := range d.o.Pods {
		if p != nil && madeAfter(p, r.Youngest) && controllerOf(p) == r.Controller {
			r.Youngest = p.CreatedAt.Truncate(time.Second)
		}
	}
	return r
}
