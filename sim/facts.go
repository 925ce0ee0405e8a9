package sim

import (
	"time"

	"github.com/millwright-go/millwright/object"
)

// facts are what a world notes of its own doings and of its users', so that the manager is not held
// to what it could not know or did not do.
type facts struct {
	acting  bool // the manager is, not the world
	belated bool // it is a dead one, whose order is an old one

	excused   map[string]bool // machines, by UID, that somebody else deletes
	orphanVMs map[string]bool // VMs that were not made through the driver
	late      map[string]bool // machines whose VM was made when its caller was dead
	lateTags  map[string]bool // machines whose VM was changed by a call of the dead
	cordoned  map[string]bool // nodes, by UID, that a user has cordoned
	misled    map[string]bool // machines for which GetMachineStatus named no node, though there may be one

	lateGroups map[object.Key]bool // pools that are gone and have a group, or may get one from a call that comes late
	forgotten  map[string]bool     // UIDs of pools whose record somebody took away
}

func newFacts() facts {
	return facts{
		excused: map[string]bool{}, orphanVMs: map[string]bool{}, late: map[string]bool{}, lateTags: map[string]bool{},
		cordoned: map[string]bool{}, misled: map[string]bool{}, lateGroups: map[object.Key]bool{}, forgotten: map[string]bool{},
	}
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
