package safety

import (
	"cmp"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/internal/times"
)

// DecideOwnerless decides which machines and sets have lost their owner and are to be deleted. It
// changes none of its arguments, and returns the same plan for the same arguments. Only a caller's
// mistake is an error.
//
// An object is deleted if two live reads, OwnerGap apart, have shown it with the same owner, by
// UID, and have not shown that owner. The policy's brake limits how many go within an OwnerPeriod.
// Objects without an owner, or with one of another kind, are ignored.
func DecideOwnerless(o *OwnerlessObservation, p *Policy, now time.Time) (OwnerlessPlan, error) {
	if o == nil {
		return OwnerlessPlan{}, ErrNoObservation
	}
	if err := p.Validate(); err != nil {
		return OwnerlessPlan{}, err
	}
	d := bereavement{o: o, p: p, now: now}
	d.limit = newLimit(p, o.Spent, len(o.Machines)+len(o.Sets), !now.Before(o.Began.Add(p.OwnerPeriod)), p.OwnerPeriod, now)
	plan := d.decide()
	plan.Spent = d.limit.Orders()
	return plan, nil
}

// bereavement is one call of DecideOwnerless.
type bereavement struct {
	o     *OwnerlessObservation
	p     *Policy
	now   time.Time
	limit *limit

	suspects []DeleteOwnerless
	held     int64
}

func (d *bereavement) decide() OwnerlessPlan {
	if d.o.Frozen {
		return OwnerlessPlan{Sightings: d.o.Sightings, At: d.now.Add(d.p.CheckPeriod), Why: decision.Why{Reason: reasonOwnersFrozen}}
	}
	d.suspect()
	if len(d.suspects) == 0 {
		return OwnerlessPlan{At: d.now.Add(d.p.OwnerPeriod), Why: decision.Why{Reason: reasonAllOwned}}
	}
	if !d.o.Read.Live() {
		return d.read()
	}
	sightings := d.remember()
	if orders := d.doom(sightings); len(orders) > 0 {
		return OwnerlessPlan{Delete: orders, Sightings: sightings, Warn: d.warnings(), Why: orders[0].Why}
	}
	return d.rest(sightings)
}

// suspect finds objects whose owner is not there, machines first.
func (d *bereavement) suspect() {
	sets := make(map[string]bool, len(d.o.Sets))
	for _, s := range d.o.Sets {
		if s != nil {
			sets[s.UID] = true
		}
	}
	for _, m := range d.o.Machines {
		if m != nil && d.bereft(&m.Meta, machineset.OwnerKind, sets) {
			d.add(&m.Meta, false, reasonSetGone)
		}
	}
	if d.o.NoDeployments {
		return
	}
	deployments := make(map[string]bool, len(d.o.Deployments))
	for _, top := range d.o.Deployments {
		if top != nil {
			deployments[top.UID] = true
		}
	}
	for _, s := range d.o.Sets {
		if s != nil && d.bereft(&s.Meta, deployment.OwnerKind, deployments) {
			d.add(&s.Meta, true, reasonDeploymentGone)
		}
	}
}

func (d *bereavement) bereft(m *object.Meta, kind string, owners map[string]bool) bool {
	return m.UID != "" && !m.Deleted() && !d.o.Ordered[m.UID] &&
		m.Owner != nil && m.Owner.Kind == kind && m.Owner.UID != "" && !owners[m.Owner.UID]
}

func (d *bereavement) add(m *object.Meta, set bool, reason decision.Reason) {
	d.suspects = append(d.suspects, DeleteOwnerless{
		Set: set, Key: m.Key, UID: m.UID, Owner: *m.Owner, Why: decision.Why{Reason: reason, Name: m.Name, Detail: m.Owner.Name},
	})
}

// read asks for a live read, unless the last one was a moment ago. Without that pause, caches that
// lag behind would cause one live read after the other.
func (d *bereavement) read() OwnerlessPlan {
	n := int64(len(d.suspects))
	plan := OwnerlessPlan{Sightings: d.o.Sightings}
	if at := d.o.Looked.Add(d.p.OwnerGap); !d.o.Looked.IsZero() && !d.o.Looked.After(d.now) && d.now.Before(at) {
		plan.At, plan.Why = at, decision.Why{Reason: reasonOwnerSecond, Have: n, For: at.Sub(d.now)}
		return plan
	}
	plan.Read, plan.Why = true, decision.Why{Reason: reasonReadAll, Have: n}
	return plan
}

// remember returns the sightings to keep, by UID.
func (d *bereavement) remember() []Bereft {
	before := make(map[string]Bereft, len(d.o.Sightings))
	for _, s := range d.o.Sightings {
		if !s.Since.After(d.now) {
			before[s.UID] = s
		}
	}
	kept := make([]Bereft, 0, len(d.suspects))
	for i := range d.suspects {
		s := Bereft{UID: d.suspects[i].UID, Owner: d.suspects[i].Owner.UID, Since: d.o.Read.Began}
		if seen, yes := before[s.UID]; yes && seen.Owner == s.Owner {
			s.Since = seen.Since
		}
		kept = append(kept, s)
	}
	slices.SortStableFunc(kept, func(a, b Bereft) int { return cmp.Compare(a.UID, b.UID) })
	return slices.CompactFunc(kept, func(a, b Bereft) bool { return a.UID == b.UID })
}

// doom orders the deletion of objects that were seen twice, as far as the brake allows.
func (d *bereavement) doom(sightings []Bereft) []DeleteOwnerless {
	since := make(map[string]time.Time, len(sightings))
	for _, s := range sightings {
		since[s.UID] = s.Since
	}
	var orders []DeleteOwnerless
	for i := range d.suspects {
		s := &d.suspects[i]
		switch {
		case !d.o.Read.Covers(since[s.UID].Add(d.p.OwnerGap)) || len(orders) == d.p.Burst:
		case !d.limit.Take(s.UID):
			d.held++
		default:
			orders = append(orders, *s)
		}
	}
	return orders
}

func (d *bereavement) warnings() []decision.Why {
	if d.held == 0 {
		return nil
	}
	return []decision.Why{{Reason: reasonOwnersBraked, Have: d.held, Want: int64(d.limit.Most), For: d.p.OwnerPeriod}}
}

// rest waits for the second live read, or until the brake lets more go.
func (d *bereavement) rest(sightings []Bereft) OwnerlessPlan {
	at := d.now.Add(d.p.OwnerPeriod)
	for _, s := range sightings {
		due := s.Since.Add(d.p.OwnerGap)
		if !d.limit.Counts(s.UID) {
			due = times.Later(due, d.limit.FreeAt())
		}
		at = times.Earlier(at, due)
	}
	at = times.Later(at, d.o.Read.Began.Add(d.p.OwnerGap))
	plan := OwnerlessPlan{
		Sightings: sightings, Warn: d.warnings(), At: at,
		Why: decision.Why{Reason: reasonOwnerSecond, Have: int64(len(sightings)), For: at.Sub(d.now)},
	}
	if len(plan.Warn) > 0 {
		plan.Why = plan.Warn[0]
	}
	return plan
}
