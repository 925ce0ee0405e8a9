package sim

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// choice is the last choice of a scaler in a fleet that was at rest.
type choice struct {
	names      []string
	at         time.Time
	generation int64 // of the deployment after the choice
}

// p20: in a fleet at rest, the machines that a scaler chose are the ones deleted.
type p20 struct {
	*World
	chosen map[string]*choice // by UID of a deployment
}

func newP20(w *World) *p20 { return &p20{w, map[string]*choice{}} }

func (w *p20) see(e event) {
	switch e := e.(type) {
	case scalerChose:
		w.note(e)
	case allAtRest:
		w.checkForgotten()
	}
}

// note records a scaler's choice, if the fleet was at rest and nothing else has changed the deployment.
func (w *p20) note(e scalerChose) {
	d := e.deployment
	now := w.deployment(d.Name)
	if !e.atRest || now == nil || now.UID != d.UID || now.Generation != d.Generation+1 {
		delete(w.chosen, d.UID)
		return
	}
	w.chosen[d.UID] = &choice{names: e.names, at: e.began, generation: now.Generation}
}

// checkChoice checks that a deleted machine is one that the scaler chose. others are the remaining
// machines of its set.
func (w *p20) checkChoice(m *machine.Machine, s *machineset.Set, others []*machine.Machine) {
	if s.Owner == nil {
		return
	}
	c, d := w.chosen[s.Owner.UID], w.deployment(s.Owner.Name)
	if c == nil || d == nil || d.Generation != c.generation || w.lastChange[s.UID].After(c.at) || slices.Contains(c.names, m.Name) {
		return
	}
	for _, other := range others {
		if slices.Contains(c.names, other.Name) && w.unprotected(other) {
			w.violate("P20", "machine %s was deleted, and a scaler had chosen %s", m.Name, other.Name)
		}
	}
}

// checkForgotten checks that in a fleet at rest no choice of a scaler is left (P20). There are two
// exceptions: the deployment was scaled up again before the manager saw the choice, or the choice has a
// future time, after a jump of the clock, and belongs to a later reduction.
func (w *p20) checkForgotten() {
	if w.faults[ClockJump] > 0 {
		return
	}
	key := w.deploymentPolicy().Keys.DeletionCandidates
	for _, d := range w.deployments.all() {
		c := w.chosen[d.UID]
		if left := d.Annotations[key]; left != "" && c != nil && c.generation == d.Generation {
			w.violate("P20", "deployment %s is at rest, and is to give up %s", d.Name, left)
		}
	}
}
