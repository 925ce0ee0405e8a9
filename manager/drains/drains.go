// Package drains empties nodes as package drain decides: it is a Drainer for package manager.
package drains

import (
	"context"
	"iter"
	"strings"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
)

// New returns a drainer. The error is an ErrOptions.
func New(o Options) (*Drainer, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return &Drainer{options: o, memory: make(map[string]*drain.Memory)}, nil
}

// Drain implements Drainer.
func (d *Drainer) Drain(ctx context.Context, m *machine.Machine, order *machine.DrainNode) (machine.DrainAnswer, error) {
	if wait, full := d.take(ctx, m.Key, order); full {
		return wait, nil
	}
	o, err := d.observe(ctx, order.Node)
	if err != nil {
		return machine.DrainAnswer{}, err
	}
	o.Asked, o.Deadline, o.Forced, o.Stays = order.Since, order.Until, order.Forced, order.Stays
	o.MaxEvictRetries = int(m.Spec.Config.MaxEvictRetries)
	plan, err := d.pass(ctx, o, drain.Decide)
	if err == nil && plan.Done {
		d.forget(order.Node)
	}
	return answerOf(plan, o, order), err
}

// Detach implements Drainer.
func (d *Drainer) Detach(ctx context.Context, _ *machine.Machine, order *machine.DetachVolumes) (machine.DrainAnswer, error) {
	o, err := d.observe(ctx, order.Node)
	if err != nil {
		return machine.DrainAnswer{}, err
	}
	o.Asked, o.Forced = order.Until.Add(-d.options.Policy.DetachTimeout), order.Forced
	plan, err := d.pass(ctx, o, drain.Detach)
	if err == nil && plan.Done {
		d.forget(order.Node)
	}
	return machine.DrainAnswer{
		Done: plan.Done, At: plan.At, Why: steady(plan.Why), Node: o.Node,
		Blocked: plan.Why.Reason == drain.ReasonDetachFailed,
	}, err
}

// Watch implements WorkloadWatcher.
func (d *Drainer) Watch(ctx context.Context) iter.Seq2[string, error] {
	return d.options.Workload.Pods.Watch(ctx)
}

// Keep implements NodeKeeper.
func (d *Drainer) Keep(ctx context.Context, node *machine.Node) (bool, error) {
	o, err := d.observe(ctx, node)
	if err != nil {
		return false, err
	}
	plan, err := d.pass(ctx, o, drain.Undo)
	if err == nil && plan.Done {
		d.forget(node)
	}
	return plan.Done, err
}

// blockersNamed is how many pods a sentence names.
const blockersNamed = 3

// answerOf tells a machine how far its drain has come. The sentence does not
// hold what changes by itself, since it is stored whenever it changes. Once it
// is done, the sentence names what was left on the node.
func answerOf(p drain.Plan, o *drain.Observation, order *machine.DrainNode) machine.DrainAnswer {
	answer := machine.DrainAnswer{Done: p.Done, Forced: p.Done && order.Forced, At: p.At, Why: steady(p.Why)}
	if o.Node != order.Node {
		answer.Node = o.Node
	}
	var names []string
	if p.Done && p.Warn != (decision.Why{}) {
		answer.Blocked, names = true, append(names, steady(p.Warn))
	}
	for i := range p.Blocked {
		b := &p.Blocked[i]
		if b.InTurn() {
			continue
		}
		answer.Blocked = true
		if len(names) < blockersNamed {
			names = append(names, steady(b.Why))
		}
	}
	if len(names) > 0 {
		answer.Why = strings.Join(names, "; ")
	}
	return answer
}

// steady is a sentence without what changes by itself.
func steady(w decision.Why) string {
	w.For = 0
	if w.Reason == drain.ReasonWaiting {
		return "waiting for pods to go"
	}
	return w.String()
}
