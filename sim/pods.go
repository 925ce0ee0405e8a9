package sim

import (
	"context"
	"iter"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/cluster"
)

// workloadPort is the workload as one process sees it.
type workloadPort struct {
	p    *process
	apps *cluster.Cluster
}

// On implements drains.Pods.
func (s workloadPort) On(_ context.Context, node string) ([]*drain.Pod, bool, error) {
	if s.p.dead {
		return nil, false, errDead
	}
	return s.apps.On(node), true, nil
}

// Evict implements drains.Pods.
func (s workloadPort) Evict(_ context.Context, o drain.Order) (out drain.Answer, err error) {
	err = s.p.call(targetAPI, func() error { out = s.apps.Evict(o); return nil })
	return out, err
}

// Delete implements drains.Pods.
func (s workloadPort) Delete(_ context.Context, o drain.Order) (out drain.Answer, err error) {
	err = s.p.call(targetAPI, func() error { out = s.apps.Delete(o); return nil })
	return out, err
}

// Watch implements drains.Pods. Nothing watches in a simulation.
func (s workloadPort) Watch(context.Context) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}

// In implements drains.Budgets.
func (s workloadPort) In(_ context.Context, namespaces []string) (out []*drain.Budget, complete bool, err error) {
	for _, name := range namespaces {
		out = append(out, s.apps.Budgets(name)...)
	}
	return out, true, nil
}

// Bound implements drains.Volumes.
func (s workloadPort) Bound(_ context.Context, claims []object.Key) ([]*drain.Volume, bool, error) {
	return s.apps.Bound(claims), true, nil
}

// Attachments implements drains.Volumes.
func (s workloadPort) Attachments(_ context.Context, node string, names []string) ([]*drain.Attachment, error) {
	return s.apps.Attachments(node, names), nil
}

// Attached implements drains.Volumes. Nodes say nothing of volumes here.
func (s workloadPort) Attached(context.Context, string) ([]string, error) { return nil, nil }

// Detach implements drains.Volumes.
func (s workloadPort) Detach(_ context.Context, attachment string) (out drain.Answer, err error) {
	err = s.p.call(targetAPI, func() error { out = s.apps.Detach(attachment); return nil })
	return out, err
}
