package cluster

import "sync"

// news collects the nodes whose workload has changed until they are taken. It is an informer's
// handler: it does not block, and keeps each node once.
type news struct {
	wake chan struct{} // there is something to take

	mu    sync.Mutex
	nodes []string
	known map[string]bool // those in nodes
}

func newNews() *news {
	return &news{wake: make(chan struct{}, 1), known: map[string]bool{}}
}

// String implements fmt.Stringer. An informer that has stopped prints its handler
// while another one may be calling it: without this, fields would be read unlocked.
func (n *news) String() string { return "news of nodes" }

// OnAdd implements cache.ResourceEventHandler.
func (n *news) OnAdd(obj any, _ bool) { n.add(nodesOf(obj)) }

// OnUpdate implements cache.ResourceEventHandler. A pod that is bound, and an
// attachment, never change their node.
func (n *news) OnUpdate(old, new any) {
	if !same(old, new) {
		n.add(nodesOf(new))
	}
}

// OnDelete implements cache.ResourceEventHandler.
func (n *news) OnDelete(obj any) { n.add(nodesOf(obj)) }

func (n *news) add(nodes []string) {
	n.mu.Lock()
	for _, node := range nodes {
		if node != "" && !n.known[node] {
			n.known[node] = true
			n.nodes = append(n.nodes, node)
		}
	}
	some := len(n.nodes) > 0
	n.mu.Unlock()
	if some {
		select {
		case n.wake <- struct{}{}:
		default:
		}
	}
}

// take returns the nodes since the last call, each once.
func (n *news) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	nodes := n.nodes
	n.nodes = nil
	clear(n.known)
	return nodes
}
