package sim

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
)

// p64: a process writes the same entry of a node at most fightWrites times in fightTime, however often
// others undo it.
type p64 struct {
	*World
	seen   map[string]*machine.Node // the last seen state, by UID
	writes map[nodeEntry][]nodeWrite
}

// nodeEntry is what the manager has written on a node: the UID of the node, and what as written says.
type nodeEntry struct{ uid, what string }

// nodeWrite is when an entry was written, and how many answers of stores had been lost until then. A
// process does not count a write whose answer was lost.
type nodeWrite struct {
	at   time.Time
	lost int
}

// More than fightWrites writes in fightTime are a violation.
const (
	fightTime   = 10 * time.Minute
	fightWrites = 8
)

func newP64(w *World) *p64 {
	return &p64{World: w, seen: map[string]*machine.Node{}, writes: map[nodeEntry][]nodeWrite{}}
}

func (w *p64) see(e event) {
	switch e := e.(type) {
	case processStarted: // a new process does not know the writes of the last one
		w.writes = map[nodeEntry][]nodeWrite{}
	case stored[*machine.Node]:
		if e.now == nil {
			return
		}
		before := w.seen[e.now.UID]
		w.seen[e.now.UID] = e.now
		if before == nil || !w.acting || w.belated {
			return
		}
		for _, what := range written(before, e.now) {
			w.checkWrites(nodeEntry{e.now.UID, what})
		}
	}
}

// written describes each label, taint and finalizer of a node that a write has changed.
func written(before, now *machine.Node) (all []string) {
	for key, value := range now.Labels {
		if was, had := before.Labels[key]; !had || was != value {
			all = append(all, "label "+key+"="+value)
		}
	}
	for _, t := range now.Taints {
		if !slices.Contains(before.Taints, t) {
			all = append(all, "taint "+t.Key)
		}
	}
	for _, t := range before.Taints {
		if !slices.Contains(now.Taints, t) {
			all = append(all, "no taint "+t.Key)
		}
	}
	if now.HasFinalizer(machine.NodeFinalizer) && !before.HasFinalizer(machine.NodeFinalizer) {
		all = append(all, "finalizer")
	}
	slices.Sort(all)
	return all
}

func (w *p64) checkWrites(e nodeEntry) {
	began := w.Now().Add(-fightTime)
	w.writes[e] = slices.DeleteFunc(w.writes[e], func(o nodeWrite) bool { return !o.at.After(began) })
	w.writes[e] = append(w.writes[e], nodeWrite{w.Now(), w.faults[StoreAnswerLost]})
	lost := w.faults[StoreAnswerLost] - w.writes[e][0].lost
	if n := len(w.writes[e]); n-lost > fightWrites && w.faults[ClockJump] == 0 {
		w.violate("P64", "%s was written %d times on one node within %s", e.what, n, fightTime)
	}
}
