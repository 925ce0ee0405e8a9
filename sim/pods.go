package sim

import (
	"context"
	"iter"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
)

// pods is the workload as one process sees it.
type pods struct{ p *process }

// On implements manager.Pods.
func (s pods) On(_ context.Context, node string) ([]*drain.Pod, bool, error) {
	if s.p.dead {
		return nil, false, errDead
	}
	var out []*drain.Pod
	for _, p := range s.p.w.apps.on(node) {
		out = append(out, p.Pod)
	}
	return out, true, nil
}

// Evict implements manager.Pods.
func (s pods) Evict(_ context.Context, o drain.Order) (out drain.Answer, err error) {
	err = s.p.call(func() error { out = s.p.w.apps.evict(o); return nil })
	return out, err
}

// Delete implements manager.Pods.
func (s pods) Delete(_ context.Context, o drain.Order) (out drain.Answer, err error) {
	err = s.p.call(func() error { out = s.p.w.apps.remove(o); return nil })
	return out, err
}

// Watch implements manager.Pods. Nobody watches in a simulation.
func (s pods) Watch(context.Context) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}

// In implements manager.Budgets.
func (s pods) In(_ context.Context, namespaces []string) (out []*drain.Budget, complete bool, err error) {
	for _, name := range namespaces {
		for _, app := range s.p.w.apps.apps {
			if b := s.p.w.apps.budgets[app.Name]; b != nil && b.Namespace == name {
				out = append(out, b)
			}
		}
	}
	return out, true, nil
}

// drainer is how a process drains nodes.
func (p *process) drainer(nodes *port[*machine.Node], now func() time.Time) (manager.Drainer, error) {
	p.w.apps.tell = []func(string){func(node string) {
		p.deliver(manager.KindWorkload, func() { p.wake(manager.KindWorkload, nil, node) })
	}}
	return manager.NewDrainer(manager.DrainOptions{
		Nodes: nodes, Workload: manager.Workload{Pods: pods{p}, Budgets: pods{p}}, Policy: p.w.o.Drain,
		Limit: p.w.o.DrainLimit, Now: now, Each: p.each,
	})
}
