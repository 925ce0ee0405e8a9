package workload

import (
	"context"
	"iter"
)

// watcher receives the nodes whose tasks have changed.
type watcher struct {
	nodes map[string]bool
	some  chan struct{} // filled when there are any
}

// changed tells watchers of a node. The caller holds the lock.
func (w *Workload) changed(node string) {
	if node == "" {
		return
	}
	for one := range w.watchers {
		one.nodes[node] = true
		select {
		case one.some <- struct{}{}:
		default: // it is told already
		}
	}
}

// Watch implements drains.Pods.
func (w *Workload) Watch(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		one := &watcher{nodes: make(map[string]bool), some: make(chan struct{}, 1)}
		w.mu.Lock()
		w.watchers[one] = true
		w.mu.Unlock()
		defer func() {
			w.mu.Lock()
			delete(w.watchers, one)
			w.mu.Unlock()
		}()
		for {
			select {
			case <-ctx.Done():
				return
			case <-one.some:
			}
			for node := range w.taken(one) {
				if !yield(node, nil) {
					return
				}
			}
		}
	}
}

// taken returns what a watcher was told, and empties it.
func (w *Workload) taken(one *watcher) map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	nodes := one.nodes
	one.nodes = make(map[string]bool)
	return nodes
}
