package drains

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

// permitRetry is how soon a drain that waits for others asks again; permitGrace is
// how long a permit is held before its drain shows on the node.
const (
	permitRetry = 10 * time.Second
	permitGrace = time.Minute
)

// take takes a permit for a drain, or says what it waits for. A drain that has
// begun has one, and force needs none.
func (d *Drainer) take(ctx context.Context, of object.Key, order *machine.DrainNode) (machine.DrainAnswer, bool) {
	if d.options.Limit.Max == 0 || order.Forced {
		return machine.DrainAnswer{}, false
	}
	group := d.group(order.Node)
	given, err := d.permits.Take(&engine.Ask[holder]{
		ID: order.Node.UID, Group: group, Limit: d.options.Limit.Max, Holder: holder{node: order.Node.Name, of: of, since: d.options.Now()},
		Read: func() (map[string]engine.Permit[holder], error) { return d.underWay(ctx) },
		Uses: func(uid string, held holder) bool { return d.underWayOn(ctx, uid, held) },
	})
	if given && err == nil {
		return machine.DrainAnswer{}, false
	}
	why := fmt.Sprintf("no more than %d nodes are drained at a time", d.options.Limit.Max)
	if group != "" {
		why += " in " + group
	}
	return machine.DrainAnswer{At: d.options.Now().Add(permitRetry), Why: why}, true
}

// underWay are the drains that others have begun: they are recorded on the nodes.
func (d *Drainer) underWay(ctx context.Context) (map[string]engine.Permit[holder], error) {
	nodes, err := d.options.Nodes.List(ctx, store.Query{})
	if err != nil {
		return nil, err
	}
	taken := make(map[string]engine.Permit[holder])
	for _, n := range nodes {
		if n.Drain != nil {
			taken[n.UID] = engine.Permit[holder]{Group: d.group(n), Holder: holder{node: n.Name, since: d.options.Now()}}
		}
	}
	return taken, nil
}

// Abandon sets aside what a machine or pool, or a node, holds of the limit, since its
// pass panicked: it asks again when it goes on.
func (d *Drainer) Abandon(of object.Key, node string) {
	d.permits.SetAside(func(h holder) bool { return h.of == of || node != "" && h.node == node })
}

func (d *Drainer) group(n *machine.Node) string {
	if d.options.Limit.Group == nil {
		return ""
	}
	return d.options.Limit.Group(n)
}

// underWayOn reports whether a node that holds a permit is still being drained.
func (d *Drainer) underWayOn(ctx context.Context, uid string, held holder) bool {
	n, err := d.options.Nodes.Get(ctx, object.Key{Name: held.node})
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && n.UID != uid:
		return false
	case err != nil:
		return true // it is not known to have ended
	}
	return n.Drain != nil || d.options.Now().Sub(held.since) < permitGrace
}
