package machineset

import (
	"github.com/millwright-go/millwright/machine"
)

// A machine that is paused is deleted by no set, for any reason: the set
// is too large, is being deleted, or the machine failed or is to be replaced.
// It counts as one of the set's, so none is made in its place. If it is not
// available, it takes the place of one that would be deleted: a rollout assumes
// that a set which shrinks first deletes what is not available, so no other
// machine may be deleted instead.

// spared are the machines that are paused and not being deleted.
type spared struct {
	count int
	idle  int    // of these, not available, or about to stop
	first string // of their names, in order
}

func (s *spared) add(m *machine.Machine, available bool) {
	if s.count++; s.count == 1 || m.Name < s.first {
		s.first = m.Name
	}
	if !available {
		s.idle++
	}
}

// spares reports whether a machine is paused.
func (d *situation) spares(m *machine.Machine) bool {
	paused, _ := machine.Paused(&m.Meta, d.p.Keys.Paused)
	return paused
}
