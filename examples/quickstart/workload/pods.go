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

// Evict implements drains.Pods. It follows the rules that policy/v1 documents: a healthy task may
// be evicted if enough others stay healthy, one that is not if the app is not disrupted. A task
// that is ending is not changed.
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

// Delete implements drains.Pods. The budget is not asked. A task is killed after its grace at most,
// even if the order is to end it now.
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

// find returns the pod that an order means, or nil if it is gone.
func (w *Workload) find(order drain.Order) *pod {
	i := slices.IndexFunc(w.pods, func(p *pod) bool { return p.UID == order.UID })
	if i < 0 {
		return nil
	}
	return w.pods[i]
}

// end says that a task is to end. The next round tells its process.
func (w *Workload) end(p *pod, now time.Time) {
	if !p.active() {
		return
	}
	going := *p.Pod
	going.GraceEnds = now.Add(p.Grace)
	p.Pod = &going
	w.changed()
}

// In implements drains.Budgets.
func (w *Workload) In(context.Context, []string) (budgets []*drain.Budget, complete bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return []*drain.Budget{w.budget()}, w.nodes != nil, nil
}

// budget counts the tasks as they are at this moment, so that it need not remember accepted
// evictions.
func (w *Workload) budget() *drain.Budget {
	replicas := max(0, w.replicas)
	b := &drain.Budget{
		Key:      object.Key{Namespace: Namespace, Name: w.options.App},
		Selector: &object.Selector{}, Generation: 1, ObservedGeneration: 1, // all tasks
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

// healthy reports whether a task serves and is to go on, on a node whose state is known.
func (w *Workload) healthy(p *pod) bool {
	n := w.nodes[p.node]
	return p.process.State == roster.Serving && p.process.Alive && p.active() && n != nil && is(n, machine.NodeReady)
}

// changed tells watches that pods have changed. The caller holds the lock.
func (w *Workload) changed() {
	close(w.news)
	w.news = make(chan struct{})
}

// Watch implements drains.Pods. It yields all nodes with each change of any pod: there are few.
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
