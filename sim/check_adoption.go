package sim

import "context"

// p10: no set adopts a machine that its selector does not match.
type p10 struct {
	*World
	made bool // a user has created the machine lone
}

func (w *p10) see(e event) {
	switch e.(type) {
	case madeByHand:
		w.made = true
	case effect:
		w.checkLone()
	}
}

func (w *p10) checkLone() {
	if !w.made {
		return
	}
	if m, err := w.machines.Get(context.Background(), lone); err == nil && m.Owner != nil {
		w.violate("P10", "machine %s was adopted by %s, which does not select it", m.Name, m.Owner.Name)
	}
}
