package drains

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// drainSteps bounds the decisions of one call; reaching it means "again at once".
const drainSteps = 64

// pass carries out what is decided until there is nothing more to do now.
func (d *Drainer) pass(ctx context.Context, o *drain.Observation,
	decide func(*drain.Observation, *drain.Policy, time.Time) (drain.Plan, error),
) (drain.Plan, error) {
	for range drainSteps {
		plan, err := decide(o, d.options.Policy, d.options.Now())
		if err != nil {
			return plan, err
		}
		done, err := d.carryOut(ctx, o, &plan)
		if done || err != nil {
			return plan, err
		}
	}
	return drain.Plan{At: d.options.Now()}, nil
}

// carryOut carries out a plan. done: the plan is to wait.
func (d *Drainer) carryOut(ctx context.Context, o *drain.Observation, p *drain.Plan) (done bool, err error) {
	switch {
	case p.Write != nil:
		return false, d.write(ctx, o, p)
	case p.Look:
		return false, d.look(ctx, o)
	case len(p.Evict) > 0:
		return false, d.orders(ctx, o, drain.Evicted, p.Evict, d.options.Workload.Pods.Evict)
	case len(p.Delete) > 0:
		return false, d.orders(ctx, o, drain.Deleted, p.Delete, d.options.Workload.Pods.Delete)
	case len(p.Detach) > 0:
		return false, d.detach(ctx, o, p.Detach)
	}
	return true, nil
}

// write stores the record of a drain. Without the record nothing is done to a pod, except by force.
func (d *Drainer) write(ctx context.Context, o *drain.Observation, p *drain.Plan) error {
	stored, err := d.options.Nodes.Update(ctx, p.Write)
	switch {
	case err == nil:
		o.Node, o.Cached = stored, false
		if p.Begins {
			o.Memory.Begun()
		}
		return d.see(ctx, o) // pods could be bound to the node until the cordon was stored
	case errors.Is(err, store.ErrConflict) || ctx.Err() != nil:
		return err
	case errors.Is(err, store.ErrNotFound):
		o.Node = nil
	default:
		o.WriteFailed = true
	}
	return nil
}

func (d *Drainer) orders(ctx context.Context, o *drain.Observation, kind drain.Kind, orders []drain.Order,
	call func(context.Context, drain.Order) (drain.Answer, error),
) error {
	answers, errs := make([]drain.Answer, len(orders)), make([]error, len(orders))
	for _, order := range orders {
		o.Memory.Begin(order) // even if the call fails, or the write after it
	}
	d.options.Each(ctx, len(orders), func(i int) {
		answers[i], errs[i] = call(ctx, orders[i])
		answers[i].Kind, answers[i].At = kind, d.options.Now()
		if orders[i].Now {
			answers[i].Kind = drain.Killed
		}
	})
	for i, err := range errs {
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			answers[i].Result, answers[i].Message = drain.Failed, err.Error()
		}
		o.Memory.Note(orders[i].UID, answers[i])
	}
	return nil
}

func (d *Drainer) detach(ctx context.Context, o *drain.Observation, orders []drain.DetachOrder) error {
	for _, order := range orders {
		answer, err := d.options.Workload.Volumes.Detach(ctx, order.Name)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			answer.Result, answer.Message = drain.Failed, err.Error()
		}
		answer.Kind, answer.At = drain.Deleted, d.options.Now()
		o.Memory.Note(order.Name, answer)
	}
	return nil
}

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

// underWay returns the drains that are recorded on nodes. Other processes may have begun them.
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

// Abandon sets aside the permit of a machine or pool, or of a node, because its pass panicked. The next
// pass asks for a permit again.
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
