package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

// podsStaying counts the pods that a drain may not leave on a node. Three kinds don't count: pods
// that have finished, pods that came in spite of the cordon and would come again, and pods whose grace
// ended half a minute ago by the manager's clock.
func (w *World) podsStaying(node string) (n int) {
	now := w.latest()
	for _, p := range w.apps.On(node) {
		if !p.Finished && !w.comesBack(p, node) && (p.GraceEnds.IsZero() || now.Before(p.GraceEnds.Add(overdue))) {
			n++
		}
	}
	return n
}

// podsRunning counts the pods of a node that run and were not told to terminate, without those that
// came in spite of the cordon and would come again.
func (w *World) podsRunning(node string) (n int) {
	for _, p := range w.apps.On(node) {
		if !p.Finished && p.GraceEnds.IsZero() && !w.comesBack(p, node) {
			n++
		}
	}
	return n
}

// comesBack reports whether a pod tolerates the cordon and was made after the drain of its node began.
func (w *World) comesBack(p *drain.Pod, node string) bool {
	n, err := w.nodes.Get(context.Background(), object.Key{Name: node})
	return err == nil && n.Drain != nil && p.ToleratesCordon && p.CreatedAt.Truncate(time.Second).After(n.Drain.Youngest)
}

// overdue is how long a drain waits for a pod whose grace has ended.
const overdue = 30 * time.Second
