package machineset

import (
	"cmp"
	"math"
	"slices"

	"github.com/millwright-go/millwright/machine"
)

// The bits of a rank, from the ones that decide last to the ones that decide
// first. The class (a request to delete or to keep the machine) decides before the priority.
const (
	requestedBits = 1
	chosenBits    = 1
	availableBits = 1
	phaseBits     = 4
	priorityBits  = 32

	chosenShift    = requestedBits
	availableShift = chosenShift + chosenBits
	phaseShift     = availableShift + availableBits
	priorityShift  = phaseShift + phaseBits
	classShift     = priorityShift + priorityBits
)

// class decides before everything else in the deletion order.
type class uint64

const (
	// classMarked: the machine is a deletion candidate, as a scaler has chosen it.
	classMarked class = 2
	// classRequested: the machine is to be replaced, and is not available.
	classRequested class = 3
	// classPlain: no request affects when this machine is deleted.
	classPlain class = 4
	// classAutomatic: the set keeps the machine for inspection.
	classAutomatic class = 5
	// classExplicit: a user keeps the machine for inspection.
	classExplicit class = 6
	// classExpired: the machine is to be replaced for its age. Only machines
	// that are to be replaced are compared then.
	classExpired class = 7
)

// order is the deletion order of the set's machines.
type order struct {
	d      *state
	chosen candidates
}

// rank returns a machine's place in the deletion order. Of two machines, the first of these
// that differs decides:
//
//  1. the class: a scaler's choice first, then unavailable machines to be replaced, then all
//     others, then those that the set keeps for inspection, then those that a user keeps;
//  2. the priority, lower first;
//  3. the phase that loses least, see phaseRank;
//  4. not available before available;
//  5. a scaler's choice that has become available since;
//  6. machines to be replaced;
//  7. the age, see Policy.Age;
//  8. the name, then the UID.
//
// Nothing else counts: not whether the node is cordoned, not how many pods run on it, and not what the
// machine costs. To have a machine deleted earlier, lower its priority, or choose it as a scaler does.
//
// A machine that runs but has not been ready for MinReady yet is not available. Neither is one
// that is selected for an in-place update, because it is about to stop. A rollout assumes that a set
// deletes unavailable machines first.
func (o order) rank(m *machine.Machine, available bool) ranked {
	priority := min(max(m.Priority(o.d.p.Keys.Priority), math.MinInt32), math.MaxInt32)
	rank := uint64(o.class(m, available))<<classShift |
		uint64(priority-math.MinInt32)<<priorityShift |
		phaseRank(m.Status.Phase)<<phaseShift
	if available {
		rank |= 1 << availableShift
	}
	if _, chosen := o.chosen[m.Name]; !chosen {
		rank |= 1 << chosenShift
	}
	if !Requested(m, o.d.p.Keys.Replace) {
		rank |= 1
	}
	return ranked{rank, o.age(m), m}
}

// phaseRank orders phases by how much is lost with a machine in them, the least first. Before all others come
// unknown phases, and Terminating of a machine that is not being deleted.
func phaseRank(p machine.Phase) uint64 {
	switch p {
	case machine.PhaseFailed:
		return 1
	case machine.PhaseCrashLoopBackOff:
		return 2
	case machine.PhaseNew:
		return 3
	case machine.PhaseUnknown:
		return 4
	case machine.PhasePending:
		return 5
	case machine.PhaseAvailable:
		return 6
	case machine.PhaseInPlaceUpdateFailed:
		return 7
	case machine.PhaseInPlaceUpdateSuccessful:
		return 8
	case machine.PhaseInPlaceUpdating:
		return 9
	case machine.PhaseRunning:
		return 10
	case machine.PhaseTerminating:
	}
	return 0
}

// age orders machines that are equal in all that counts before the age.
func (o order) age(m *machine.Machine) int64 {
	switch o.d.p.Age {
	case NewestFirst:
		return -m.CreatedAt.Unix()
	case RandomAge:
		return int64(fnv(o.d.p.Seed^offset64, m.UID))
	case OldestFirst:
	}
	return m.CreatedAt.Unix()
}

// ageWord says in an order's Why what age decides.
func (p *Policy) ageWord() string {
	switch p.Age {
	case NewestFirst:
		return "newest first"
	case RandomAge:
		return "at random"
	case OldestFirst:
	}
	return "oldest first"
}

// phaseWord returns a phase as a sentence names it.
func phaseWord(p machine.Phase) string {
	if p == machine.PhaseNew {
		return "new"
	}
	return string(p)
}

// class returns a machine's class. A machine that a user keeps for inspection is last even if a scaler chose
// it, or its replacement was requested. A replace request does not change the class of an available machine: a
// rollout assumes that a set deletes unavailable machines first.
func (o order) class(m *machine.Machine, available bool) class {
	switch {
	case o.d.preservedByUser(m):
		return classExplicit
	case o.chosen.applies(m, available, o.d.minReady()):
		return classMarked
	case !available && Requested(m, o.d.p.Keys.Replace):
		return classRequested
	case o.d.preserves(m):
		return classAutomatic
	}
	return classPlain
}

// ranked is a machine with its place in an order: lower is deleted first. Its rank is packed into an integer, so
// that a comparison rarely needs to read the machine.
type ranked struct {
	rank    uint64
	age     int64
	machine *machine.Machine
}

// compare is total: no two objects share name, namespace and UID.
func (a ranked) compare(b ranked) int {
	if a.rank != b.rank {
		return cmp.Compare(a.rank, b.rank)
	}
	if a.age != b.age {
		return cmp.Compare(a.age, b.age)
	}
	if a.machine.Name != b.machine.Name {
		return cmp.Compare(a.machine.Name, b.machine.Name)
	}
	return cmp.Compare(a.machine.UID, b.machine.UID)
}

// lowest keeps the lowest machines that it is offered, up to its limit: it is a heap with the highest of them
// on top. A limit of zero keeps none.
type lowest struct {
	limit int
	items []ranked
}

func (l *lowest) offer(r ranked) {
	switch {
	case len(l.items) < l.limit:
		l.items = append(l.items, r)
		l.up(len(l.items) - 1)
	case l.limit > 0 && r.compare(l.items[0]) < 0:
		l.items[0] = r
		l.down(0)
	}
}

func (l *lowest) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if l.items[i].compare(l.items[parent]) <= 0 {
			return
		}
		l.items[i], l.items[parent] = l.items[parent], l.items[i]
		i = parent
	}
}

func (l *lowest) down(i int) {
	for {
		top := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(l.items); child++ {
			if l.items[child].compare(l.items[top]) > 0 {
				top = child
			}
		}
		if top == i {
			return
		}
		l.items[i], l.items[top] = l.items[top], l.items[i]
		i = top
	}
}

// sorted returns the kept machines, lowest first. No more can be offered afterwards.
func (l *lowest) sorted() []ranked {
	slices.SortFunc(l.items, ranked.compare)
	return l.items
}
