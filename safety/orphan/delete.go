package orphan

import (
	"cmp"
	"slices"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/safety/internal/brake"
)

// planDeletions orders the deletion of VMs that were seen twice, as far as the brake allows. VMs
// with the fewest tries come first, so that VMs that can't be deleted do not block others.
func (d *decider) planDeletions() []Delete {
	var due []*suspect
	for i := range d.suspects {
		s := &d.suspects[i]
		twice := !s.since.IsZero() && !s.class.Listing.Asked.Before(s.since.Add(d.p.OrphanGap))
		if twice && !d.o.Deleted[s.id] && !d.now.Before(d.retryAt(s.id)) {
			due = append(due, s)
		}
	}
	slices.SortStableFunc(due, func(a, b *suspect) int { return cmp.Compare(d.tried(a.id), d.tried(b.id)) })
	var orders []Delete
	for _, s := range due {
		if len(orders) == d.p.Burst {
			break
		}
		if !d.brake.Take(s.id) {
			d.held++
			continue
		}
		orders = append(orders, Delete{
			Class: s.class.Key, ProviderID: s.id, Name: s.name, Several: s.reason == reasonSeveral,
			Why: decision.Why{Reason: s.reason, Name: s.id, Detail: s.name}, paused: d.p.Keys.Paused,
		})
	}
	if d.held > 0 {
		d.warn = append(d.warn, d.braked())
	}
	return orders
}

// tried returns how often in a row the delete of a VM has failed.
func (d *decider) tried(id string) int {
	if t := d.tries[id]; t != nil {
		return t.Failures
	}
	return 0
}

func (d *decider) braked() decision.Why {
	return decision.Why{Reason: reasonBraked, Have: d.held, Want: int64(d.brake.Most), For: brake.Period(d.p.OrphanPeriod)}
}

// listed returns how many VMs the largest listing has named. Classes may list the same VMs, so
// their numbers can't be added.
func (d *decider) listed() int {
	most := 0
	for _, c := range d.classes {
		n := c.Listed
		if c.Listing != nil && c.Listing.Code == codes.OK {
			n = len(c.Listing.VMs)
		}
		most = max(most, n)
	}
	return most
}

// emptyStore reports whether nothing in the store proves that it is the right store.
func (d *decider) emptyStore() bool {
	if d.p.OrphansOfEmptyStore || d.o.Owners > 0 {
		return false
	}
	return !slices.ContainsFunc(d.o.Machines, func(m *machine.Machine) bool { return m != nil }) &&
		!slices.ContainsFunc(d.o.Pools, func(p *machinepool.Pool) bool { return p != nil })
}
