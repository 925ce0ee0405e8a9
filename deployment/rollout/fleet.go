package rollout

import (
	"fmt"
	"strings"
)

// Set is what is known of one set of machines that share a template. Negative numbers count as 0.
type Set struct {
	// Name is returned with the orders and reasons about this set. [Check] finds the set by it.
	Name string
	// New says that this set has the template wanted now. At most one set is new. If several are,
	// the last one counts as new and the others as old.
	New bool
	// Spec is the ordered size in machines: the last order, whether the set has followed it yet or
	// not.
	Spec int32
	// Actual is how many machines exist and are not terminating.
	Actual int32
	// Available is how many of Actual are available. More than Actual counts as Actual.
	Available int32
	// Terminating is how many machines exist besides Actual and are being deleted. It is read by
	// [Recreate], by [Resize] if the fleet has Apart, and by all functions if it has Strict.
	Terminating int32
	// Chosen is how many of the set's machines a scaler has chosen for deletion with the replicas
	// that it has just removed. The set shrinks by this number now, before the rest of a scale-down is
	// shared among all sets. It does so even if R + S machines or fewer are ordered, as long as more than
	// R are. It does not if availability would fall below the floor. More than Spec counts as Spec.
	// The caller must tell the set which machines these are together with the order, and must not pass
	// them again.
	Chosen int32
	// Selected is how many of Actual are selected for an update in place, being updated, or updated and
	// not moved yet. They do not work meanwhile: none of them is in Available. Only [InPlace] reads it.
	Selected int32
	// Selectable is how many of Available could be selected now. More than Available counts as
	// Available. Only [InPlace] reads it.
	Selectable int32
	// Accounted is how many machines of the surplus cost no available machine when the set removes its
	// surplus. They are in Actual and not in Available: machines that do not exist yet but may be
	// created, machines left out of Available because the set removes them first, and machines that the
	// set does not remove. It can't exceed Actual − Available. Zero is the safe value: the set may be
	// removing available machines for all of its surplus.
	Accounted int32
	// Behind is by how many machines the size on which the set may still act is below Spec. It is not
	// zero if the set had surplus machines when Spec was raised, and has not observed the new size yet.
	// More than Spec counts as Spec.
	Behind int32
	// Paused says that the set gets no order and no selection. Its machines stay and count, including the
	// unavailable ones.
	Paused bool
	// Deleting says that the set itself is being deleted: its Spec counts as 0, it gets no order, and
	// it is not the new one even if New is set.
	Deleting bool
}

// ordered returns Spec, or 0 if Spec is negative or the set is being deleted.
func (s *Set) ordered() int32 {
	if s.Deleting {
		return 0
	}
	return max(s.Spec, 0)
}

// Fleet is the input of [Step], [Resize], [Recreate] and [InPlace]. The zero value wants no machines and
// has none.
type Fleet struct {
	// Replicas is how many machines are wanted. Negative counts as 0.
	Replicas int32
	// Bounds is how far the number of machines may be from Replicas; see [Fenceposts].
	Bounds Bounds
	// Sets are all sets, the oldest first; the new one may be anywhere. Without a new one nothing grows
	// and nothing is rolled out. The package does not change it.
	Sets []Set
	// Apart says that machines of two sets must not exist at the same time, as in [Recreate]. Only
	// [Resize] reads it.
	Apart bool
	// Strict counts terminating machines toward R + S, so that a provider's quota of that size is
	// never exceeded. The sets must comply, too: a set creates no machine while its machines,
	// including terminating ones, are as many as ordered.
	Strict bool
	// NoRestore says that an old set can't be raised to keep machines that it was ordered to remove.
	// Then no other set is lowered to make room for that either. Only [Step] reads it.
	NoRestore bool
	// Manual says that the fleet's user selects the machines to be updated. Only [InPlace] reads
	// it.
	Manual bool
	// NoSelect says that no machine may be selected now. Only [InPlace] reads it.
	NoSelect bool
	// StopAfter is the number of failed machines that stops the rollout. A rollout that has stopped
	// still scales: [Step] then does what [Resize] does, and [InPlace] selects no machine. [Recreate] does
	// not read it. Zero or negative: the rollout never stops.
	StopAfter int32
	// Failed is how many machines of this rollout have failed. It is read only if StopAfter is set.
	Failed int32
}

// String returns a table for people, one line for the fleet and one for each set. Rarely used fields are shown
// only if they are not zero.
func (f Fleet) String() string {
	var d decision
	d.open(Fleet{Replicas: f.Replicas, Bounds: f.Bounds}, nil, -1)
	var b strings.Builder
	fmt.Fprintf(&b, "R %d, S %d, U %d: ceiling %d, floor %d", f.Replicas, f.Bounds.Surge, f.Bounds.Unavailable, d.ceiling, d.floor)
	flag(&b, ", apart", f.Apart)
	flag(&b, ", strict", f.Strict)
	flag(&b, ", no restore", f.NoRestore)
	flag(&b, ", manual", f.Manual)
	flag(&b, ", no select", f.NoSelect)
	number(&b, ", stop after", f.StopAfter)
	number(&b, ", failed", f.Failed)
	width := 0
	for i := range f.Sets {
		width = max(width, len(f.Sets[i].Name))
	}
	for i := range f.Sets {
		f.Sets[i].line(&b, width)
	}
	return b.String()
}

// line adds the set's line, with its name padded to width.
func (s *Set) line(b *strings.Builder, width int) {
	template := "old"
	if s.New {
		template = "new"
	}
	fmt.Fprintf(b, "\n  %-*s  %s  spec %2d  actual %2d  available %2d", width, s.Name, template, s.Spec, s.Actual, s.Available)
	number(b, "  terminating", s.Terminating)
	number(b, "  marked", s.Chosen)
	number(b, "  selected", s.Selected)
	number(b, "  selectable", s.Selectable)
	number(b, "  accounted", s.Accounted)
	number(b, "  behind", s.Behind)
	flag(b, "  paused", s.Paused)
	flag(b, "  going", s.Deleting)
}

func flag(b *strings.Builder, name string, is bool) {
	if is {
		b.WriteString(name)
	}
}

func number(b *strings.Builder, name string, n int32) {
	if n != 0 {
		fmt.Fprintf(b, "%s %2d", name, n)
	}
}

// Stopped reports whether the rollout has stopped because machines failed.
func (f Fleet) Stopped() bool { return f.StopAfter > 0 && f.Failed >= f.StopAfter }

// whyStopped returns the reason of a wait while the rollout has stopped.
func (f Fleet) whyStopped() Why {
	return Why{Reason: ReasonStopped, Count: int64(f.Failed), Total: int64(f.StopAfter)}
}

// newSet returns the position of the new set, or -1 if there is none.
func (f Fleet) newSet() int {
	for i := len(f.Sets) - 1; i >= 0; i-- {
		if f.Sets[i].New && !f.Sets[i].Deleting {
			return i
		}
	}
	return -1
}

// Done reports whether the rollout is complete: there is a new set; its ordered size, its existing and its
// available machines are as many as wanted; and the old sets have size 0 and no machines. Step then orders
// nothing.
func Done(f Fleet) bool {
	current := f.newSet()
	if current < 0 {
		return false
	}
	for i := range f.Sets {
		set, wanted := &f.Sets[i], int32(0)
		if i == current {
			wanted = max(f.Replicas, 0)
		}
		available := min(set.Available, set.Actual)
		if set.ordered() != wanted || max(set.Actual, 0) != wanted || max(available, 0) != wanted {
			return false
		}
	}
	return true
}
