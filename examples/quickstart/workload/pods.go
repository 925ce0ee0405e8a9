package workload

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
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
	return pods, w.nodes != nil, nil
}

// Evict implements drains.Pods. It follows the rules of Kubernetes' policy/v1: a healthy task may be
// evicted if enough others stay healthy; an unhealthy one, if enough tasks are healthy. A task that
// was told to end already is not changed.
func (w *Workload) Evict(_ context.Context, order drain.Order) (drain.Answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.find(order)
	switch {
	case p == nil:
		return drain.Answer{Result: drain.NotFound}, nil
	case !p.active():
		return drain.Answer{Result: drain.Accepted}, nil
	}
	b := w.budget()
	spare := b.CurrentHealthy - b.DesiredHealthy
	if spare > 0 || !w.healthy(p) && spare == 0 {
		w.end(p, time.Now())
		return drain.Answer{Result: drain.Accepted}, nil
	}
	message := fmt.Sprintf("budget %s: %d healthy tasks, %d are needed", b.Name, b.CurrentHealthy, b.DesiredHealthy)
	return drain.Answer{Result: drain.Refused, Message: message}, nil
}

// Delete implements drains.Pods. The budget does not matter. The task gets its own grace, also if the
// order has a shorter one.
func (w *Workload) Delete(_ context.Context, order drain.Order) (drain.Answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.find(order)
	if p == nil {
		return drain.Answer{Result: drain.NotFound}, nil
	}
	w.end(p, time.Now())
	return drain.Answer{Result: drain.Accepted}, nil
}

// find returns the pod that an order is about, or nil if it is gone.
func (w *Workload) find(order drain.Order) *pod {
	i := slices.IndexFunc(w.pods, func(p *pod) bool { return p.UID == order.UID })
	if i < 0 {
		return nil
	}
	return w.pods[i]
}

// end marks a task to be ended. The next round sends SIGTERM to its process.
func (w *Workload) end(p *pod, now time.Time) {
	if !p.active() {
		return
	}
	ending := *p.Pod
	ending.GraceEnds = now.Add(p.Grace)
	p.Pod = &ending
	w.changed()
}

// In implements drains.Budgets.
func (w *Workload) In(context.Context, []string) (budgets []*drain.Budget, complete bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return []*drain.Budget{w.budget()}, w.nodes != nil, nil
}

// budget returns the disruption budget. It counts the present tasks, so that accepted evictions need not
// be remembered.
func (w *Workload) budget() *drain.Budget {
	replicas := max(0, w.replicas)
	b := &drain.Budget{
		Key:      object.Key{Namespace: Namespace, Name: w.options.App},
		Selector: &object.Selector{}, Generation: 1, ObservedGeneration: 1, // an empty selector selects all tasks
		ExpectedPods: int32(replicas), DesiredHealthy: int32(max(0, replicas-w.options.MaxUnavailable)),
	}
	for _, p := range w.pods {
		if w.healthy(p) {
			b.CurrentHealthy++
		}
	}
	b.DisruptionsAllowed = max(0, b.CurrentHealthy-b.DesiredHealthy)
	return b
}

// healthy reports whether a task serves on a Ready node, and was not told to end.
func (w *Workload) healthy(p *pod) bool {
	n := w.nodes[p.node]
	return p.process.State == roster.Serving && p.process.Alive && p.active() && n != nil && is(n, machine.NodeReady)
}

// changed notifies all watches. The caller holds the lock.
func (w *Workload) changed() {
	close(w.news)
	w.news = make(chan struct{})
}

// Watch implements drains.Pods. After each change of any pod it yields all nodes, because there are few.
func (w *Workload) Watch(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for ctx.Err() == nil {
			w.mu.Lock()
			news, nodes := w.news, w.nodes // the map is replaced, never changed
			w.mu.Unlock()
			for node := range nodes {
				if !yield(node, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
			case <-news:
			}
		}
	}
}
