package deployment

import (
	"cmp"
	"math"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
)

// summary is what was counted: the sets of the deployment, and which of them is the new one.
type summary struct {
	situation
	sets     []family  // of this deployment, the oldest first
	current  *family   // the new set, one of sets; nil: there is none
	failed   []failing // the newest first, as many as are listed
	failures int32     // this many there are

	revision int64 // of the new set: what it has, or will get
	bounds   rollout.Bounds

	stuck heldUp // machines that don't get on

	rolloutFailures RolloutFailures // as the status should have them
	stopAfter       int32           // so many failures stop the rollout; zero: none do
}

// newest returns the set that was the new one last. Nil: there is none.
func (d *summary) newest() *family {
	var found *family
	for i := range d.sets {
		f := &d.sets[i]
		if f.set.Deleted() {
			continue
		}
		if found == nil || cmp.Or(cmp.Compare(f.set.Revision, found.set.Revision), olderFirst(f.set, found.set)) > 0 {
			found = f
		}
	}
	return found
}

// updatesInPlace reports whether machines of old sets are being updated in place.
func (d *summary) updatesInPlace() bool {
	spec := &d.deployment.Spec
	return spec.Strategy.Kind == InPlaceUpdate && !spec.Paused && d.current != nil
}

// family returns the set of that name that can be given orders.
func (d *summary) family(name string) *family {
	for i := range d.sets {
		if f := &d.sets[i]; f.set.Name == name && !f.set.Deleted() {
			return f
		}
	}
	return nil
}

// target returns the set that an updated machine belongs to: the one it was selected for or, if
// that is not known or gone, the new one. Nil: it is there already, or there is none.
func (d *summary) target(f *family, m *machine.Machine) *family {
	to := d.current
	if key := d.p.Keys.InPlaceTarget; key != "" && m.Annotations[key] != "" {
		if noted := d.family(m.Annotations[key]); noted != nil {
			to = noted
		}
	}
	if to == f {
		return nil
	}
	return to
}

// rolling reports whether a rollout is under way: there is a new set, and another one has machines,
// or should have some.
func (d *summary) rolling() bool {
	if d.current == nil {
		return false
	}
	for i := range d.sets {
		if f := &d.sets[i]; f != d.current && f.inUse() && max(f.size(), f.actual) > f.aside {
			return true
		}
	}
	return false
}

// findNewSet returns a set, not being deleted, that has the deployment's template. Nil: none has.
// If there are several, it is the one that was the new set last, or else the oldest, because an old
// set may have a template that another set got later.
func (d *summary) findNewSet() (found *family) {
	for i := range d.sets {
		f := &d.sets[i]
		if !f.set.Deleted() && d.wanted(f.set) && (found == nil || f.set.Revision > found.set.Revision) {
			found = f
		}
	}
	return found
}

// expired returns how many machines are too old.
func (d *summary) expired() (n int32) {
	for i := range d.sets {
		n += d.sets[i].expired
	}
	return n
}

// fresh reports whether the new set has never had a machine, or is not created yet.
func (d *summary) fresh() bool {
	f := d.current
	return f == nil || f.actual == 0 && f.set.Instructions.Reservation.Settled == 0 && f.announced == f.set.Instructions.Reservation.Reserved
}

// revisionOf returns the revision of a set when it is the new one: its own if that is above all
// others, else the next. For nil it is that of a set not created yet. After the last number there
// is no next, and two sets share it.
func (d *summary) revisionOf(f *family) int64 {
	own, others := int64(0), int64(0)
	for i := range d.sets {
		if g := &d.sets[i]; g == f {
			own = g.set.Revision
		} else {
			others = max(others, g.set.Revision)
		}
	}
	switch {
	case own > others:
		return own
	case others == math.MaxInt64:
		return others
	}
	return others + 1
}

// resizable returns the set with this UID, if it can be resized.
func (d *summary) resizable(uid string) *family {
	for i := range d.sets {
		if f := &d.sets[i]; f.set.UID == uid && !f.set.Deleted() {
			return f
		}
	}
	return nil
}
