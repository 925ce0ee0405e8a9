package drains

import (
	"sync"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
)

// Drainer empties nodes. What it remembers of a node may be lost at the cost of time.
type Drainer struct {
	options Options
	permits engine.Permits[holder]

	mu     sync.Mutex
	memory map[string]*drain.Memory // by UID of the node
}

// holder is who has a permit to drain a node. Its ID is the node's UID.
type holder struct {
	node  string
	of    object.Key // the machine, or the pool; zero: of a drain that was read
	since time.Time
}

// remember is what this process remembers of a node. Calls for one node do not
// overlap: they are a machine's.
func (d *Drainer) remember(n *machine.Node) *drain.Memory {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.memory[n.UID]
	if m == nil {
		m = drain.NewMemory(d.options.Now())
		d.memory[n.UID] = m
	}
	return m
}

func (d *Drainer) forget(n *machine.Node) {
	d.mu.Lock()
	delete(d.memory, n.UID)
	d.mu.Unlock()
	d.permits.Release(n.UID)
}
