package manager

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// slotRetry is how soon a drain that waits for others asks again; slotGrace is
// how long a slot is held before its drain shows on the node.
const (
	slotRetry = 10 * time.Second
	slotGrace = time.Minute
)

// slots counts the drains under way in each group. What it counts is in the
// records on the nodes too: a fresh process reads them once.
type slots struct {
	mu    sync.Mutex
	taken map[string]slot // by UID of the node; nil: not read yet
}

type slot struct {
	node, group string
	of          object.Key // the machine, or the pool; zero: of a drain that was read
	since       time.Time
	// aside: its last pass panicked. As many as the limit are set aside and let others go on; each
	// one more counts.
	aside bool
}

// take takes a slot for a drain, or says what it waits for. A drain that has
// begun has one, and force needs none. Only caches are read meanwhile.
func (s *slots) take(ctx context.Context, d *drains, of object.Key, order *machine.DrainNode) (machine.DrainAnswer, bool) {
	if d.Limit.Max == 0 || order.Forced {
		return machine.DrainAnswer{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == nil {
		s.read(ctx, d)
	}
	if held, has := s.taken[order.Node.UID]; has && !held.aside {
		return machine.DrainAnswer{}, false
	}
	group := d.group(order.Node)
	if s.inUse(ctx, d, group, order.Node.UID) < d.Limit.Max && s.taken != nil {
		s.taken[order.Node.UID] = slot{node: order.Node.Name, group: group, of: of, since: d.Now()}
		return machine.DrainAnswer{}, false
	}
	why := fmt.Sprintf("no more than %d nodes are drained at a time", d.Limit.Max)
	if group != "" {
		why += " in " + group
	}
	return machine.DrainAnswer{At: d.Now().Add(slotRetry), Why: why}, true
}

// inUse counts the slots of a group that others than a node hold, and frees those of drains that
// have ended.
func (s *slots) inUse(ctx context.Context, d *drains, group, besides string) int {
	n, aside := 0, 0
	for uid, held := range s.taken {
		switch {
		case uid == besides:
		case !d.drains(ctx, uid, held):
			delete(s.taken, uid)
		case held.group != group:
		case held.aside:
			aside++
		default:
			n++
		}
	}
	return n + max(aside-d.Limit.Max, 0)
}

// read takes slots for the drains that others have begun.
func (s *slots) read(ctx context.Context, d *drains) {
	nodes, err := d.Nodes.List(ctx, store.Query{})
	if err != nil {
		return // the next call reads again
	}
	taken := make(map[string]slot)
	for _, n := range nodes {
		if n.Drain != nil {
			taken[n.UID] = slot{node: n.Name, group: d.group(n), since: d.Now()} // may panic: then the next call reads again
		}
	}
	s.taken = taken
}

func (s *slots) release(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.taken, uid)
}

// abandoner is a Drainer that limits drains.
type abandoner interface {
	// abandon sets aside what a machine or pool, or a node, holds of the limit, since its
	// pass panicked: a few that do so each time must not keep others waiting, and many must
	// not be drained at once. It asks again when it goes on.
	abandon(of object.Key, node string)
}

func (d *drains) abandon(of object.Key, node string) {
	d.slots.mu.Lock()
	defer d.slots.mu.Unlock()
	for uid, held := range d.slots.taken {
		if held.of == of || node != "" && held.node == node {
			held.aside = true
			d.slots.taken[uid] = held
		}
	}
}

func (d *drains) group(n *machine.Node) string {
	if d.Limit.Group == nil {
		return ""
	}
	return d.Limit.Group(n)
}

// drains reports whether a node that holds a slot is still being drained.
func (d *drains) drains(ctx context.Context, uid string, held slot) bool {
	n, err := d.Nodes.Get(ctx, object.Key{Name: held.node})
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && n.UID != uid:
		return false
	case err != nil:
		return true // it is not known to have ended
	}
	return n.Drain != nil || d.Now().Sub(held.since) < slotGrace
}
