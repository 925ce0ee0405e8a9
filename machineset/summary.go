package machineset

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
)

// failedLimit is how many failed machines a status lists, so that it fits a store's limit on objects.
const failedLimit = 10

// summary is what one pass over the machines has counted.
type summary struct {
	owned       int // machines of the set, in any state
	terminating int // of the owned ones, those being deleted
	arriving    int // machines that move here and are not owned yet
	unmatched   []*machine.Machine
	differing   []difference

	present int // neither being deleted, nor leaving, nor unmatched: what the status counts
	failed  int // of these, in phase Failed and to be replaced
	active  int // of these, all others

	fullyLabeled, ready, available int
	nextAvailable                  time.Time // when the next ready machine is available; zero: none is waiting

	starts    starts
	withoutVM int // of active, those that have no VM yet

	failing        lowest // machines whose last operation failed, the newest first
	failures       int    // the number of machines whose last operation failed
	deletionOrder  lowest // active machines, in the order in which they are deleted
	replaced       lowest // failed machines, in the same order
	requests       requests
	expiries       expiries
	pausedMachines pausedMachines
	preserving     preserving
	names          openNames
}

// difference is a machine that has to be updated to the template.
type difference struct {
	machine *machine.Machine
	what    string // the part of the template that differs, for a reason
}

// count fills in the summary. It reads each machine once.
func (c *summary) count(d *state) {
	burst := d.burst()
	c.failing.limit = failedLimit
	if d.live() {
		c.replaced.limit = burst
		c.requests.limit(burst)
		c.deletionOrder.limit = min(burst, max(0, len(d.o.Machines)-d.wanted()))
	}
	var space [3][8]label
	t := &d.s.Spec.Template
	v := counter{
		d:           d,
		burst:       burst,
		order:       order{d: d},
		labels:      flatten(space[0][:0], t.Labels),
		nodeLabels:  flatten(space[1][:0], t.Spec.NodeTemplate.Labels),
		annotations: flatten(space[2][:0], t.Spec.NodeTemplate.Annotations),
	}
	if c.deletionOrder.limit > 0 {
		v.order.chosen = d.s.Instructions.chosen()
	}
	arriving, leaving := d.handover()
	for _, m := range d.o.Machines {
		if m == nil || !m.OwnedBy(d.s.UID) {
			continue
		}
		c.owned++
		delete(arriving, m.Name)
		switch {
		case m.Deleted():
			c.terminating++
		case !leaving[m.Name]:
			v.visit(m)
		}
	}
	c.arriving = len(arriving)
	c.requests.admit(d, &c.expiries, c.available)
	if d.s.Instructions.Reservation.Reserved > d.s.Instructions.Reservation.Settled {
		c.names.count(d, leaving)
	}
}

// counter counts the machines that are not being deleted.
type counter struct {
	d     *state
	burst int
	order order
	// The template's maps, to be looked up in each machine.
	labels, nodeLabels, annotations []label
}

func (v *counter) visit(m *machine.Machine) {
	c := &v.d.summary
	full := hasLabels(m.Labels, v.labels)
	if !v.d.s.Deleted() && !v.matches(m, full) {
		c.unmatched = appendUpTo(c.unmatched, m, v.burst)
		return
	}
	if full {
		c.fullyLabeled++
	}
	v.note(m)
	machines, available, spared := &c.deletionOrder, false, v.d.machinePaused(m)
	if m.Status.Phase != machine.PhaseFailed || spared || v.d.preserves(m) {
		c.active++
		if v.d.o.ClassBackoff != nil && withoutVM(m) {
			c.withoutVM++
		}
		available = v.countReady(m)
		if !spared {
			v.visitReplaced(m, available)
		}
	} else {
		c.failed++
		c.starts.failed(v.d, m)
		if !v.d.s.Deleted() {
			machines = &c.replaced
		}
	}
	available = available && m.Spec.InPlace != machine.InPlaceSelected
	switch {
	case spared:
		c.pausedMachines.add(m, available)
	case machines.limit > 0:
		machines.offer(v.order.rank(m, available))
	}
}

// note counts what does not depend on the machine's phase.
func (v *counter) note(m *machine.Machine) {
	c := &v.d.summary
	c.present++
	if m.Status.LastOperation.State == machine.StateFailed && !m.PreservedFailed(v.d.now) {
		c.failures++
		c.failing.offer(ranked{age: -m.CreatedAt.Unix(), machine: m})
	}
	if len(c.differing) < v.burst {
		if what := v.difference(m); what != "" {
			c.differing = append(c.differing, difference{m, what})
		}
	}
	v.d.countPreserved(m)
}

// matches reports whether the selector picks m. full says that m has all labels of the template. The selector
// picks these, so it picks m, too, unless it has requirements, which may forbid other labels.
func (v *counter) matches(m *machine.Machine, full bool) bool {
	sel := &v.d.s.Spec.Selector
	return full && len(sel.Requirements) == 0 || sel.Matches(m.Labels)
}

// countReady counts a machine if it is ready, and reports whether it is available. A preserved machine is not.
func (v *counter) countReady(m *machine.Machine) bool {
	if !m.Ready() {
		return false
	}
	c, at := &v.d.summary, m.AvailableAt(v.d.minReady())
	c.ready++
	c.starts.joined(v.d, m)
	if m.Preserved(v.d.now) {
		return false
	}
	if !v.d.now.Before(at) {
		c.available++
		return true
	}
	if c.nextAvailable.IsZero() || at.Before(c.nextAvailable) {
		c.nextAvailable = at
	}
	return false
}

// label is one entry of a map. For each machine all entries are visited, which is faster in a slice than in a map.
type label struct{ key, value string }

func flatten(out []label, labels map[string]string) []label {
	for k, v := range labels {
		out = append(out, label{k, v})
	}
	return out
}

func hasLabels(have map[string]string, want []label) bool {
	for i := range want {
		if got, ok := have[want[i].key]; !ok || got != want[i].value {
			return false
		}
	}
	return true
}

func appendUpTo(list []*machine.Machine, m *machine.Machine, limit int) []*machine.Machine {
	if len(list) < limit {
		list = append(list, m)
	}
	return list
}

// difference returns which parts of the template are to be copied to an existing machine, or "".
func (v *counter) difference(m *machine.Machine) string {
	want, have := &v.d.s.Spec.Template.Spec, &m.Spec
	node := &have.NodeTemplate
	switch {
	case have.Class.Kind != want.Class.Kind:
		return "class kind"
	case v.d.s.hasPreviousClass(&have.Class):
		return "class"
	case !have.Config.Equal(&want.Config):
		return "configuration"
	case len(node.Labels) != len(v.nodeLabels) || !hasLabels(node.Labels, v.nodeLabels) ||
		len(node.Annotations) != len(v.annotations) || !hasLabels(node.Annotations, v.annotations) ||
		!slices.Equal(node.Taints, want.NodeTemplate.Taints):
		return "node template"
	}
	return ""
}

// visitReplaced counts an active machine that must be replaced, on request or for its age.
func (v *counter) visitReplaced(m *machine.Machine, available bool) {
	c := &v.d.summary
	if v.d.toReplace(m) {
		c.requests.add(v.order.rank(m, available), available)
	} else if available {
		c.expiries.visit(v.d, m)
	}
}

// withoutVM reports whether a machine has no VM yet and waits for one.
func withoutVM(m *machine.Machine) bool {
	switch m.Status.Phase {
	case machine.PhaseNew, machine.PhasePending, machine.PhaseCrashLoopBackOff:
		return m.Spec.ProviderID == ""
	case machine.PhaseAvailable, machine.PhaseRunning, machine.PhaseUnknown, machine.PhaseFailed, machine.PhaseTerminating,
		machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdateFailed:
	}
	return false
}
