package convert

import (
	"slices"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/machineset"
)

// Sets translates sets.
func Sets(keys Keys) *Kind[*v1alpha1.MachineSet, *machineset.Set] {
	return &Kind[*v1alpha1.MachineSet, *machineset.Set]{
		name: "set", keys: keys, counter: keys.SpecChanges, notes: keys.SetRecord,
		empty: func() *v1alpha1.MachineSet { return &v1alpha1.MachineSet{} },
		clone: (*v1alpha1.MachineSet).DeepCopy,
		blank: func() *machineset.Set { return &machineset.Set{} },
		read:  readSet, write: writeSet, writeStatus: writeSetStatus,
		records: []record[*machineset.Set]{
			{keys.Revision, func(s *machineset.Set) any { return &s.Revision }},
			{keys.Reservation, func(s *machineset.Set) any { return &s.Instructions.Reservation }},
			{keys.Handover, func(s *machineset.Set) any { return &s.Instructions.Handover }},
			{keys.Marks, func(s *machineset.Set) any { return &s.Instructions.Marks }},
			{keys.DeletionCandidates, func(s *machineset.Set) any { return &s.Instructions.DeletionCandidates }},
			{keys.MaxAge, func(s *machineset.Set) any { return &s.Spec.MaxAge }},
			{keys.PreviousClasses, func(s *machineset.Set) any { return &s.Instructions.PreviousClasses }},
			{keys.SurgeAllowance, func(s *machineset.Set) any { return &s.Instructions.SurgeAllowance }},
		},
	}
}

// setNotes are the parts of a status that have no field in the established kind.
var setNotes = []record[*machineset.Set]{
	{"preserved", func(s *machineset.Set) any { return &s.Status.Preserved }},
	{"failing", func(s *machineset.Set) any { return &s.Status.Failing }},
	{"crashLoop", func(s *machineset.Set) any { return &s.Status.CrashLoop }},
}

const (
	noteFailed   = "failed"          // the extras of the failed machines
	noteObserved = "observedChanges" // see observed
)

func readSet(r *reader, w *v1alpha1.MachineSet, s *machineset.Set) {
	s.Spec.Replicas, s.Spec.AutoPreserve = w.Spec.Replicas, w.Spec.AutoPreserveFailedMachineMax
	s.Spec.Selector, s.Spec.Template = readSelector(w.Spec.Selector), readTemplate(&w.Spec.Template)
	s.Spec.MinReady = secondsOf(w.Spec.MinReadySeconds)

	n := r.notes(w, r.keys.SetRecord)
	for _, note := range setNotes {
		n.read(r.problems, note.name, note.at(s))
	}
	var e extra
	var extras []extra
	n.read(r.problems, noteOperation, &e)
	n.read(r.problems, noteFailed, &extras)
	out := &s.Status
	out.Replicas, out.FullyLabeled = w.Status.Replicas, w.Status.FullyLabeledReplicas
	out.Ready, out.Available = w.Status.ReadyReplicas, w.Status.AvailableReplicas
	out.PreservedFailed, out.AutoPreserved = w.Status.PreservedFailedReplicas, w.Status.AutoPreserveFailedMachineCount
	out.ObservedGeneration = n.observed(r, w.Status.ObservedGeneration)
	out.Conditions = setConditions.read(w.Status.Conditions)
	out.LastOperation = readOperation(r.problems, "status.lastOperation", &w.Status.LastOperation, &e)
	if list := w.Status.FailedMachines; list != nil {
		out.Failed = readSummaries(r.problems, *list, extras)
	}
}

// observed returns the library's observed generation: the stored one, and the observed changes that the
// server did not count.
func (n *notes) observed(r *reader, generation int64) int64 {
	var changes int64
	n.read(r.problems, noteObserved, &changes)
	return generation + changes
}

// observe is the reverse of observed. It returns the generation to store, which is at most that of the
// stored object, because other programs compare the two.
func (n *notes) observe(x *writer, generation int64) int64 {
	stored := min(generation, x.generation)
	changes := generation - stored
	n.set(x, noteObserved, &changes)
	return stored
}

func writeSet(_ *writer, w *v1alpha1.MachineSet, was, now *machineset.Set) {
	a, b := &was.Spec, &now.Spec
	put(&w.Spec.Replicas, a.Replicas, b.Replicas)
	put(&w.Spec.AutoPreserveFailedMachineMax, a.AutoPreserve, b.AutoPreserve)
	writeSelector(&w.Spec.Selector, &a.Selector, &b.Selector)
	writeTemplate(&w.Spec.Template, &a.Template, &b.Template)
	put(&w.Spec.MinReadySeconds, wholeSeconds(a.MinReady), wholeSeconds(b.MinReady))
}

func writeSetStatus(x *writer, w *v1alpha1.MachineSet, was, now *machineset.Set) {
	a, b, out := &was.Status, &now.Status, &w.Status
	if a.Equal(b) {
		return
	}
	put(&out.Replicas, a.Replicas, b.Replicas)
	put(&out.FullyLabeledReplicas, a.FullyLabeled, b.FullyLabeled)
	put(&out.ReadyReplicas, a.Ready, b.Ready)
	put(&out.AvailableReplicas, a.Available, b.Available)
	put(&out.PreservedFailedReplicas, a.PreservedFailed, b.PreservedFailed)
	put(&out.AutoPreserveFailedMachineCount, a.AutoPreserved, b.AutoPreserved)

	n := (&problems{}).notes(w, x.keys.SetRecord)
	for _, note := range setNotes {
		n.write(x, note.name, note.at(was), note.at(now))
	}
	if a.ObservedGeneration != b.ObservedGeneration {
		out.ObservedGeneration = n.observe(x, b.ObservedGeneration)
	}
	if a.LastOperation != b.LastOperation {
		e := writeOperation(&out.LastOperation, &a.LastOperation, &b.LastOperation, extra{})
		n.set(x, noteOperation, &e)
	}
	if !slices.EqualFunc(a.Failed, b.Failed, func(s, t machineset.FailedMachine) bool { return s.Equal(&t) }) {
		list, extras := writeSummaries(b.Failed)
		n.set(x, noteFailed, &extras)
		if out.FailedMachines = &list; len(list) == 0 {
			out.FailedMachines = nil
		}
	}
	annotate(w, x.keys.SetRecord, n.text())
	setConditions.write(&out.Conditions, a.Conditions, b.Conditions)
}
