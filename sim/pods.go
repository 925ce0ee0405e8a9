package sim

import (
	"context"
	"iter"
	"slices"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

// workloadPort is the workload as one process sees it.
type workloadPort struct {
	p    *process
	apps *appControllers
}

// On implements drains.Pods.
func (s workloadPort) On(_ context.Context, node string) ([]*drain.Pod, bool, error) {
	if s.p.dead {
		return nil, false, errDead
	}
	var out []*drain.Pod
	for _, p := range s.apps.on(node) {
		out = append(out, p.Pod)
	}
	return out, true, nil
}

// Evict implements drains.Pods.
func (s workloadPort) Evict(_ context.Context, o drain.Order) (out drain.Answer, err error) {
	err = s.p.call(targetAPI, func() error { out = s.apps.evict(o); return nil })
	return out, err
}

// Delete implements drains.Pods.
func (s workloadPort) Delete(_ context.Context, o drain.Order) (out drain.Answer, err error) {
	err = s.p.call(targetAPI, func() error { out = s.apps.remove(o); return nil })
	return out, err
}

// Watch implements drains.Pods. Nothing watches in a simulation.
func (s workloadPort) Watch(context.Context) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}

// In implements drains.Budgets.
func (s workloadPort) In(_ context.Context, namespaces []string) (out []*drain.Budget, complete bool, err error) {
	for _, name := range namespaces {
		for _, app := range s.apps.apps {
			if b := s.apps.budgets[app.Name]; b != nil && b.Namespace == name {
				out = append(out, b)
			}
		}
	}
	return out, true, nil
}

// Bound implements drains.Volumes.
func (s workloadPort) Bound(_ context.Context, claims []object.Key) (out []*drain.Volume, complete bool, err error) {
	for _, v := range s.apps.volumes.all {
		if slices.Contains(claims, v.Claim) {
			out = append(out, v.Volume)
		}
	}
	return out, true, nil
}

// Attachments implements drains.Volumes.
func (s workloadPort) Attachments(_ context.Context, node string, names []string) ([]*drain.Attachment, error) {
	out := []*drain.Attachment{}
	for _, v := range s.apps.volumes.all {
		if v.on(node) || v.at != nil && slices.Contains(names, v.Name) {
			out = append(out, v.at)
		}
	}
	return out, nil
}

// Attached implements drains.Volumes. Nodes say nothing of volumes here.
func (s workloadPort) Attached(context.Context, string) ([]string, error) { return nil, nil }

// Detach implements drains.Volumes.
func (s workloadPort) Detach(_ context.Context, attachment string) (out drain.Answer, err error) {
	err = s.p.call(targetAPI, func() error { out = s.apps.volumes.remove(attachment); return nil })
	return out, err
}
