package convert

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/machine"
)

// Machines translates machines.
func Machines(keys Keys) *Kind[*v1alpha1.Machine, *machine.Machine] {
	return &Kind[*v1alpha1.Machine, *machine.Machine]{
		name: "machine", keys: keys, counter: keys.SpecChanges,
		empty: func() *v1alpha1.Machine { return &v1alpha1.Machine{} },
		clone: (*v1alpha1.Machine).DeepCopy,
		blank: func() *machine.Machine { return &machine.Machine{} },
		read:  readMachine, write: writeMachine, writeStatus: writeMachineStatus,
		labels: []string{keys.NodeLabel},
		records: []record[*machine.Machine]{
			{keys.InPlace, func(m *machine.Machine) any { return &m.Spec.InPlace }},
		},
	}
}

// machineNotes are the parts of a status that have no field in the established kind.
var machineNotes = []record[*machine.Machine]{
	{"clockFrom", func(m *machine.Machine) any { return &m.Status.ClockFrom }},
	{"resumedAt", func(m *machine.Machine) any { return &m.Status.ResumedAt }},
	{"vmSpec", func(m *machine.Machine) any { return &m.Status.VMSpec }},
	{"deletedFrom", func(m *machine.Machine) any { return &m.Status.DeletedFrom }},
	{"stageSince", func(m *machine.Machine) any { return &m.Status.StageSince }},
	{"heldSince", func(m *machine.Machine) any { return &m.Status.HeldSince }},
	{"drainedNode", func(m *machine.Machine) any { return &m.Status.DrainedNode }},
	{"drainForced", func(m *machine.Machine) any { return &m.Status.DrainForced }},
	{"joinedAfter", func(m *machine.Machine) any { return &m.Status.JoinedAfter }},
	{"preservation", func(m *machine.Machine) any { return &m.Status.Preservation }},
}

const noteOperation = "operation" // the extra of the last operation

func readMachine(r *reader, w *v1alpha1.Machine, m *machine.Machine) {
	inPlace := m.Spec.InPlace
	m.Spec = readSpec(&w.Spec)
	m.Spec.InPlace, m.Spec.NodeName = inPlace, w.Labels[r.keys.NodeLabel]
	if target := w.Annotations[r.keys.InPlaceTarget]; target != "" && m.Owner != nil && m.Owner.Name == target {
		m.Spec.InPlace = machine.InPlaceNone // another manager has updated the machine and moved it to that set
	}

	s, current := &m.Status, &w.Status.CurrentStatus
	s.Phase, s.Since = machine.Phase(current.Phase), instant(current.LastUpdateTime)
	s.LastKnown = w.Status.LastKnownState
	for _, a := range w.Status.Addresses {
		s.Addresses = append(s.Addresses, machine.Address{Type: string(a.Type), Value: a.Address})
	}
	all, record := splitRecord(nodeConditions.read(w.Status.Conditions))
	s.Conditions = all
	n := parseNotes(r.problems, recordInStatus, record)
	for _, note := range machineNotes {
		n.read(r.problems, note.name, note.at(m))
	}
	var e extra
	n.read(r.problems, noteOperation, &e)
	s.LastOperation = readOperation(r.problems, "status.lastOperation", &w.Status.LastOperation, &e)
	s.NeverCreated = e.NeverCreated && e.belongsTo(&s.LastOperation)
	s.OnlyRefused = e.OnlyRefused && e.belongsTo(&s.LastOperation)
	if s.Phase == machine.PhaseNew && createUnderWay(m) {
		s.Phase = machine.PhasePending
	}
	r.preservation(w, m)
}

// preservation corrects the preservation in the record by the stored expiry time, because people change
// that time, and another manager writes nothing else. If another manager began the preservation, the
// beginning of the phase counts as its beginning.
func (r *reader) preservation(w *v1alpha1.Machine, m *machine.Machine) {
	p, until := &m.Status.Preservation, time.Time{}
	if at := w.Status.CurrentStatus.PreserveExpiryTime; at != nil {
		until = instant(*at)
	}
	switch {
	case p.Until.Equal(until):
		return
	case until.IsZero():
		p.Since, p.Drained = time.Time{}, false
	case p.Since.IsZero():
		p.Since = m.Status.Since
		if p.Since.IsZero() {
			p.Since = m.CreatedAt
		}
		p.Request, p.TakenOver = w.Annotations[r.keys.Preserve], true
		if request := w.Annotations[r.keys.NodePreserve]; request != "" {
			p.Request, p.NodeAsked = request, true
		}
	}
	p.Until = until
}

func writeMachine(x *writer, w *v1alpha1.Machine, was, now *machine.Machine) {
	writeSpec(&w.Spec, &was.Spec, &now.Spec)
	switch before, after := was.Spec.NodeName, now.Spec.NodeName; {
	case before == after:
	case after == "":
		delete(w.Labels, x.keys.NodeLabel)
	default:
		if w.Labels == nil {
			w.Labels = map[string]string{}
		}
		w.Labels[x.keys.NodeLabel] = after
	}
}

func writeMachineStatus(x *writer, w *v1alpha1.Machine, was, now *machine.Machine) {
	a, b, current := &was.Status, &now.Status, &w.Status.CurrentStatus
	if before, after := storedPhase(was), storedPhase(now); before != after {
		current.Phase, current.TimeoutActive = v1alpha1.MachinePhase(after), timed(after)
	}
	current.LastUpdateTime = metav1.NewTime(b.Since)
	if !a.Preservation.Until.Equal(b.Preservation.Until) {
		current.PreserveExpiryTime = timePointer(b.Preservation.Until)
	}
	put(&w.Status.LastKnownState, a.LastKnown, b.LastKnown)
	if !slices.Equal(a.Addresses, b.Addresses) {
		w.Status.Addresses = nil
		for _, address := range b.Addresses {
			w.Status.Addresses = append(w.Status.Addresses,
				corev1.NodeAddress{Type: corev1.NodeAddressType(address.Type), Address: address.Value})
		}
	}
	_, record := splitRecord(nodeConditions.read(w.Status.Conditions))
	n := parseNotes(&problems{}, recordInStatus, record)
	for _, note := range machineNotes {
		n.write(x, note.name, note.at(was), note.at(now))
	}
	if a.LastOperation != b.LastOperation || a.NeverCreated != b.NeverCreated || a.OnlyRefused != b.OnlyRefused {
		e := writeOperation(&w.Status.LastOperation, &a.LastOperation, &b.LastOperation,
			extra{NeverCreated: b.NeverCreated, OnlyRefused: b.OnlyRefused})
		n.set(x, noteOperation, &e)
	}
	nodeConditions.write(&w.Status.Conditions, withRecord(a.Conditions, record), withRecord(b.Conditions, n.text()))
}

// storedPhase returns the phase to store. While a machine's VM is being created, it is empty:
// machine-controller-manager may take over before the provider ID is stored, and would treat the VM of
// a machine with a phase as an orphan.
func storedPhase(m *machine.Machine) machine.Phase {
	if m.Status.Phase == machine.PhasePending && createUnderWay(m) {
		return machine.PhaseNew
	}
	return m.Status.Phase
}

// createUnderWay reports whether the creation of a VM was requested and its provider ID is not stored.
func createUnderWay(m *machine.Machine) bool {
	op := &m.Status.LastOperation
	return m.Spec.ProviderID == "" &&
		op.Kind == machine.OperationCreate && op.State == machine.StateProcessing && op.Stage == machine.StageCreateVM
}

// timed reports whether a machine fails when it stays in this phase for too long.
func timed(p machine.Phase) bool {
	return p == machine.PhasePending || p == machine.PhaseUnknown || p == machine.PhaseInPlaceUpdating
}
