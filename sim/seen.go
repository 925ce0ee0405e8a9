package sim

import (
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// record is how an object was last seen, and since when some of it is so.
type record[T any] struct {
	last    T
	paused  time.Time // since when it is to be left as it is, or zero
	resumed time.Time // when that ended last
	// stirred is the last change of anything that an order about the object or its neighbours is
	// made from.
	stirred time.Time

	lowered time.Time // a set: when its size was lowered last, by somebody who lived

	kept   time.Time // a machine: since when its status says that it is kept
	failed time.Time // a machine: since when it is in phase Failed
	begun  time.Time // a machine: since when its VM is being changed
	ailing bool      // a machine: it was not ready meanwhile
}

// longAgo reports whether no order from before then can still be under way from a process that
// lives. Calls to the provider take longest, and while an API does not answer, nothing makes
// progress. The zero time never was.
func (w *World) longAgo(then time.Time) bool {
	if then.IsZero() {
		return false
	}
	for a := range apiCount {
		if ends := w.outages[a].ends; ends.After(then) {
			then = ends
		}
	}
	return w.clock.now.Sub(then) > w.slowest
}

// slowest is how long a pass may take that began with what was true before.
func slowest(f *Faults) time.Duration { return 2*time.Minute + 3*f.CallTime + f.CacheLag }

// pausedLong reports whether a machine has been paused for so long that the manager no longer
// changes it.
func (w *World) pausedLong(name string) bool {
	r := w.ledger.machine(name)
	return r != nil && w.longAgo(r.paused)
}

func (l *ledger) machine(name string) *record[*machine.Machine] { return l.records[l.uids[name]] }

// sawMachine records a change of a machine, before anything else looks at it.
func (w *World) sawMachine(m *machine.Machine) {
	l, now := &w.ledger, w.clock.now
	r := l.records[m.UID]
	l.uids[m.Name] = m.UID
	if r == nil {
		r = &record[*machine.Machine]{stirred: now}
		l.records[m.UID] = r
		w.stir(m, nil)
	} else {
		w.checkChange(r, m)
		if w.stirs(r.last, m) {
			r.stirred = now
			w.stir(m, r.last)
		}
	}
	r.last = m
	if !r.paused.IsZero() && !w.isPaused(m) {
		r.resumed = now
	}
	since(&r.paused, now, w.isPaused(m))
	since(&r.failed, now, m.Status.Phase == machine.PhaseFailed)
	since(&r.kept, now, !m.Status.Preservation.Since.IsZero())
	w.sawUpdate(r, m)
}

// since keeps the time since when something is so.
func since(t *time.Time, now time.Time, is bool) {
	switch {
	case !is:
		*t = time.Time{}
	case t.IsZero():
		*t = now
	}
}

func (w *World) isPaused(m *machine.Machine) bool {
	paused, _ := machine.Paused(&m.Meta, w.machinePolicy().Keys.Paused)
	return paused
}

// stirs reports whether a set chooses by a change of a machine: all changes, except that the
// manager deletes it.
func (w *World) stirs(before, now *machine.Machine) bool {
	keys := w.setPolicy().Keys
	for _, key := range []string{w.machinePolicy().Keys.Paused, w.machinePolicy().Keys.Preserve, keys.Priority, keys.Replace} {
		if before.Annotations[key] != now.Annotations[key] {
			return true
		}
	}
	return before.Status.Phase != now.Status.Phase && !now.Deleted() || before.Spec.InPlace != now.Spec.InPlace ||
		before.Status.Preservation.Since != now.Status.Preservation.Since ||
		now.Deleted() && !before.Deleted() && !w.ledger.acting || ownerUID(before) != ownerUID(now)
}

// stir records that something has changed about the machines of a set.
func (w *World) stir(now, before *machine.Machine) {
	for _, m := range []*machine.Machine{now, before} {
		if m != nil && m.Owner != nil {
			w.ledger.stirred[m.Owner.UID] = w.clock.now
		}
	}
}

// sawSet records a change of a set.
func (w *World) sawSet(s *machineset.Set) {
	l, now := &w.ledger, w.clock.now
	r := l.setRecords[s.UID]
	if r == nil {
		r = &record[*machineset.Set]{stirred: now}
		l.setRecords[s.UID] = r
		w.checkNewSet(s)
	} else {
		w.checkSetChange(r, s)
		if r.last.Generation != s.Generation || r.last.Deleted() != s.Deleted() {
			r.stirred = now
		}
		if s.Spec.Replicas < r.last.Spec.Replicas && !l.belated {
			r.lowered = now
		}
	}
	r.last = s
	paused, _ := machine.Paused(&s.Meta, w.machinePolicy().Keys.Paused)
	if !r.paused.IsZero() && !paused {
		r.resumed = now
	}
	since(&r.paused, now, paused)
}

func ownerUID(m *machine.Machine) string {
	if m.Owner == nil {
		return ""
	}
	return m.Owner.UID
}
