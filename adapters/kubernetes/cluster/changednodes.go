package cluster

import "sync"

// changedNodes collects the nodes whose workload has changed, until they are taken. It is an
// informer's handler: it does not block, and has each node once.
type changedNodes struct {
	wake chan struct{} // has an element if there may be something to take

	mu    sync.Mutex
	nodes []string
	known map[string]bool // the elements of nodes
}

func newChangedNodes() *changedNodes {
	return &changedNodes{wake: make(chan struct{}, 1), known: map[string]bool{}}
}

// String implements fmt.Stringer. An informer that has stopped prints its handler, while another
// informer may call the handler: without String, the fields would be read without the lock.
func (n *changedNodes) String() string { return "changed nodes" }

// OnAdd implements cache.ResourceEventHandler.
func (n *changedNodes) OnAdd(obj any, _ bool) { n.add(nodesOf(obj)) }

// OnUpdate implements cache.ResourceEventHandler. Old and new have the same node: pods that are
// bound, and attachments, never change theirs.
func (n *changedNodes) OnUpdate(old, new any) {
	if !same(old, new) {
		n.add(nodesOf(new))
	}
}

// OnDelete implements cache.ResourceEventHandler.
func (n *changedNodes) OnDelete(obj any) { n.add(nodesOf(obj)) }

func (n *changedNodes) add(nodes []string) {
	n.mu.Lock()
	for _, node := range nodes {
		if node != "" && !n.known[node] {
			n.known[node] = true
			n.nodes = append(n.nodes, node)
		}
	}
	waiting := len(n.nodes) > 0
	n.mu.Unlock()
	if waiting {
		select {
		case n.wake <- struct{}{}:
		default:
		}
	}
}

// take returns the nodes that have changed since the last call, each once.
func (n *changedNodes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	nodes := n.nodes
	n.nodes = nil
	clear(n.known)
	return nodes
}
