package workload

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/drain"
)

// On implements drains.Pods.
func (w *Workload) On(_ context.Context, node string) (pods []*drain.Pod, complete bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pods {
		if p.node == node {
			pods = append(pods, p.Pod)
		}
	}
	return pods, w.looked, nil
}

// Evict implements drains.Pods. It follows the rules that policy/v1 documents. It asks a budget
// about pods that are healthy. One that is not healthy, yet or any more, may be evicted if its app
// is not disrupted. One that has not begun yet, or has finished, may always be evicted. A pod that
// is terminating is not changed.
func (w *Workload) Evict(_ context.Context, order drain.Order) (drain.Answer, error) {
	answer, told, err := w.evict(order, time.Now())
	w.tell(told)
	return answer, err
}

func (w *Workload) evict(order drain.Order, now time.Time) (answer drain.Answer, told []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.find(order)
	switch {
	case p == nil:
		return drain.Answer{Result: drain.NotFound}, nil, nil
	case p.going() || p.Finished || !p.given:
		return drain.Answer{Result: drain.Accepted}, nil, w.end(p, p.Grace, now)
	}
	b := w.budget(p.app)
	spare := b.CurrentHealthy - b.DesiredHealthy
	if w.healthy(p) && spare > 0 || !w.healthy(p) && spare >= 0 {
		if p.app.Volume {
			told = []string{"task " + p.Name + " is evicted from " + p.node}
		}
		return drain.Answer{Result: drain.Accepted}, told, w.end(p, p.Grace, now)
	}
	message := fmt.Sprintf("budget %s: %d healthy tasks, %d are needed", b.Name, b.CurrentHealthy, b.DesiredHealthy)
	return drain.Answer{Result: drain.Refused, Message: message}, []string{"task " + p.Name + " may not be evicted: " + message}, nil
}

// Delete implements drains.Pods.
func (w *Workload) Delete(_ context.Context, order drain.Order) (drain.Answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.find(order)
	if p == nil {
		return drain.Answer{Result: drain.NotFound}, nil
	}
	grace := p.Grace
	if order.Now {
		grace = 0
	}
	return drain.Answer{Result: drain.Accepted}, w.end(p, grace, time.Now())
}

// find returns the pod that an order means. It returns nil if that pod is gone, or another one has
// its name.
func (w *Workload) find(order drain.Order) *pod {
	for _, p := range w.pods {
		if p.Key == order.Pod && p.UID == order.UID {
			return p
		}
	}
	return nil
}

// end tells a task to end within its grace. If it was told before, the earlier end counts.
func (w *Workload) end(p *pod, grace time.Duration, now time.Time) error {
	ends := now.Add(grace)
	if p.going() && !ends.Before(p.GraceEnds) {
		return nil
	}
	if !p.given || p.Finished { // it has no process, or none any more
		return w.remove(p)
	}
	letter := w.letter(p)
	letter.Told, letter.Grace = true, grace
	if err := w.desk(p.node).Give(letter); err != nil {
		return err
	}
	going := *p.Pod
	going.GraceEnds = ends
	p.Pod = &going
	w.changed(p.node)
	return nil
}

// In implements drains.Budgets.
func (w *Workload) In(_ context.Context, namespaces []string) (budgets []*drain.Budget, complete bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(namespaces, Namespace) {
		for _, app := range w.apps {
			budgets = append(budgets, w.budget(app))
		}
	}
	return budgets, w.looked, nil
}

// budget counts an app's tasks as they are at this moment, so that it need not remember accepted
// evictions.
func (w *Workload) budget(app *App) *drain.Budget {
	b := &drain.Budget{
		Selector: app.selector(), Generation: 1, ObservedGeneration: 1,
		ExpectedPods: int32(app.Replicas), DesiredHealthy: int32(max(0, app.Replicas-app.MaxUnavailable)),
	}
	b.Namespace, b.Name = Namespace, app.Name
	for _, p := range w.of(app) {
		switch {
		case w.healthy(p):
			b.CurrentHealthy++
		case p.going() && !p.Finished:
			b.Disrupted++
		}
	}
	b.DisruptionsAllowed = max(0, b.CurrentHealthy-b.DesiredHealthy)
	return b
}

// healthy reports whether a task serves and is to go on, on a node whose state is known.
func (w *Workload) healthy(p *pod) bool {
	n := w.nodes[p.node]
	return p.serving && !p.going() && n != nil && ready(n)
}
