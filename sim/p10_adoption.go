package sim

import "context"

// p10: nothing adopts a machine that no selector picks.
type p10 struct{ *World }

func (w p10) see(e event) {
	if _, ok := e.(effect); ok {
		w.checkLone()
	}
}

func (w p10) checkLone() {
	if w.past.lone.Name == "" {
		return
	}
	if m, err := w.machines.Get(context.Background(), w.past.lone); err == nil && m.Owner != nil {
		w.violate("P10", "machine %s was adopted by %s, which does not select it", m.Name, m.Owner.Name)
	}
}
