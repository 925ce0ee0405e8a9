package sim

import "time"

// podsStaying counts the pods that a drain may not leave on a node. Two kinds don't count: pods that
// have finished, and pods whose grace ended half a minute ago by the manager's clock.
func (w *World) podsStaying(node string) (n int) {
	now := w.latest()
	for _, p := range w.apps.On(node) {
		if !p.Finished && (p.GraceEnds.IsZero() || now.Before(p.GraceEnds.Add(overdue))) {
			n++
		}
	}
	return n
}

// overdue is how long a drain waits for a pod whose grace has ended.
const overdue = 30 * time.Second
