package deployment

import (
	"cmp"
	"math"
	"slices"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// family is one set of the deployment with the sums of its machines.
type family struct {
	set      *machineset.Set
	machines []*machine.Machine

	actual    int32 // machines that are not being deleted
	ready     int32 // of these, ready
	available int32 // of these, ready for the deployment's MinReady

	inPlace    InPlaceCounts
	underWay   int32 // selected or further, and not failed
	leaving    int32 // of available, selected: they are about to stop
	selectable int32 // of available, that could be selected
	broken     int32 // of actual, neither ready nor in an update

	terminating int32 // machines that are being deleted
	// announced is how many machines may still be created, with any present size of the set. Their
	// creation was decided when the set was last written, and can't be called back.
	announced int64

	preserved int32 // of actual, kept for inspection; none of them is available
	// preservedFailed is how many of preserved failed.
	preservedFailed int32
	preserving      int32 // of actual, kept because their set asks for it, or soon kept
	aside           int32 // of preserved, hidden from the rollout

	requested int    // machines that are to be replaced, including those too old
	expired   int32  // of these, too old
	takeable  bool   // some of these are available, and in no update
	paused    bool   // the set is
	spared    int    // machines that are paused
	firstKept string // of their names, in order

	// given is how many available machines the set deletes because a scaler chose them, or will
	// delete when it is told.
	given   int32
	told    int32                          // of given, those that the set has been told of: it removes them first
	idle    int32                          // of actual, paused and not available: the set leaves them alone
	offered []machineset.DeletionCandidate // that the set may be told of
	handing []machineset.DeletionCandidate // that it is told of now
}

// count separates this deployment's own sets, which it puts in order, from others, which it leaves
// out, and counts their machines.
func (d *decider) count() {
	d.sets = make([]family, 0, len(d.o.Sets))
	for i := range d.o.Sets {
		c := &d.o.Sets[i]
		if c.Set != nil && c.Set.OwnedBy(d.deployment.UID) {
			d.sets = append(d.sets, family{set: c.Set, machines: c.Machines})
		}
	}
	slices.SortFunc(d.sets, func(a, b family) int { return olderFirst(a.set, b.set) })
	d.sets = slices.CompactFunc(d.sets, func(a, b family) bool { return a.set.UID == b.set.UID })
	for i := range d.sets {
		d.countMachines(&d.sets[i])
	}
}

// olderFirst compares sets by creation, then name.
func olderFirst(a, b *machineset.Set) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

func (d *decider) countMachines(f *family) {
	minReady := d.deployment.Spec.MinReady
	open := f.openNames()
	f.paused = d.leaves(&f.set.Meta)
	for _, m := range f.machines {
		if m == nil || !m.OwnedBy(f.set.UID) {
			continue
		}
		if open[m.Name] {
			f.announced--
		}
		if m.Deleted() {
			f.terminating++
			continue
		}
		f.actual++
		if m.Status.LastOperation.State == machine.StateFailed && !m.PreservedFailed(d.now) {
			d.listFailed(f.set, m)
		}
		available := false
		if machineset.Preserving(m, d.p.Keys.Preserve) {
			f.preserving++
		}
		if m.Preserved(d.now) {
			f.countPreserved(m)
			d.spare(f, m)
			d.lookAt(m.Status.Preservation.Until)
			continue
		}
		if m.Ready() {
			f.ready++
			at := m.AvailableAt(minReady)
			if available = !at.After(d.now); !available {
				d.lookAt(at)
			}
		}
		paused := d.spare(f, m)
		if paused && (!available || inUpdate(m)) {
			f.idle++
		}
		f.countInPlace(m, available, paused)
		d.countRequests(f, m, available)
	}
	d.countLeaving(f)
}

// countPreserved counts a machine that is kept for inspection.
func (f *family) countPreserved(m *machine.Machine) {
	f.preserved++
	switch {
	case m.Ready():
		f.ready++
	case m.Status.Phase == machine.PhaseFailed:
		f.preservedFailed++
	}
}

// openNames returns the names of the announced machines, at most the first ones if there are very
// many. They are all those whose outcome the set does not know yet.
func (f *family) openNames() map[string]bool {
	r := &f.set.Instructions.Reservation
	if r.Settled < 0 || r.Reserved <= r.Settled {
		return nil
	}
	f.announced = r.Reserved - r.Settled
	n := min(f.announced, manyNames)
	names := make(map[string]bool, n)
	for i := range n {
		names[f.set.MachineName(r.Settled+1+i)] = true
	}
	return names
}

// failing is a machine whose last operation failed.
type failing struct {
	machine *machine.Machine
	set     string
}

// listFailed adds a machine whose last operation failed to the few that are listed.
func (d *decider) listFailed(set *machineset.Set, m *machine.Machine) {
	d.failures++
	f := failing{m, set.Name}
	limit := max(d.p.FailedSummaries, 0)
	if n := len(d.failed); n >= limit && (limit == 0 || newestFirst(d.failed[n-1], f) <= 0) {
		return
	}
	at, _ := slices.BinarySearchFunc(d.failed, f, newestFirst)
	d.failed = slices.Insert(d.failed, at, f)
	d.failed = d.failed[:min(len(d.failed), limit)]
}

// failedMachines returns those that are listed.
func (d *decider) failedMachines() []machineset.FailedMachine {
	if len(d.failed) == 0 {
		return nil
	}
	out := make([]machineset.FailedMachine, len(d.failed))
	for i, f := range d.failed {
		out[i] = machineset.FailedMachineOf(f.machine, f.set)
	}
	return out
}

func newestFirst(a, b failing) int {
	m, n := a.machine, b.machine
	return cmp.Or(cmp.Compare(n.CreatedAt.Unix(), m.CreatedAt.Unix()), cmp.Compare(m.Name, n.Name),
		cmp.Compare(a.set, b.set), cmp.Compare(m.Spec.ProviderID, n.Spec.ProviderID))
}

// size returns the ordered size of a set as a rollout should see it. A set that is being deleted
// will have no machines. A negative size is invalid, and counts as the number of machines that the
// set has.
func (f *family) size() int32 {
	switch {
	case f.set.Deleted():
		return 0
	case f.set.Spec.Replicas < 0:
		return f.actual - f.parting()
	}
	return f.set.Spec.Replicas
}

// parting returns how many machines a set has and names as leaving. Its size does not include them.
func (f *family) parting() (n int32) {
	for _, m := range f.machines {
		if f.owns(m) && slices.Contains(f.set.Instructions.Handover.Leaving, m.Name) {
			n++
		}
	}
	return n
}

// numbers returns the set as a rollout sees it. raised, if given, is the UID of the only set that
// may be raised. UIDs are compared because a set that is being deleted may share its name with its
// successor.
func (f *family) numbers(current, raised bool) rollout.Set {
	s := rollout.Set{
		Name: f.set.UID, New: current, Spec: f.size(), Actual: f.actual, Available: max(0, f.available-f.leaving-f.given),
		Terminating: f.terminating, Going: f.set.Deleted(), Marked: int32(len(f.offered)), Accounted: f.told + f.idle,
		Selected: f.underWay, Selectable: f.selectable, Broken: f.broken, Paused: f.paused,
	}
	if !raised {
		// The room that another set may still fill is not given away. The raised set needs no such
		// care, because it never gets above what is wanted.
		s.Actual = int32(min(f.most(), math.MaxInt32))
		s.Accounted += s.Actual - f.actual
	}
	if f.atRest() {
		s.Accounted = s.Actual
	}
	return f.without(s)
}

// atRest reports whether the set is paused and has said so: it is deleting no machine, see
// machineset.ConditionPaused.
func (f *family) atRest() bool { return f.paused && f.condition(machineset.ConditionPaused) != nil }

// most returns how many machines the set may have without another order: those it has, those on
// their way, and those that its surge allowance lets it create.
func (f *family) most() int64 {
	most := f.has()
	if extra := f.set.Instructions.SurgeAllowance.Surge; extra > 0 && !f.set.Deleted() {
		most = max(most, int64(f.size())+int64(extra)) // it may be making them already
	}
	return most
}

// taking reports whether the set may be deleting available machines already, to replace them. It
// counts as doing so until it has seen that it no longer may.
func (f *family) taking() bool {
	told := f.set.Instructions.SurgeAllowance == (machineset.SurgeAllowance{}) && f.set.Status.ObservedGeneration == f.set.Generation
	return f.takeable && !f.set.Deleted() && !told
}
