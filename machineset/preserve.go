package machineset

import (
	"cmp"
	"maps"
	"slices"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// A machine that is preserved, that is, kept for inspection, counts as one of the set's, so that it is not
// replaced. It does not count as available. A user requests that on the machine or its node (package machine).
// A set requests it with an annotation on failed machines, on as many as Spec.AutoPreserve says. An annotated
// machine counts against that limit until it is gone, its time is over, or it runs again.

// preserves reports whether a failed machine must not be replaced: it is preserved, or that was requested and
// the machine's next decision will record it in its status.
func (d *state) preserves(m *machine.Machine) bool {
	return m.Preserved(d.now) || m.ToBePreserved(d.p.Keys.Preserve)
}

// preservedByUser reports whether a user has requested that a machine is preserved.
func (d *state) preservedByUser(m *machine.Machine) bool {
	return m.Preserved(d.now) && !m.Status.Preservation.Automatic() ||
		m.ToBePreserved(d.p.Keys.Preserve) && !d.preservedBySet(m)
}

// preservedBySet reports whether the set itself has requested that a machine is preserved.
func (d *state) preservedBySet(m *machine.Machine) bool {
	key := d.p.Keys.Preserve
	return key != "" && m.Annotations[key] == machine.PreserveAutomatically
}

// CountsAsAutoPreserved reports whether a machine counts against Spec.AutoPreserve of its set: its annotation
// of this key has the set's request, and the time of this preservation is not over.
func CountsAsAutoPreserved(m *machine.Machine, key string) bool {
	p := &m.Status.Preservation
	return key != "" && !m.Deleted() && m.Annotations[key] == machine.PreserveAutomatically &&
		!(p.Automatic() && p.Since.IsZero())
}

// preserving are the machines that are preserved, or may be.
type preserving struct {
	preserved int                // kept for inspection, in any phase
	failed    int                // of preserved, in phase Failed
	counted   []*machine.Machine // against the limit
	recovered []*machine.Machine // of counted, those that are no longer Failed
	eligible  []*machine.Machine // failed, and may be kept
}

// countPreserved counts a machine that is not being deleted.
func (d *state) countPreserved(m *machine.Machine) {
	c := &d.summary.preserving
	if m.Preserved(d.now) {
		c.preserved++
		if m.PreservedFailed(d.now) {
			c.failed++
		}
		d.lookAgain(m.Status.Preservation.Until)
	}
	key := d.p.Keys.Preserve
	if key == "" {
		return
	}
	failed := m.Status.Phase == machine.PhaseFailed
	switch _, asked := m.Annotations[key]; {
	case CountsAsAutoPreserved(m, key):
		c.counted = append(c.counted, m)
		if !failed {
			c.recovered = append(c.recovered, m)
		}
	case failed && !asked && d.s.Spec.AutoPreserve > 0 && !m.Preserved(d.now) && d.mayPreserve(m):
		c.eligible = append(c.eligible, m)
	}
}

// mayPreserve reports whether the set may preserve a failed machine. It may not if the machine's node ever had
// the annotation: then only the node's counts. It may not if the machine was already preserved after this
// failure, and that has ended: then it is to be replaced.
func (d *state) mayPreserve(m *machine.Machine) bool {
	p := &m.Status.Preservation
	return !p.NodeAsked && (p.Ended.IsZero() || p.Ended.Before(m.Status.Since))
}

// preserve annotates failed machines to be preserved, within the limit. It removes the annotation from
// machines beyond the limit and from those that are no longer Failed.
func (d *state) preserve() (Plan, bool) {
	p := &d.summary.preserving
	limit := int(d.s.Spec.AutoPreserve)
	room := limit - len(p.counted)
	if d.o.Refused.Change != nil || len(p.recovered) == 0 && room >= 0 && (room == 0 || len(p.eligible) == 0) {
		return Plan{}, false
	}
	if plan, found := d.readLive("changing which machines are preserved"); found {
		return plan, true
	}
	key := d.p.Keys.Preserve
	if len(p.recovered) > 0 || room < 0 {
		over := p.recovered
		if len(over) == 0 {
			slices.SortFunc(p.counted, soonestEnding)
			over = p.counted[:-room]
		}
		over = over[:min(len(over), d.burst())]
		orders := changed(over, decision.Why{Reason: reasonUnpreserve, Want: int64(limit)}, func(m *machine.Machine) {
			delete(m.Annotations, key)
		})
		return Plan{Push: orders, Why: d.whyPreserve(reasonUnpreserving, len(orders))}, true
	}
	slices.SortFunc(p.eligible, longestFailed)
	chosen := p.eligible[:min(room, len(p.eligible), d.burst())]
	orders := changed(chosen, decision.Why{Reason: reasonPreserve, Want: int64(limit)}, func(m *machine.Machine) {
		annotations := make(map[string]string, len(m.Annotations)+1)
		maps.Copy(annotations, m.Annotations)
		annotations[key] = machine.PreserveAutomatically
		m.Annotations = annotations
	})
	return Plan{Push: orders, Why: d.whyPreserve(reasonPreserving, len(orders))}, true
}

func (d *state) whyPreserve(reason decision.Reason, n int) decision.Why {
	return decision.Why{Reason: reason, Count: int64(n), Have: int64(len(d.summary.preserving.counted)), Want: int64(d.s.Spec.AutoPreserve)}
}

// preserveUndecided reports whether failed machines should be preserved, but the order for it was refused in
// this pass. Until the next pass no failed machine is replaced.
func (d *state) preserveUndecided() bool {
	p := &d.summary.preserving
	return d.o.Refused.Change != nil && len(p.eligible) > 0 && len(p.counted) < int(d.s.Spec.AutoPreserve)
}

// soonestEnding orders machines by when their preservation ends. Those whose preservation has not begun come
// last.
func soonestEnding(a, b *machine.Machine) int {
	p, q := &a.Status.Preservation, &b.Status.Preservation
	if p.Since.IsZero() != q.Since.IsZero() {
		if q.Since.IsZero() {
			return -1
		}
		return 1
	}
	return cmp.Or(p.Until.Compare(q.Until), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// longestFailed orders machines by how long they have been Failed, the longest first.
func longestFailed(a, b *machine.Machine) int {
	return cmp.Or(a.Status.Since.Compare(b.Status.Since), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
