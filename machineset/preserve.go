package machineset

import (
	"cmp"
	"maps"
	"slices"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// A machine that is kept for inspection counts as one of the set's, so that it
// is not replaced, and not as available. Who asked for that is the machine's
// matter (package machine), but for what a set asks itself: of machines that
// failed it keeps as many as Spec.AutoPreserve says, by an annotation on them.
// What is annotated counts against that limit until the machine is gone, has run
// out of time, or runs again.

// keeps reports whether a failed machine is not to be replaced: it is kept for
// inspection, or asks to be and has not said so in its status yet. The latter
// has no deadline: the machine's next decision ends it.
func (d *situation) keeps(m *machine.Machine) bool {
	return m.Preserved(d.now) || m.ToBePreserved(d.p.Keys.Preserve)
}

// explicit reports whether a machine is kept because a user wants it.
func (d *situation) explicit(m *machine.Machine) bool {
	return m.Preserved(d.now) && !m.Status.Preservation.Automatic() ||
		m.ToBePreserved(d.p.Keys.Preserve) && !d.automatic(m)
}

// automatic reports whether a machine carries the set's own request.
func (d *situation) automatic(m *machine.Machine) bool {
	key := d.p.Keys.Preserve
	return key != "" && m.Annotations[key] == machine.PreserveAutomatically
}

// Preserving reports whether a machine with an annotation of this key counts
// against Spec.AutoPreserve of its set.
func Preserving(m *machine.Machine, key string) bool {
	p := &m.Status.Preservation
	return key != "" && !m.Deleted() && m.Annotations[key] == machine.PreserveAutomatically &&
		!(p.Automatic() && p.Since.IsZero())
}

// preserving is what the summary holds about machines that the set keeps.
type preserving struct {
	preserved int                // kept for inspection, in any phase
	failed    int                // of these, failed
	counted   []*machine.Machine // against the limit
	lapsed    []*machine.Machine // of these, those that do not need it any more
	eligible  []*machine.Machine // failed, and may be kept
}

// preservation keeps failed machines for inspection, as many as the set may.
type preservation struct {
	*situation
	preserving *preserving
}

// visit looks at a machine that is not being deleted.
func (d preservation) visit(m *machine.Machine) {
	c := d.preserving
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
	case Preserving(m, key):
		c.counted = append(c.counted, m)
		if !failed {
			c.lapsed = append(c.lapsed, m)
		}
	case failed && !asked && d.s.Spec.AutoPreserve > 0 && !m.Preserved(d.now) && d.mayPreserve(m):
		c.eligible = append(c.eligible, m)
	}
}

// mayPreserve reports whether the set may keep a machine that failed. One whose
// node has ever been asked for it obeys the node; one that was kept since it
// failed is to be replaced.
func (d preservation) mayPreserve(m *machine.Machine) bool {
	p := &m.Status.Preservation
	return !p.NodeAsked && (p.Ended.IsZero() || p.Ended.Before(m.Status.Since))
}

// preserve asks for machines that failed to be kept, within the limit. It removes the
// request from those beyond the limit and from those that run again.
func (d preservation) preserve() (Plan, bool) {
	p := d.preserving
	limit := int(d.s.Spec.AutoPreserve)
	room := limit - len(p.counted)
	if d.o.Refused.Change != nil || len(p.lapsed) == 0 && room >= 0 && (room == 0 || len(p.eligible) == 0) {
		return Plan{}, false
	}
	if plan, busy := d.readLive("changing which machines are preserved"); busy {
		return plan, true
	}
	key := d.p.Keys.Preserve
	if len(p.lapsed) > 0 || room < 0 {
		over := p.lapsed
		if len(over) == 0 {
			slices.SortFunc(p.counted, soonestOver)
			over = p.counted[:-room]
		}
		over = over[:min(len(over), int(d.p.Burst))]
		orders := changed(over, decision.Why{Reason: reasonUnpreserve, Want: int64(limit)}, func(m *machine.Machine) {
			delete(m.Annotations, key)
		})
		return Plan{Push: orders, Why: d.why(reasonUnpreserving, len(orders))}, true
	}
	slices.SortFunc(p.eligible, failedFirst)
	chosen := p.eligible[:min(room, len(p.eligible), int(d.p.Burst))]
	orders := changed(chosen, decision.Why{Reason: reasonPreserve, Want: int64(limit)}, func(m *machine.Machine) {
		annotations := make(map[string]string, len(m.Annotations)+1)
		maps.Copy(annotations, m.Annotations)
		annotations[key] = machine.PreserveAutomatically
		m.Annotations = annotations
	})
	return Plan{Push: orders, Why: d.why(reasonPreserving, len(orders))}, true
}

func (d preservation) why(reason decision.Reason, n int) decision.Why {
	return decision.Why{Reason: reason, Count: int64(n), Have: int64(len(d.preserving.counted)), Want: int64(d.s.Spec.AutoPreserve)}
}

// undecided reports whether failed machines should be kept, and could not be told
// so in this pass: none is replaced meanwhile.
func (d preservation) undecided() bool {
	p := d.preserving
	return d.o.Refused.Change != nil && len(p.eligible) > 0 && len(p.counted) < int(d.s.Spec.AutoPreserve)
}

// soonestOver orders machines by when they would not be kept any more: what has
// the least time left is replaced first. One that has not begun comes last.
func soonestOver(a, b *machine.Machine) int {
	p, q := &a.Status.Preservation, &b.Status.Preservation
	if p.Since.IsZero() != q.Since.IsZero() {
		if q.Since.IsZero() {
			return -1
		}
		return 1
	}
	return cmp.Or(p.Until.Compare(q.Until), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

func failedFirst(a, b *machine.Machine) int {
	return cmp.Or(a.Status.Since.Compare(b.Status.Since), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
