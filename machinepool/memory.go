package machinepool

import (
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// A provider's answer may be wrong for a moment: a replica of its database that lags answers that a
// group does not exist, or lists none of its instances. So a group or an instance that is recorded is
// given up only after two answers without it, some time apart.

// Memory is what a process remembers of the answers about one pool's group. Losing it costs time
// only. The zero Memory remembers nothing.
type Memory struct {
	// Missed is when an answer first lacked an instance that the pool's spec names, by provider ID, if
	// each answer since lacked it too.
	Missed map[string]time.Time
	// Gone is when an answer first was NOT_FOUND, if each answer since was. Zero: the last was not.
	Gone time.Time
}

// See must be called with each answer to GetGroup, and the pool it is about, before the decision on
// that answer. Errors other than NOT_FOUND say nothing of the group, and change nothing.
func (m *Memory) See(p *Pool, g *Group) {
	switch g.Code {
	case codes.OK:
		m.Gone = time.Time{}
	case codes.NotFound:
		if m.Gone.IsZero() || m.Gone.After(g.At) {
			m.Gone = g.At
		}
		return
	default:
		return
	}
	listed := make(map[string]bool, len(g.Instances))
	for i := range g.Instances {
		listed[g.Instances[i].ProviderID] = true
	}
	missed := make(map[string]time.Time)
	for _, id := range p.Spec.ProviderIDs {
		if listed[id] {
			continue
		}
		missed[id] = g.At
		if before, again := m.Missed[id]; again && before.Before(g.At) {
			missed[id] = before
		}
	}
	m.Missed = missed
}

// missing returns the recorded instances that the answer lacks and that are not given up yet, sorted.
// Nil if there are none.
func (d *decider) missing() (ids []string) {
	for _, id := range d.s.Spec.ProviderIDs {
		if _, listed := d.instance(id); id != "" && !listed && !d.gaveUp(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// gaveUp reports whether two answers, Policy.Poll apart, lacked an instance.
func (d *decider) gaveUp(id string) bool {
	if d.o.Memory == nil {
		return false
	}
	since, missed := d.o.Memory.Missed[id]
	return missed && d.o.Group.At.Sub(since) >= d.p.Poll
}

// doubted reports whether the answer is that there is no group, though one is recorded, and that is
// not believed yet: it takes two answers, Policy.Period apart.
func (d *decider) doubted() bool {
	ids := d.s.Spec.ProviderIDs
	if d.o.Group == nil || d.o.Group.Code != codes.NotFound || d.s.Status.GroupID == "" && len(ids) == 0 || !strictlySorted(ids) {
		return false // or the library did not write that record
	}
	m := d.o.Memory
	return m == nil || m.Gone.IsZero() || d.o.Group.At.Sub(m.Gone) < d.p.Period
}

// supplement adds instances that the answer lacks and that are not given up yet. It changes nothing
// if there are none.
func (d *decider) supplement() {
	d.unlisted = d.missing()
	if len(d.unlisted) == 0 {
		return
	}
	all := slices.Clone(d.instances)
	for _, id := range d.unlisted {
		all = append(all, Instance{ProviderID: id})
	}
	slices.SortFunc(all, func(a, b Instance) int { return strings.Compare(a.ProviderID, b.ProviderID) })
	d.instances = all
}

// isUnlisted reports whether the answer lacks an instance that is not given up yet.
func (d *decider) isUnlisted(id string) bool {
	_, is := slices.BinarySearch(d.unlisted, id)
	return is
}

// unlistedWhy says which instances the answer lacks.
func (d *decider) unlistedWhy() decision.Why {
	return decision.Why{Reason: reasonUnlisted, Name: d.unlisted[0], Count: int64(len(d.unlisted)), All: int64(len(d.instances))}
}
