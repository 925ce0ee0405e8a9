package sim

import (
	"slices"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// p44: each change of a phase or stage that a manager stores follows the edges of its table. No pass
// fails because its transitions don't explain its write, or because a guard refuses them: see
// runner.reconcile.
type p44 struct {
	machines moves[machine.Machine]
	pools    moves[machinepool.Pool]
}

func newP44(w *World) *p44 {
	return &p44{
		moves[machine.Machine]{w, fsm.Machines(nil), (*machine.Machine).ObjectMeta, map[object.Key]*machine.Machine{}},
		moves[machinepool.Pool]{w, fsm.Pools(), (*machinepool.Pool).ObjectMeta, map[object.Key]*machinepool.Pool{}},
	}
}

func (p *p44) see(e event) {
	switch e := e.(type) {
	case stored[*machine.Machine]:
		p.machines.checkChange(e.key, e.now)
	case stored[*machinepool.Pool]:
		p.pools.checkChange(e.key, e.now)
	}
}

// moves follows the phases and stages of the objects of one kind.
type moves[M any] struct {
	*World
	states []fsm.State[M]
	meta   func(*M) *object.Meta
	last   map[object.Key]*M
}

// checkChange checks a change of one object; now is nil if it is gone. A stage may also end because the phase
// that it belongs to has changed.
func (w *moves[M]) checkChange(key object.Key, now *M) {
	before := w.last[key]
	if w.last[key] = now; now == nil {
		delete(w.last, key)
	}
	if before == nil || now == nil || w.meta(before).UID != w.meta(now).UID || !w.acting {
		return
	}
	phase := &w.states[0]
	for i, s := range w.states {
		from, to := s.Table.State(s.Get(before)), s.Table.State(s.Get(now))
		ended := i > 0 && to == s.Table.Initial && phase.Get(before) != phase.Get(now)
		if from != to && !ended && !reachable(s.Table, from, to) {
			w.violate("P44", "the %s of %s went from %q to %q, and no moves lead there", s.Table.Name, key.Name, from, to)
		}
	}
}

// maxMoves is how many transitions one write may store: a change of phase, and the stages of a deletion
// that have nothing to do.
const maxMoves = 6

// reachable reports whether the transitions of one write can lead from one state to another.
func reachable(t *machine.Table, from, to string) bool {
	reached := []string{from}
	for range maxMoves {
		next := slices.Clone(reached)
		for _, e := range t.Edges {
			if slices.Contains(reached, e.From) && !slices.Contains(next, e.To) {
				next = append(next, e.To)
			}
		}
		reached = next
	}
	return slices.Contains(reached, to)
}
