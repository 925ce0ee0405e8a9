package sim

import "time"

// meddle does what a step says of other programs and people.
func (w *World) meddle(s *Step) {
	if s.Do == FlickerNodes {
		w.flicker(s)
	}
}

// flickering is how long nodes flicker, and flickers is how often each of them does in that time.
const (
	flickering = 30 * time.Minute
	flickers   = 6
)

// flicker makes nodes silent for moments, as kubelets are whose machines are short of memory.
func (w *World) flicker(s *Step) {
	nodes := w.nodes.all()
	for _, n := range nodes[:min(max(s.N, 0), len(nodes))] {
		w.actions[s.Do]++
		for range flickers {
			d := w.upTo(s.For)
			w.After(w.upTo(flickering), func() { w.kubelets.waver(n.Name, n.ProviderID, d) })
		}
	}
}
