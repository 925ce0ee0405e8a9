// Package drains empties nodes as package drain decides: it is a Drainer for package manager.
package drains

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
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

// answerOf returns how far a machine's drain has come. The sentence leaves out what changes with time,
// because it is stored whenever it changes. At the end, it names what was left on the node.
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

// steady returns a sentence without what changes with time.
func steady(w decision.Why) string {
	w.For = 0
	if w.Reason == drain.ReasonWaiting {
		return "waiting for pods to go"
	}
	return w.String()
}

// Options of a drainer.
type Options struct {
	// Nodes are those of the Cluster.
	Nodes    store.Collection[*machine.Node]
	Workload Workload
	Policy   *drain.Policy // nil: drain.DefaultPolicy; a setting that is zero: its default
	// Known returns the provider's IDs of those volumes that the provider knows (GetVolumeIDs). A drain
	// does not wait for the others. Nil: it waits for all.
	Known func(ctx context.Context, volumes []*drain.Volume) ([]string, error)
	// Limit holds drains back while too many are under way.
	Limit Limit

	Now func() time.Time
	// Each carries out n orders and returns when all have ended; nil: up to 16
	// at a time.
	Each func(ctx context.Context, n int, do func(i int))
}

// Limit bounds how many nodes of a group are drained at a time. Force does
// not wait for it.
type Limit struct {
	// Max is how many nodes of each group; zero: any number. Up to as many again may be under way whose
	// last pass panicked, because those don't keep others waiting.
	Max int
	// Group returns the group of a node, for example its zone or its pool. Nil: all nodes are one group.
	Group func(*machine.Node) string
}

// ErrOptions is what every error of New is, for errors.Is.
var ErrOptions = errors.New("drains: options")

// complete checks options and fills in their defaults.
func (o *Options) complete() error {
	switch {
	case o.Nodes == nil:
		return fmt.Errorf("%w: no Nodes", ErrOptions)
	case o.Workload.Pods == nil:
		return fmt.Errorf("%w: no Workload.Pods", ErrOptions)
	case o.Limit.Max < 0:
		return fmt.Errorf("%w: negative Limit.Max", ErrOptions)
	}
	o.Policy = o.Policy.WithDefaults()
	if err := o.Policy.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Each == nil {
		o.Each = engine.Parallel
	}
	o.Each = engine.Contain(o.Each)
	return nil
}

// Drainer empties nodes. What it remembers of a node may be lost at the cost of time.
type Drainer struct {
	options Options
	permits engine.Permits[holder]

	mu     sync.Mutex
	memory map[string]*drain.Memory // by UID of the node
}

// holder is who has a permit to drain a node. The permit's ID is the node's UID.
type holder struct {
	node  string
	of    object.Key // the machine, or the pool; zero: the drain was found on the node
	since time.Time
}

// remember returns what this process remembers of a node. Calls for one node do not overlap, because they
// come from the passes of one machine or pool.
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
