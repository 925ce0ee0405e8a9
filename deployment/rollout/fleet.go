package rollout

import (
	"fmt"
	"strings"
)

// Set is what is known of one set of machines that share a template. Negative numbers count as 0.
type Set struct {
	// Name is returned with the orders for this set. Nothing else reads it.
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
	// Terminating is how many machines exist besides Actual and are being deleted. Only [Recreate],
	// [Resize] of a fleet with Apart, and all with Strict read it.
	Terminating int32
	// Marked is how many of the set's machines a scaler has chosen for deletion with the replicas
	// it has just removed. The set removes them now, before others share what is left, even if what
	// is ordered does not exceed R + S, as long as it exceeds R. The floor comes first. More than
	// Spec counts as Spec. Zero means none. The set must be told at once which machines it loses,
	// and the caller must not pass them again.
	Marked int32
	// Selected is how many of Actual are to be updated in place, or being updated, or done and not
	// moved yet. They do not work meanwhile: none of them is in Available. Only [InPlace] reads it
	// and Selectable.
	Selected int32
	// Selectable is how many of Available could be selected now. More than Available counts as
	// Available.
	Selectable int32
	// Accounted is how many of Actual, none of them Available, cost no available machine although
	// they are surplus. These are the machines that do not exist yet but may come, those left out
	// of Available because the set removes them first, and those that the set leaves alone. More
	// than the others of Actual counts as all of these. Zero is the careful value: the set may be
	// removing available machines for all of its surplus.
	Accounted int32
	// Behind is by how many machines the set may still act below Spec. The set had more machines
	// than it was ordered to have when Spec was raised, and has not said since that it knows the
	// new size. More than Spec counts as Spec. Zero means that it knows its size.
	Behind int32
	// Paused says that the set must be left as it is. It gets no order and no selection. What it
	// has stays and counts, including its unavailable machines.
	Paused bool
	// Going says that the set itself is being deleted: its Spec counts as 0, it gets no order, and
	// it is not the new one even if New is set.
	Going bool
}

// ordered returns the ordered size as it counts.
func (s *Set) ordered() int32 {
	if s.Going {
		return 0
	}
	return max(s.Spec, 0)
}

// Fleet is all that [Step], [Resize], [Recreate] and [InPlace] decide on, as of one moment. The
// zero value wants no machines and has none.
type Fleet struct {
	// Replicas is how many machines are wanted. Negative counts as 0.
	Replicas int32
	// Bounds is how far the rollout may leave Replicas, both ways; see [Fenceposts].
	Bounds Bounds
	// Sets are all sets, the oldest first, the new one anywhere. Without a new one nothing grows
	// and nothing is rolled. The package only reads it.
	Sets []Set
	// Apart says that machines of two sets must not be made to exist at the same time, as in
	// [Recreate]. Only [Resize] reads it.
	Apart bool
	// Strict counts terminating machines toward R + S, so that a provider's quota of that size is
	// never exceeded. The sets must comply, too: a set makes no machine while it has as many as
	// ordered, terminating ones included.
	Strict bool
	// NoRestore says that an old set can't be raised to keep machines that it was to remove. Then
	// no other set is lowered to make room for that either. Only [Step] reads it.
	NoRestore bool
	// Manual says that the fleet's user selects the machines to be updated. Only [InPlace] reads
	// it.
	Manual bool
	// NoSelect says that no machine may be selected now. Only [InPlace] reads it.
	NoSelect bool
	// StopAfter is how many machines may fail before the rollout stops. A rollout that has stopped
	// still scales. [Step] then is as [Resize]; [InPlace] selects no machine. [Recreate] does not
	// read it. Zero or negative: it never stops.
	StopAfter int32
	// Failed is how many machines of this rollout have failed. Only with StopAfter it is read.
	Failed int32
}

// String returns a table for people, one line for the fleet and one for each set. Of what is rarely
// used it shows what is not zero.
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

// line adds the set's line, with its name in so many columns.
func (s *Set) line(b *strings.Builder, width int) {
	template := "old"
	if s.New {
		template = "new"
	}
	fmt.Fprintf(b, "\n  %-*s  %s  spec %2d  actual %2d  available %2d", width, s.Name, template, s.Spec, s.Actual, s.Available)
	number(b, "  terminating", s.Terminating)
	number(b, "  marked", s.Marked)
	number(b, "  selected", s.Selected)
	number(b, "  selectable", s.Selectable)
	number(b, "  accounted", s.Accounted)
	number(b, "  behind", s.Behind)
	flag(b, "  paused", s.Paused)
	flag(b, "  going", s.Going)
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

// Stopped reports whether so many machines have failed that nothing is rolled any more.
func (f Fleet) Stopped() bool { return f.StopAfter > 0 && f.Failed >= f.StopAfter }

// stopped is the reason for that.
func (f Fleet) stopped() Why {
	return Why{Reason: ReasonStopped, Count: int64(f.Failed), Total: int64(f.StopAfter)}
}

// newSet returns the position of the new set, or -1 if there is none.
func (f Fleet) newSet() int {
	for i := len(f.Sets) - 1; i >= 0; i-- {
		if f.Sets[i].New && !f.Sets[i].Going {
			return i
		}
	}
	return -1
}

// Done reports whether the rollout is complete: there is a new set, its ordered size and its
// existing and available machines are as many as wanted, and the old sets have neither orders nor
// machines left. Step then orders nothing.
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
