package manager

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
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

// DrainOptions of a Drainer that follows package drain.
type DrainOptions struct {
	// Nodes are those of the Cluster.
	Nodes    store.Collection[*machine.Node]
	Workload Workload
	Policy   *drain.Policy // nil: drain.DefaultPolicy
	// Known returns the IDs by which the provider knows those of some volumes
	// that it knows (GetVolumeIDs); the others are not waited for. Nil: all
	// are.
	Known func(ctx context.Context, volumes []*drain.Volume) ([]string, error)
	// Limit holds drains back while too many are under way.
	Limit DrainLimit

	Now func() time.Time
	// Each carries out n orders and returns when all have ended; nil: up to 16
	// at a time.
	Each func(ctx context.Context, n int, do func(i int))
}

// DrainLimit bounds how many nodes of a group are drained at a time. Force does
// not wait for it.
type DrainLimit struct {
	// Max in each group; zero: any number. As many more may be under way, no further, whose last
	// pass panicked: those let others go on.
	Max int
	// Group of a node, for example its zone or its pool. Nil: all are one.
	Group func(*machine.Node) string
}

// drains is a Drainer that decides with package drain. What it remembers of a
// node may be lost at the cost of time.
type drains struct {
	DrainOptions
	slots engine.Permits[slot]

	mu     sync.Mutex
	memory map[string]*drain.Memory // by UID of the node
}

// drainSteps bounds the decisions of one call; reaching it means "again at once".
const drainSteps = 64

// NewDrainer returns a Drainer for Options.Drainer. The error is an ErrOptions.
func NewDrainer(o DrainOptions) (Drainer, error) {
	switch {
	case o.Nodes == nil:
		return nil, fmt.Errorf("%w: no Nodes", ErrOptions)
	case o.Workload.Pods == nil:
		return nil, fmt.Errorf("%w: no Workload.Pods", ErrOptions)
	case o.Limit.Max < 0:
		return nil, fmt.Errorf("%w: negative Limit.Max", ErrOptions)
	}
	if o.Policy == nil {
		o.Policy = drain.DefaultPolicy()
	}
	if err := o.Policy.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Each == nil {
		o.Each = engine.Parallel
	}
	o.Each = engine.Contain(o.Each)
	return &drains{DrainOptions: o, memory: make(map[string]*drain.Memory)}, nil
}

// Drain implements Drainer.
func (d *drains) Drain(ctx context.Context, m *machine.Machine, order *machine.DrainNode) (machine.DrainAnswer, error) {
	if wait, full := d.take(ctx, m.Key, order); full {
		return wait, nil
	}
	o, err := d.observe(ctx, order.Node)
	if err != nil {
		return machine.DrainAnswer{}, err
	}
	o.Asked, o.Deadline, o.Forced, o.Stays = order.Since, order.Until, order.Forced, order.Stays
	plan, err := d.pass(ctx, o, drain.Decide)
	if err == nil && plan.Done {
		d.forget(order.Node)
	}
	return answerOf(plan, o, order), err
}

// Detach implements Drainer.
func (d *drains) Detach(ctx context.Context, _ *machine.Machine, order *machine.DetachVolumes) (machine.DrainAnswer, error) {
	o, err := d.observe(ctx, order.Node)
	if err != nil {
		return machine.DrainAnswer{}, err
	}
	o.Asked, o.Forced = order.Until.Add(-d.Policy.DetachTimeout), order.Forced
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
func (d *drains) Watch(ctx context.Context) iter.Seq2[string, error] {
	return d.Workload.Pods.Watch(ctx)
}

// pass carries out what is decided until there is nothing more to do now.
func (d *drains) pass(ctx context.Context, o *drain.Observation,
	decide func(*drain.Observation, *drain.Policy, time.Time) (drain.Plan, error),
) (drain.Plan, error) {
	for range drainSteps {
		plan, err := decide(o, d.Policy, d.Now())
		if err != nil {
			return plan, err
		}
		done, err := d.carryOut(ctx, o, &plan)
		if done || err != nil {
			return plan, err
		}
	}
	return drain.Plan{At: d.Now()}, nil
}

// carryOut does what a plan says; done: it says to wait.
func (d *drains) carryOut(ctx context.Context, o *drain.Observation, p *drain.Plan) (done bool, err error) {
	switch {
	case p.Write != nil:
		return false, d.write(ctx, o, p)
	case p.Look:
		return false, d.look(ctx, o)
	case len(p.Evict) > 0:
		return false, d.orders(ctx, o, drain.Evicted, p.Evict, d.Workload.Pods.Evict)
	case len(p.Delete) > 0:
		return false, d.orders(ctx, o, drain.Deleted, p.Delete, d.Workload.Pods.Delete)
	case len(p.Detach) > 0:
		return false, d.detach(ctx, o, p.Detach)
	}
	return true, nil
}

// write stores the record of a drain. Without it nothing is done to a pod, but
// by force.
func (d *drains) write(ctx context.Context, o *drain.Observation, p *drain.Plan) error {
	stored, err := d.Nodes.Update(ctx, p.Write)
	switch {
	case err == nil:
		o.Node, o.Cached = stored, false
		if p.Begins {
			o.Memory.Begun()
		}
		return d.see(ctx, o) // until the cordon was stored, more could come
	case errors.Is(err, store.ErrConflict) || ctx.Err() != nil:
		return err
	case errors.Is(err, store.ErrNotFound):
		o.Node = nil
	default:
		o.WriteFailed = true
	}
	return nil
}

// look reads the node and its pods as they are now.
func (d *drains) look(ctx context.Context, o *drain.Observation) error {
	n, err := d.Nodes.Live().Get(ctx, o.Node.Key)
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && n.UID != o.Node.UID:
		o.Node = nil
		return nil
	case err != nil:
		return err
	}
	o.Node, o.Cached = n, false
	live, ok := d.Workload.Pods.(LivePods)
	if !ok {
		return nil
	}
	if o.Pods, err = live.Live(ctx, n.Name); err != nil {
		return err
	}
	o.PodsCached = false
	return d.seeWhatHolds(ctx, o)
}

func (d *drains) orders(ctx context.Context, o *drain.Observation, kind drain.Kind, orders []drain.Order,
	call func(context.Context, drain.Order) (drain.Answer, error),
) error {
	answers, errs := make([]drain.Answer, len(orders)), make([]error, len(orders))
	for _, order := range orders {
		o.Memory.Begin(order) // whatever becomes of the call, and of the write that follows it
	}
	d.Each(ctx, len(orders), func(i int) {
		answers[i], errs[i] = call(ctx, orders[i])
		answers[i].Kind, answers[i].At = kind, d.Now()
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

func (d *drains) detach(ctx context.Context, o *drain.Observation, orders []drain.DetachOrder) error {
	for _, order := range orders {
		answer, err := d.Workload.Volumes.Detach(ctx, order.Name)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			answer.Result, answer.Message = drain.Failed, err.Error()
		}
		answer.Kind, answer.At = drain.Deleted, d.Now()
		o.Memory.Note(order.Name, answer)
	}
	return nil
}

// observe reads what a decision about a node is made from.
func (d *drains) observe(ctx context.Context, n *machine.Node) (*drain.Observation, error) {
	o := &drain.Observation{Node: n, Cached: true, Memory: d.remember(n)}
	if err := d.see(ctx, o); err != nil {
		return nil, err
	}
	return o, nil
}

// see reads what is on the node, and what holds it there.
func (d *drains) see(ctx context.Context, o *drain.Observation) (err error) {
	if o.Pods, o.Complete, err = d.Workload.Pods.On(ctx, o.Node.Name); err != nil {
		return err
	}
	_, o.PodsCached = d.Workload.Pods.(LivePods)
	if o.Complete {
		o.Memory.Forget(o.Pods)
	}
	return d.seeWhatHolds(ctx, o)
}

// seeWhatHolds reads what holds the pods of the node there.
func (d *drains) seeWhatHolds(ctx context.Context, o *drain.Observation) error {
	if d.Workload.Budgets != nil {
		budgets, complete, err := d.Workload.Budgets.In(ctx, namespacesOf(o.Pods))
		if err != nil {
			return err
		}
		o.Budgets, o.Complete = budgets, o.Complete && complete
	}
	if d.Workload.Volumes == nil {
		o.Attachments = []*drain.Attachment{}
		return nil
	}
	return d.observeVolumes(ctx, o)
}

func (d *drains) observeVolumes(ctx context.Context, o *drain.Observation) (err error) {
	volumes, complete, err := d.Workload.Volumes.Bound(ctx, claimsOf(o.Pods))
	if err != nil {
		return err
	}
	o.Volumes, o.Complete = volumes, o.Complete && complete
	names := make([]string, len(volumes))
	for i, v := range volumes {
		names[i] = v.Name
	}
	if o.Attachments, err = d.Workload.Volumes.Attachments(ctx, o.Node.Name, names); err != nil {
		return err
	}
	if o.Attached, err = d.Workload.Volumes.Attached(ctx, o.Node.Name); err != nil {
		return err
	}
	if d.Known != nil && len(volumes) > 0 {
		o.Known, err = d.Known(ctx, volumes)
	}
	return err
}

func namespacesOf(pods []*drain.Pod) []string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Namespace)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func claimsOf(pods []*drain.Pod) []object.Key {
	var out []object.Key
	for _, p := range pods {
		for _, claim := range p.Claims {
			out = append(out, object.Key{Namespace: p.Namespace, Name: claim})
		}
	}
	return out
}

// remember is what this process remembers of a node. Calls for one node do not
// overlap: they are a machine's.
func (d *drains) remember(n *machine.Node) *drain.Memory {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.memory[n.UID]
	if m == nil {
		m = drain.NewMemory(d.Now())
		d.memory[n.UID] = m
	}
	return m
}

func (d *drains) forget(n *machine.Node) {
	d.mu.Lock()
	delete(d.memory, n.UID)
	d.mu.Unlock()
	d.slots.Release(n.UID)
}

// blockersNamed is how many pods a sentence names.
const blockersNamed = 3

// answerOf tells a machine how far its drain has come. The sentence does not
// hold what changes by itself, since it is stored whenever it changes.
func answerOf(p drain.Plan, o *drain.Observation, order *machine.DrainNode) machine.DrainAnswer {
	answer := machine.DrainAnswer{Done: p.Done, Forced: p.Done && order.Forced, At: p.At, Why: steady(p.Why)}
	if o.Node != order.Node {
		answer.Node = o.Node
	}
	if p.Done || len(p.Blocked) == 0 {
		return answer
	}
	var names []string
	for i := range p.Blocked {
		b := &p.Blocked[i]
		switch b.Why.Reason {
		case drain.ReasonInTurn, drain.ReasonOrder, drain.ReasonNotYet:
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
