package rollout

import "fmt"

// Reason is the kind of a decision, one word for programs.
type Reason string

// The reasons of orders.
const (
	// ReasonNewAboveReplicas: the new set has more machines than are wanted.
	ReasonNewAboveReplicas Reason = "NewAboveReplicas"
	// ReasonScaleDown: more machines are ordered than R + S; all sets give up their share.
	ReasonScaleDown Reason = "ScaleDown"
	// ReasonNewGrows: R and R + S leave room for new machines.
	ReasonNewGrows Reason = "NewGrows"
	// ReasonOldUnavailable: old machines go that are not available, which costs nothing.
	ReasonOldUnavailable Reason = "OldUnavailable"
	// ReasonOldAvailable: old machines go as more are available than the floor, some of them available.
	ReasonOldAvailable Reason = "OldAvailable"
)

// The reasons about a fleet, the second result of [Step].
const (
	// ReasonOrdered: there are orders, which have their own reasons.
	ReasonOrdered Reason = "Ordered"
	// ReasonDone: see [Done].
	ReasonDone Reason = "Done"
	// ReasonNoNewSet: no set has the template wanted now, so nothing grows and nothing is rolled.
	ReasonNoNewSet Reason = "NoNewSet"
	// ReasonFloor: no old machine may go until new ones are available.
	ReasonFloor Reason = "Floor"
	// ReasonRemoval: a set has yet to remove machines that it is no longer ordered to have.
	ReasonRemoval Reason = "Removal"
	// ReasonNewUnavailable: all that is left is that new machines become available.
	ReasonNewUnavailable Reason = "NewUnavailable"
)

// Why is the reason of an order, or of there being none, with the numbers it rests on, in machines unless said
// otherwise. Values are comparable, making one allocates nothing, and numbers that a reason does not name are 0. The
// zero value is no reason.
type Why struct {
	Reason Reason
	// Set is the set that is waited for (Floor, Removal, NewUnavailable).
	Set string
	// Count is how many machines come (NewGrows), go (the other orders) or are waited for: to become available (Floor,
	// NewUnavailable), or to be removed from Set (Removal). NoNewSet: machines that stay; Done: R; Ordered: sets that
	// change size.
	Count int64
	// Share is how many of Count go as the set's part of the excess above the ceiling (ScaleDown).
	Share int64
	// Kept is how many of Count are there already: the new set was to remove them and has not (NewGrows).
	Kept int64
	// Unavailable is how many of Count are not available, whether they exist or not (orders that lower).
	Unavailable int64
	// Total is how many machines were ordered in all sets before this decision. NewGrows: how many there may be besides
	// those that come, ordered or, in old sets, still there. NewAboveReplicas, NewUnavailable: those ordered in the
	// new set.
	Total int64
	// Available is how many of Total are available (orders that lower, Floor, NewUnavailable); NewAboveReplicas: of all
	// ordered machines.
	Available int64
	// Floor is how many machines must stay available, max(0, R − U) (orders that lower, Floor).
	Floor int64
	// Ceiling is how many machines there may be, R + S (orders, Floor); NewAboveReplicas: R.
	Ceiling int64
}

// String is the sentence a person can act on, such as "2 of 5 machines available, floor is 4: no old machine may go;
// waiting for 3 machines of new set web-2 to become available".
func (w Why) String() string {
	switch w.Reason {
	case ReasonNewAboveReplicas:
		return fmt.Sprintf("%s ordered of the new set, %d wanted: %d may go", machines(w.Total, ""), w.Ceiling, w.Count)
	case ReasonScaleDown:
		return w.scaleDown()
	case ReasonNewGrows:
		return w.newGrows()
	case ReasonOldUnavailable:
		return fmt.Sprintf("%s: %s may go, being unavailable", w.availability(), machines(w.Count, "old "))
	case ReasonOldAvailable:
		return w.oldAvailable()
	case ReasonOrdered:
		return fmt.Sprintf("%d %s to be resized", w.Count, plural(w.Count, "set is", "sets are"))
	case ReasonDone:
		return fmt.Sprintf("done: %d of %s new and available, no old one left", w.Count, machines(w.Count, ""))
	case ReasonNoNewSet:
		return fmt.Sprintf("no set has the wanted template yet: %s %s",
			machines(w.Count, "old "), plural(w.Count, "stays", "stay"))
	case ReasonFloor:
		return fmt.Sprintf("%s: no old machine may go; waiting for %s of new set %s to become available",
			w.availability(), machines(w.Count, ""), w.Set)
	case ReasonRemoval:
		return fmt.Sprintf("waiting for %s of set %s to be removed", machines(w.Count, "surplus "), w.Set)
	case ReasonNewUnavailable:
		return fmt.Sprintf("%d of %s available: waiting for %d more of set %s",
			w.Available, machines(w.Total, "new "), w.Count, w.Set)
	}
	return string(w.Reason)
}

func (w Why) newGrows() string {
	if w.Kept == 0 {
		return fmt.Sprintf("%s ordered or still there, ceiling is %d: %s may come",
			machines(w.Total, ""), w.Ceiling, machines(w.Count, "new "))
	}
	s := fmt.Sprintf("ceiling is %d: %s that had to go may stay", w.Ceiling, machines(w.Kept, "new "))
	if more := w.Count - w.Kept; more > 0 {
		s += fmt.Sprintf(", %d more may come", more)
	}
	return s
}

func (w Why) scaleDown() string {
	s := fmt.Sprintf("%s ordered, ceiling is %d: %d of this set may go", machines(w.Total, ""), w.Ceiling, w.Count)
	if w.Share < w.Count {
		s += fmt.Sprintf(", %d as its share of the excess", w.Share)
	}
	return s
}

func (w Why) oldAvailable() string {
	s := fmt.Sprintf("%s: %s may go", w.availability(), machines(w.Count, "old "))
	if w.Unavailable > 0 {
		s += fmt.Sprintf(", %d of them not available", w.Unavailable)
	}
	return s
}

func (w Why) availability() string {
	return fmt.Sprintf("%d of %s available, floor is %d", w.Available, machines(w.Total, ""), w.Floor)
}

// machines is "1 old machine", "3 old machines"; the adjective ends in a space.
func machines(n int64, adjective string) string {
	return fmt.Sprintf("%d %s%s", n, adjective, plural(n, "machine", "machines"))
}

func plural(n int64, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
