package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// slotRetry is how soon a drain that waits for others asks again; slotGrace is
// how long a slot is held before its drain shows on the node.
const (
	slotRetry = 10 * time.Second
	slotGrace = time.Minute
)

// slot is a permit to drain a node, by the node's UID.
type slot struct {
	node  string
	of    object.Key // the machine, or the pool; zero: of a drain that was read
	since time.Time
}

// take takes a slot for a drain, or says what it waits for. A drain that has
// begun has one, and force needs none.
func (d *drains) take(ctx context.Context, of object.Key, order *machine.DrainNode) (machine.DrainAnswer, bool) {
	if d.Limit.Max == 0 || order.Forced {
		return machine.DrainAnswer{}, false
	}
	group := d.group(order.Node)
	given, err := d.slots.Take(&engine.Ask[slot]{
		ID: order.Node.UID, Group: group, Limit: d.Limit.Max, Holder: slot{node: order.Node.Name, of: of, since: d.Now()},
		Read: func() (map[string]engine.Permit[slot], error) { return d.underWay(ctx) },
		Uses: func(uid string, held slot) bool { return d.drains(ctx, uid, held) },
	})
	if given && err == nil {
		return machine.DrainAnswer{}, false
	}
	why := fmt.Sprintf("no more than %d nodes are drained at a time", d.Limit.Max)
	if group != "" {
		why += " in " + group
	}
	return machine.DrainAnswer{At: d.Now().Add(slotRetry), Why: why}, true
}

// underWay are the drains that others have begun: they are recorded on the nodes.
func (d *drains) underWay(ctx context.Context) (map[string]engine.Permit[slot], error) {
	nodes, err := d.Nodes.List(ctx, store.Query{})
	if err != nil {
		return nil, err
	}
	taken := make(map[string]engine.Permit[slot])
	for _, n := range nodes {
		if n.Drain != nil {
			taken[n.UID] = engine.Permit[slot]{Group: d.group(n), Holder: slot{node: n.Name, since: d.Now()}}
		}
	}
	return taken, nil
}

// abandoner is a Drainer that limits drains.
type abandoner interface {
	// abandon sets aside what a machine or pool, or a node, holds of the limit, since its
	// pass panicked.
	abandon(of object.Key, node string)
}

func (d *drains) abandon(of object.Key, node string) {
	d.slots.SetAside(func(s slot) bool { return s.of == of || node != "" && s.node == node })
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
