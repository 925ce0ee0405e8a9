package deployment

import (
	"cmp"
	"math"
	"slices"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// family is one set of the deployment with the sums of its machines.
type family struct {
	set      *machineset.Set
	machines []*machine.Machine

	actual    int32 // machines that are not being deleted
	ready     int32 // of these, ready
	available int32 // of these, ready for the deployment's MinReady

	inPlace    InPlaceCounts
	underWay   int32            // selected or further, and not failed
	leaving    int32            // of available, selected: they are about to stop
	selectable int32            // of available, that could be selected
	delayed    int32            // of actual, selected and not healthy enough to begin
	unfit      *machine.Machine // neither ready nor in an update, the first by name; nil: there is none

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

// manyNames is the maximum number of open names of a set that are searched for among its machines.
const manyNames = 1000

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
		Selected: f.underWay, Selectable: f.selectable, Paused: f.paused,
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

// unused reports whether a set has no machines, should have none and has none under way, also
// according to its own status.
func (f *family) unused() bool {
	s := f.set
	return s.Spec.Replicas == 0 && f.actual == 0 && f.terminating == 0 && f.announced <= 0 &&
		s.Status.Replicas == 0 && s.Status.ObservedGeneration >= s.Generation
}

// owns reports whether a machine counts as one of the set.
func (f *family) owns(m *machine.Machine) bool {
	return m != nil && m.OwnedBy(f.set.UID) && !m.Deleted()
}

// first returns the oldest of a set's machines, by age and then by name, that are wanted and not
// being deleted.
func (f *family) first(limit int, wanted func(*machine.Machine) bool) []*machine.Machine {
	var out []*machine.Machine
	for _, m := range f.machines {
		if m == nil || !wanted(m) || !f.owns(m) { // the owner is another read of memory for each machine
			continue
		}
		if limit <= 0 || len(out) == limit && olderMachine(out[limit-1], m) <= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(out, m, olderMachine)
		out = slices.Insert(out, at, m)
		out = out[:min(len(out), limit)]
	}
	return out
}

func olderMachine(a, b *machine.Machine) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// inUse reports whether a set has machines, or should have some.
func (f *family) inUse() bool { return f.size() > 0 || f.actual > 0 }

// has returns how many machines a set has, including those that may still be created with any size.
func (f *family) has() int64 { return int64(f.actual) + max(f.announced, 0) }

// vacant returns how many places of a set are empty.
func (f *family) vacant() int { return int(max(int64(f.set.Spec.Replicas)-f.has(), 0)) }

// namesDone reports whether all names that the set has given out became machines, or can't any
// more.
func (f *family) namesDone() bool {
	r := &f.set.Instructions.Reservation
	return f.announced == 0 && r.Settled >= 0 && r.Reserved >= r.Settled
}

// without returns the numbers of a set without the machines set aside. None of these is available,
// or ready for an update.
func (f *family) without(s rollout.Set) rollout.Set {
	s.Spec -= f.aside
	s.Actual -= min(s.Actual, f.aside)
	return s
}

// condition returns a set's own condition of a type, if it is true and the set is not being
// deleted. Nil: otherwise.
func (f *family) condition(typ string) *object.Condition {
	if f == nil || f.set.Deleted() {
		return nil
	}
	c := object.FindCondition(f.set.Status.Conditions, typ)
	if c == nil || c.Status != object.True {
		return nil
	}
	return c
}
