package ownerless

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/internal/brake"
	"github.com/millwright-go/millwright/safety/internal/times"
)

// Decide decides which machines and sets have lost their owner and are to be deleted. It changes
// none of its arguments, and returns the same plan for the same arguments. Only a caller's mistake
// is an error.
//
// An object is deleted after two live reads, at least OwnerGap apart, in which it names the same owner, by
// UID, and that owner is not there. The policy's brake limits how many are deleted within an
// OwnerPeriod. Objects without an owner, or with one of another kind, are ignored.
func Decide(o *Observation, p *safety.Policy, now time.Time) (Plan, error) {
	if o == nil {
		return Plan{}, fmt.Errorf("ownerless.Decide: %w", decision.ErrNoObservation)
	}
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	p = p.WithDefaults()
	d := decider{o: o, p: p, now: now}
	d.brake = brake.New(p, o.Spent, len(o.Machines)+len(o.Sets), !now.Before(o.Began.Add(p.OwnerPeriod)), p.OwnerPeriod, now)
	plan := d.decide()
	plan.Spent = d.brake.Orders()
	return plan, nil
}

// decider is one call of Decide.
type decider struct {
	o     *Observation
	p     *safety.Policy
	now   time.Time
	brake *brake.Brake

	suspects []Delete
	heldBack int64
}

func (d *decider) decide() Plan {
	if d.o.Frozen {
		return Plan{Candidates: d.o.Candidates, At: d.now.Add(d.p.CheckPeriod), Why: decision.Why{Reason: reasonFrozen}}
	}
	d.findSuspects()
	if len(d.suspects) == 0 {
		return Plan{At: d.now.Add(d.p.OwnerPeriod), Why: decision.Why{Reason: reasonAllOwned}}
	}
	if !d.o.Read.Live() {
		return d.read()
	}
	candidates := d.keepCandidates()
	if orders := d.planDeletions(candidates); len(orders) > 0 {
		return Plan{Delete: orders, Candidates: candidates, Warn: d.warnings(), Why: orders[0].Why}
	}
	return d.waitForNext(candidates)
}

// findSuspects finds objects whose owner is missing in the observation, machines first.
func (d *decider) findSuspects() {
	sets := make(map[string]bool, len(d.o.Sets))
	for _, s := range d.o.Sets {
		if s != nil {
			sets[s.UID] = true
		}
	}
	for _, m := range d.o.Machines {
		if m != nil && d.lostOwner(&m.Meta, machineset.OwnerKind, sets) {
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
		if s != nil && d.lostOwner(&s.Meta, deployment.OwnerKind, deployments) {
			d.add(&s.Meta, true, reasonDeploymentGone)
		}
	}
}

func (d *decider) lostOwner(m *object.Meta, kind string, owners map[string]bool) bool {
	return m.UID != "" && !m.Deleted() && !d.o.Ordered[m.UID] &&
		m.Owner != nil && m.Owner.Kind == kind && m.Owner.UID != "" && !owners[m.Owner.UID]
}

func (d *decider) add(m *object.Meta, set bool, reason decision.Reason) {
	d.suspects = append(d.suspects, Delete{
		Set: set, Key: m.Key, UID: m.UID, Owner: *m.Owner, Why: decision.Why{Reason: reason, Name: m.Name, Detail: m.Owner.Name},
	})
}

// read asks for a live read, unless the last one was less than OwnerGap ago. Otherwise caches that lag behind
// would cause one live read after the other.
func (d *decider) read() Plan {
	n := int64(len(d.suspects))
	plan := Plan{Candidates: d.o.Candidates}
	if at := d.o.Looked.Add(d.p.OwnerGap); !d.o.Looked.IsZero() && !d.o.Looked.After(d.now) && d.now.Before(at) {
		plan.At, plan.Why = at, decision.Why{Reason: reasonOwnerSecond, Have: n, For: at.Sub(d.now)}
		return plan
	}
	plan.Read, plan.Why = true, decision.Why{Reason: reasonReadAll, Have: n}
	return plan
}

// keepCandidates returns the candidates for the next plan, sorted by UID.
func (d *decider) keepCandidates() []Candidate {
	before := make(map[string]Candidate, len(d.o.Candidates))
	for _, s := range d.o.Candidates {
		if !s.Since.After(d.now) {
			before[s.UID] = s
		}
	}
	kept := make([]Candidate, 0, len(d.suspects))
	for i := range d.suspects {
		s := Candidate{UID: d.suspects[i].UID, Owner: d.suspects[i].Owner.UID, Since: d.o.Read.Began}
		if seen, yes := before[s.UID]; yes && seen.Owner == s.Owner {
			s.Since = seen.Since
		}
		kept = append(kept, s)
	}
	slices.SortStableFunc(kept, func(a, b Candidate) int { return cmp.Compare(a.UID, b.UID) })
	return slices.CompactFunc(kept, func(a, b Candidate) bool { return a.UID == b.UID })
}

// planDeletions orders the deletion of objects that two live reads have shown without their owner, as far as the
// brake allows.
func (d *decider) planDeletions(candidates []Candidate) []Delete {
	since := make(map[string]time.Time, len(candidates))
	for _, s := range candidates {
		since[s.UID] = s.Since
	}
	var orders []Delete
	for i := range d.suspects {
		s := &d.suspects[i]
		switch {
		case !d.o.Read.Covers(since[s.UID].Add(d.p.OwnerGap)) || len(orders) == d.p.Burst:
		case !d.brake.Take(s.UID):
			d.heldBack++
		default:
			orders = append(orders, *s)
		}
	}
	return orders
}

func (d *decider) warnings() []decision.Why {
	if d.heldBack == 0 {
		return nil
	}
	return []decision.Why{{Reason: reasonOwnersBraked, Have: d.heldBack, Want: int64(d.brake.Most), For: d.p.OwnerPeriod}}
}

// waitForNext waits for the second live read, or until the brake allows more deletions.
func (d *decider) waitForNext(candidates []Candidate) Plan {
	at := d.now.Add(d.p.OwnerPeriod)
	for _, s := range candidates {
		due := s.Since.Add(d.p.OwnerGap)
		if !d.brake.Counts(s.UID) {
			due = times.Later(due, d.brake.FreeAt())
		}
		at = times.Earlier(at, due)
	}
	at = times.Later(at, d.o.Read.Began.Add(d.p.OwnerGap))
	plan := Plan{
		Candidates: candidates, Warn: d.warnings(), At: at,
		Why: decision.Why{Reason: reasonOwnerSecond, Have: int64(len(candidates)), For: at.Sub(d.now)},
	}
	if len(plan.Warn) > 0 {
		plan.Why = plan.Warn[0]
	}
	return plan
}

// The reasons of decisions about machines and sets whose owner is gone.
var (
	reasonFrozen         = decision.NewReason("Frozen", "frozen: nothing is judged")
	reasonReadAll        = decision.NewReason("ReadAll", "{have} machines or sets seem to have lost their owner: reading all live")
	reasonSetGone        = decision.NewReason("SetGone", "machine {name} belongs to set {detail}, which is gone")
	reasonDeploymentGone = decision.NewReason("DeploymentGone", "set {name} belongs to deployment {detail}, which is gone")
	reasonOwnerSecond    = decision.NewReason("SecondLookForOwner", "{have} machines or sets have lost their owner: looking again in {for} before any is deleted")
	reasonOwnersBraked   = decision.NewReason("TooManyOwnerless", "{have} more machines or sets whose owner is gone are held back, since only {want} may go in {for}: if they are in "+
		"use, stop this manager and check that it reads all sets and deployments; if not, they are deleted a few at a time")
	reasonAllOwned = decision.NewReason("AllOwned", "every machine and every set has its owner, or needs none")
)
