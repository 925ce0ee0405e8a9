package sim

import "context"

// p10: nothing adopts a machine that no selector picks.
type p10 struct {
	*World
	made bool // a user has made it
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
