package rollout

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Reason names the kind of a decision, in one word for programs.
type Reason string

// These are the reasons of orders.
const (
	// ReasonNewAboveReplicas: the new set has more machines than are wanted.
	ReasonNewAboveReplicas Reason = "NewAboveReplicas"
	// ReasonScaleDown: more machines are ordered than R + S; all sets give up their share.
	ReasonScaleDown Reason = "ScaleDown"
	// ReasonMarked: a scaler has chosen machines of the set for deletion.
	ReasonMarked Reason = "Marked"
	// ReasonNewGrows: R and R + S leave room for new machines.
	ReasonNewGrows Reason = "NewGrows"
	// ReasonOldUnavailable: unavailable old machines are removed, which costs no availability.
	ReasonOldUnavailable Reason = "OldUnavailable"
	// ReasonOldAvailable: old machines are removed, some of them available, because more are
	// available than the floor.
	ReasonOldAvailable Reason = "OldAvailable"
	// ReasonRestored: old machines that were to be removed stay, because others have failed.
	ReasonRestored Reason = "Restored"
	// ReasonAboveReplicas: the only set in use has more machines than are wanted ([Resize]).
	ReasonAboveReplicas Reason = "AboveReplicas"
	// ReasonGrows: more machines are wanted than are ordered ([Resize]).
	ReasonGrows Reason = "Grows"
	// ReasonRecreate: all machines of an old set are removed before a new one is created ([Recreate]).
	ReasonRecreate Reason = "Recreate"
	// ReasonOldMissing: an old set has fewer machines than it is ordered to have; new machines
	// replace the missing ones ([InPlace]).
	ReasonOldMissing Reason = "OldMissing"
	// ReasonLeftover: the new set has all wanted machines, so old ones are removed ([InPlace]).
	ReasonLeftover Reason = "Leftover"
	// ReasonSelect: machines may stop working to be updated ([InPlace]).
	ReasonSelect Reason = "Select"
)

// These are the reasons about a fleet: the second result of [Step], [Resize] and [Recreate], the
// third of [InPlace].
const (
	// ReasonOrdered: there are orders, which have their own reasons.
	ReasonOrdered Reason = "Ordered"
	// ReasonDone: see [Done].
	ReasonDone Reason = "Done"
	// ReasonNoNewSet: no set has the template wanted now, so nothing grows and nothing is rolled out.
	ReasonNoNewSet Reason = "NoNewSet"
	// ReasonFloor: no old machine may be removed until new ones are available.
	ReasonFloor Reason = "Floor"
	// ReasonRemoval: a set has yet to remove machines that it is no longer ordered to have.
	ReasonRemoval Reason = "Removal"
	// ReasonUnseen: a set was raised and may not have observed that. Until it has, it may be removing
	// machines.
	ReasonUnseen Reason = "Unseen"
	// ReasonNewUnavailable: only new machines that are not available yet are left.
	ReasonNewUnavailable Reason = "NewUnavailable"
	// ReasonHeld: there is nothing to scale, and the rollout is paused ([Resize]).
	ReasonHeld Reason = "Held"
	// ReasonQuota: terminating machines count towards R + S ([Fleet.Strict]) and leave no room for
	// more.
	ReasonQuota Reason = "Quota"
	// ReasonOldPresent: machines of an old set still exist, so no new one may be created ([Recreate]).
	ReasonOldPresent Reason = "OldPresent"
	// ReasonPaused: a set is paused ([Set.Paused]), and does not have its final size.
	ReasonPaused Reason = "Paused"
	// ReasonUpdating: machines are being updated ([InPlace]).
	ReasonUpdating Reason = "Updating"
	// ReasonUnselected: the user has to select machines to be updated ([InPlace]).
	ReasonUnselected Reason = "Unselected"
	// ReasonUnfit: none of the old machines can be updated as it is, or those that can have to
	// stay in service until others recover or are replaced ([InPlace]).
	ReasonUnfit Reason = "Unfit"
	// ReasonNoSelect: machines could be updated, but none may be selected ([InPlace]).
	ReasonNoSelect Reason = "NoSelect"
	// ReasonStopped: as many machines have failed as [Fleet.StopAfter] says ([Step], [InPlace]).
	ReasonStopped Reason = "Stopped"
)

// Why is the reason of an order, or of a wait, with its numbers. They are numbers of machines unless said
// otherwise. A number is 0 if its comment does not name the reason. Values are comparable, and making one
// allocates nothing. The zero value means no reason.
type Why struct {
	Reason Reason
	// Set is the set that the rollout waits for (Floor, Removal, Unseen, NewUnavailable, Quota,
	// OldPresent, Paused, Updating, Unselected, NoSelect, Unfit); of several sets it is the oldest.
	Set string
	// Count is, by reason:
	//
	//   - NewGrows, Grows, Restored: how many are added to the set
	//   - other orders that change a size: how many are removed from the set
	//   - Select: how many are selected
	//   - Floor, NewUnavailable: how many have yet to become available
	//   - Removal, Unseen: how many Set has yet to remove, or may be removing
	//   - Quota: how many are terminating
	//   - OldPresent: how many exist in Set
	//   - Paused: how many are ordered or exist in Set, the larger number
	//   - Updating, Unselected, NoSelect: how many are selected, or could be
	//   - Unfit: how many of Set and other old sets the rollout waits for
	//   - NoNewSet: how many stay; Done: R; Held: how many are ordered in old sets
	//   - Stopped: how many have failed; Ordered: how many orders there are
	Count int64
	// Share is how many of Count are removed as the set's part of the excess above the ceiling
	// (ScaleDown), or as chosen by a scaler (Marked).
	Share int64
	// Kept is how many of Count exist already: the set was to remove them and has not (NewGrows,
	// Grows).
	Kept int64
	// Unavailable is how many of Count are not available, whether they exist or not (orders that
	// lower).
	Unavailable int64
	// Terminating is how many of Count are being deleted (OldPresent).
	Terminating int64
	// Total is how many machines were ordered in all sets before this decision; for Select, after it. For
	// NewGrows and Grows it is how many there may be without the added ones. For NewAboveReplicas,
	// AboveReplicas, Quota and NewUnavailable it is how many are ordered in that set. For Stopped it is how
	// many may fail.
	Total int64
	// Available is how many of Total are available (orders that lower, Restored, Select, Floor,
	// NewUnavailable). For NewAboveReplicas and AboveReplicas it is how many of the machines ordered in all
	// sets are.
	Available int64
	// Floor is how many machines must stay available, max(0, R − U) (orders that lower, Restored,
	// Floor, Select).
	Floor int64
	// Ceiling is how many machines there may be, R + S (orders, Floor, Quota). For NewAboveReplicas,
	// AboveReplicas, Held and orders of [Recreate] it is R.
	Ceiling int64
}

// Figures returns the numbers of the reason, for logs and metrics: the names are those of the fields in lower
// case, the values are int64. A number that is 0 is left out, unless String prints it.
func (w Why) Figures() iter.Seq2[string, any] {
	said := ""
	switch w.Reason {
	case "":
		return func(func(string, any) bool) {}
	case ReasonMarked:
		said = "share total available floor"
	case ReasonOldUnavailable, ReasonOldAvailable, ReasonRestored, ReasonSelect, ReasonFloor:
		said = "total available floor"
	case ReasonNewUnavailable:
		said = "total available"
	case ReasonScaleDown:
		said = "share total ceiling"
	case ReasonNewAboveReplicas, ReasonAboveReplicas, ReasonNewGrows, ReasonGrows, ReasonHeld, ReasonQuota:
		said = "total ceiling"
	}
	return func(yield func(string, any) bool) {
		for _, f := range []struct {
			name string
			n    int64
		}{
			{"count", w.Count}, {"share", w.Share}, {"kept", w.Kept}, {"unavailable", w.Unavailable}, {"terminating", w.Terminating},
			{"total", w.Total}, {"available", w.Available}, {"floor", w.Floor}, {"ceiling", w.Ceiling},
		} {
			always := f.name == "count" || slices.Contains(strings.Fields(said), f.name)
			if (f.n != 0 || always) && !yield(f.name, f.n) {
				return
			}
		}
	}
}

// String returns a sentence for people, such as "2 of 5 machines available, floor is 4: no old
// machine may go; waiting for 3 machines of new set web-2 to become available".
func (w Why) String() string {
	switch w.Reason {
	case ReasonNewAboveReplicas:
		return fmt.Sprintf("%s ordered of the new set, %d wanted: %d may go", machines(w.Total, ""), w.Ceiling, w.Count)
	case ReasonScaleDown:
		return w.scaleDown()
	case ReasonMarked:
		return fmt.Sprintf("%s: %s may go, %d chosen by a scaler", w.availability(), machines(w.Count, ""), w.Share)
	case ReasonNewGrows:
		return w.grows("new ")
	case ReasonOldUnavailable:
		return fmt.Sprintf("%s: %s may go, being unavailable", w.availability(), machines(w.Count, "old "))
	case ReasonOldAvailable:
		return w.oldAvailable()
	case ReasonRestored:
		return fmt.Sprintf("%s: %s that had to go may stay", w.availability(), machines(w.Count, "old "))
	case ReasonGrows:
		return w.grows("")
	case ReasonAboveReplicas:
		return fmt.Sprintf("%s ordered of the one set in use, %d wanted: %d may go", machines(w.Total, ""), w.Ceiling, w.Count)
	case ReasonRecreate:
		return fmt.Sprintf("%s of this set to go before any new one comes", machines(w.Count, "old "))
	case ReasonOldMissing, ReasonLeftover, ReasonSelect, ReasonUpdating, ReasonUnselected, ReasonNoSelect, ReasonUnfit:
		return w.inPlace()
	}
	return w.state()
}

// state returns the sentence about a fleet.
func (w Why) state() string {
	switch w.Reason {
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
	case ReasonHeld:
		return fmt.Sprintf("nothing is rolled: %s ordered, %d of them old, %d wanted", machines(w.Total, ""), w.Count, w.Ceiling)
	case ReasonQuota:
		return fmt.Sprintf("%s of set %s; waiting for %s to be gone, which count: ceiling is %d",
			machines(w.Total, ""), w.Set, machines(w.Count, "terminating "), w.Ceiling)
	case ReasonOldPresent:
		return w.oldPresent()
	case ReasonStopped:
		return fmt.Sprintf("the rollout has stopped: %s failed, the limit is %d", machines(w.Count, ""), w.Total)
	case ReasonPaused:
		return fmt.Sprintf("set %s is paused, with %s", w.Set, machines(w.Count, ""))
	case ReasonRemoval:
		return fmt.Sprintf("waiting for %s of set %s to be removed", machines(w.Count, "surplus "), w.Set)
	case ReasonUnseen:
		return fmt.Sprintf("set %s may still be removing %s: waiting for it to observe its new size", w.Set, machines(w.Count, ""))
	case ReasonNewUnavailable:
		return fmt.Sprintf("%d of %s available: waiting for %d more of set %s",
			w.Available, machines(w.Total, "new "), w.Count, w.Set)
	}
	return string(w.Reason)
}

func (w Why) grows(adjective string) string {
	if w.Kept == 0 {
		return fmt.Sprintf("%s ordered or still there, ceiling is %d: %s may come",
			machines(w.Total, ""), w.Ceiling, machines(w.Count, adjective))
	}
	s := fmt.Sprintf("ceiling is %d: %s that had to go may stay", w.Ceiling, machines(w.Kept, adjective))
	if more := w.Count - w.Kept; more > 0 {
		s += fmt.Sprintf(", %d more may come", more)
	}
	return s
}

func (w Why) oldPresent() string {
	s := fmt.Sprintf("waiting for %s of set %s to be gone before new ones come", machines(w.Count, "old "), w.Set)
	if w.Terminating > 0 {
		s += fmt.Sprintf("; %d being deleted", w.Terminating)
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

// machines returns "1 old machine", "3 old machines". The adjective ends in a space.
func machines(n int64, adjective string) string {
	return fmt.Sprintf("%d %s%s", n, adjective, plural(n, "machine", "machines"))
}

func plural(n int64, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// inPlace returns the sentence of a reason that only [InPlace] gives.
func (w Why) inPlace() string {
	switch w.Reason {
	case ReasonOldMissing:
		return fmt.Sprintf("%s missing: new ones replace them", machines(w.Count, "old "))
	case ReasonLeftover:
		return fmt.Sprintf("%s: the new set has all it should have, %s may go", w.availability(), machines(w.Count, "old "))
	case ReasonSelect:
		return fmt.Sprintf("%s: %s may stop for an update", w.availability(), machines(w.Count, ""))
	case ReasonUpdating:
		return fmt.Sprintf("waiting for %s to be updated in place, first in set %s", machines(w.Count, ""), w.Set)
	case ReasonNoSelect:
		return fmt.Sprintf("%s could be updated in place, first in set %s, but none may be selected now", machines(w.Count, ""), w.Set)
	case ReasonUnselected:
		return fmt.Sprintf("waiting for a user to select machines to update: %s selectable, first in set %s",
			machines(w.Count, ""), w.Set)
	}
	return fmt.Sprintf("waiting for %s of set %s: not ready for an update in place", machines(w.Count, "old "), w.Set)
}
