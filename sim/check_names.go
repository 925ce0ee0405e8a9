package sim

import (
	"time"

	"github.com/millwright-go/millwright/machine"
)

// p17: no machine gets the name of one that has been gone for long.
type p17 struct {
	*World
	goneAt map[string]time.Time // when a machine was gone, by name
}

func newP17(w *World) *p17 { return &p17{w, map[string]time.Time{}} }

func (w *p17) see(e event) {
	switch e := e.(type) {
	case stored[*machine.Machine]:
		if e.now == nil {
			w.goneAt[e.key.Name] = w.Now()
		}
	case machineCreated:
		w.checkName(e.machine)
	}
}

func (w *p17) checkName(m *machine.Machine) {
	gone, existed := w.goneAt[m.Name]
	if limit := w.setPolicy().RequestTimeout + inFlight; existed && !w.belated && w.faults[ClockJump] == 0 && w.Now().Sub(gone) > limit {
		w.violate("P17", "the name of machine %s comes back after %s", m.Name, w.Now().Sub(gone))
	}
}
